// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/ref_grouped_matmul.hpp"

#include <algorithm>

#include "common/grouped_exec.hpp"
#include "cpu/empty_dst.hpp"
#include "cpu/ref/ref_row.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Rows of the destination that a thread computes together, and rows that share one decoding of the weights.
constexpr int64_t rows_together = 16;

// Buffers of doubles of one thread: rows of results and sums, rows of the source, a column of weights.
int64_t doubles_per_thread(dim_t K, dim_t N) { return 2 * rows_together * N + (rows_together + 1) * K; }

} // namespace

reason_t ref_grouped_matmul_t::pd_t::init() {
    const memory_desc_t &wei = problem.weights;
    const int64_t each = checked_mul(doubles_per_thread(wei.dims[1], wei.dims[2]), sizeof(double));
    if (each < 0) return refuse(mxdnn_unimplemented, "the reference's scratchpad would be beyond 2^50 bytes");
    scratch.book(scratch_t::thread, each, problem.max_concurrency);
    return yes();
}

namespace {

// The rows of all groups before a group, each padded to whole tiles of scales. Callers ask for groups nearly
// in order, so that each answer takes few steps.
class swizzled_rows_t {
public:
    explicit swizzled_rows_t(const row_groups_t &groups) : groups_(groups) {}
    int64_t before(int64_t g) {
        for (; at_ < g; at_++) rows_ += groups_.swizzled_rows(at_);
        for (; at_ > g; at_--) rows_ -= groups_.swizzled_rows(at_ - 1);
        return rows_;
    }

private:
    const row_groups_t &groups_;
    int64_t at_ = 0, rows_ = 0;
};

// The part of one thread in an execution.
struct ref_grouped_run_t {
    const exec_ctx_t &ctx;
    const problem_t &p;
    const grouped_exec_t &x;
    matrix_view_t src, wei, dst;
    swizzled_rows_t swizzled_rows;
    dim_t K, N, columns; // K and N of the weights, columns of the destination
    double *results, *sums, *source, *column;
    // State of the current rows [first, first + count) of the destination.
    int64_t first = 0, count = 0;
    bool written[rows_together];
    int expert_of[rows_together]; // the expert of the last row that was added there; -1: none
    int64_t group_of[rows_together];

    ref_grouped_run_t(const exec_ctx_t &c, const grouped_exec_t &exec, int ithr)
        : ctx(c), p(c.pd.problem), x(exec), src(c, MXDNN_ARG_SRC, p.src, p.attr.src),
          wei(c, MXDNN_ARG_WEIGHTS, p.weights, p.attr.weights), dst(c, MXDNN_ARG_DST, p.dst, p.attr.dst),
          swizzled_rows(exec.groups), K(p.weights.dims[1]), N(p.weights.dims[2]),
          columns(p.attr.gated() ? N / 2 : N) {
        results = ctx.scratch<double>(scratch_t::thread, ithr);
        sums = results + rows_together * N;
        source = sums + rows_together * N;
        column = source + rows_together * K;
    }

    // The row within a matrix. If groups are padded, this also selects the matrix.
    dim_t select_row(matrix_view_t &view, const memory_desc_t &md, int64_t row) const {
        if (md.ndims == 2) return row;
        const dim_t batch[1] = {row / md.dims[1]};
        view.set_batch(batch);
        return row % md.dims[1];
    }
    const memory_desc_t &src_md() const { return ctx.memory(MXDNN_ARG_SRC)->md; }
    const memory_desc_t &dst_md() const { return ctx.memory(MXDNN_ARG_DST)->md; }

    // After select_row(), which selects the global scale of a matrix; here each expert may have one. In a
    // tensor of 2 dims, the 128x4 scales of every group begin on a tile.
    void select_group(matrix_view_t &view, const memory_desc_t &md, const arg_attr_t &attr, bool of_src,
            int64_t g, int expert) {
        view.set_global_index(expert);
        if (attr.layout == mxdnn_scales_swizzle_128x4 && md.ndims == 2 && swizzled_by_group(x, of_src))
            view.set_scale_row_shift(swizzled_rows.before(g) - x.groups.group(g).first);
    }

    void select_expert(int expert) {
        const dim_t batch[1] = {expert};
        wei.set_batch(batch);
        if (x.weights_ptrs)
            wei.set_packed_data(reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(x.weights_ptrs[expert])));
    }

    void load_source(int64_t row, int64_t group, int expert, double *to) {
        const int64_t from = x.src_row(row);
        if (from < 0) {
            std::fill_n(to, K, 0.);
            return;
        }
        const dim_t m = select_row(src, src_md(), from);
        select_group(src, src_md(), p.attr.src, true, group, expert);
        ref_source_row(src, p, m, K, to);
    }

    // Computes rows of one group in `results`, and adds them to the sums of their destination.
    void do_rows(int64_t group, int expert, const int64_t *rows, int64_t n) {
        select_expert(expert);
        for (int64_t i = 0; i < n; i++) load_source(rows[i], group, expert, source + i * K);
        for (dim_t c = 0; c < N; c++) {
            for (dim_t k = 0; k < K; k++) column[k] = wei.value(k, c);
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (dim_t k = 0; k < K; k++) sum += source[i * K + k] * column[k];
                results[i * N + c] = sum;
            }
        }
        for (int64_t i = 0; i < n; i++) {
            finish_row(rows[i], expert, results + i * N);
            const int64_t at = x.dst_row(rows[i]) - first;
            // Without SCATTER_IDX there is no sum, so that -0 stays -0.
            for (dim_t c = 0; c < columns; c++)
                sums[at * columns + c] = results[i * N + c] + (x.scatter ? sums[at * columns + c] : -0.);
            written[at] = true;
            expert_of[at] = expert;
            group_of[at] = group;
        }
    }

    // alpha, top-k weight of the input, bias, activation, top-k weight of the output.
    void finish_row(int64_t row, int expert, double *v) const {
        const double topk = x.topk_weight(row);
        const bool on_input = p.attr.topk_weights_placement == mxdnn_topk_weights_on_input;
        const double before = x.alpha(expert) * (on_input ? topk : 1.);
        for (dim_t c = 0; c < N; c++) v[c] *= before;
        if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS))
            for (dim_t c = 0; c < N; c++) {
                const dim_t idx[2] = {expert, c};
                v[c] += plain_view_t(*bias).value(idx);
            }
        dim_t n = N;
        for (const post_op_t &o : p.attr.post_ops.ops) {
            if (o.kind == mxdnn_gated) {
                const activation_params_t a = x.params(expert, o);
                n /= 2;
                ref_gate_row(o, a.alpha, a.beta, a.limit, v, n);
            } else if (o.kind == mxdnn_eltwise) {
                for (dim_t c = 0; c < n; c++) v[c] = ref_eltwise(o.alg, v[c], o.alpha, o.beta);
            }
        }
        if (x.topk && !on_input)
            for (dim_t c = 0; c < n; c++) v[c] *= topk;
    }

    // Whether a grouped row goes to one of the current rows of the destination.
    bool is_at_work(int64_t row) const {
        const int64_t to = x.dst_row(row);
        return to >= first && to < first + count;
    }

    // The range of grouped rows that may go to the current rows: all of them with SCATTER_IDX.
    int64_t first_row() const { return x.scatter ? 0 : first; }
    int64_t end_of_rows() const { return x.scatter ? x.groups.rows : first + count; }

    // A loop over rows, not groups, because there may be many more groups than rows.
    void do_groups() {
        int64_t rows[rows_together], n = 0, at = -1;
        row_group_t group = {0, 0, -1};
        const auto flush = [&] {
            if (n > 0) do_rows(at, group.expert, rows, n);
            n = 0;
        };
        for (int64_t r = first_row(); r < end_of_rows(); r++) {
            if (!is_at_work(r)) continue;
            if (r >= group.first + group.count) {
                flush();
                at = x.groups.group_of(r);
                group = at < 0 ? row_group_t{r, 1, -1} : x.groups.group(at);
            }
            if (group.expert < 0) continue;
            rows[n++] = r;
            if (n == rows_together) flush();
        }
        flush();
    }

    // If each row has its own expert, rows of the same expert are collected: weights are decoded for
    // rows_together of them.
    void do_rows_by_id() {
        constexpr int64_t most = 16 * rows_together;
        int64_t waiting[most], n = 0;
        for (int64_t r = first_row(); r < end_of_rows(); r++) {
            if (!is_at_work(r) || x.groups.group(r).expert < 0) continue;
            waiting[n++] = r;
            if (n == most) n = do_waiting(waiting, n);
        }
        do_waiting(waiting, n);
    }
    // Experts in the order of their first rows. Rows of one expert keep their order.
    int64_t do_waiting(int64_t *waiting, int64_t n) {
        while (n > 0) {
            const int expert = x.groups.group(waiting[0]).expert;
            int64_t rows[rows_together], taken = 0, kept = 0;
            for (int64_t i = 0; i < n; i++) {
                if (taken < rows_together && x.groups.group(waiting[i]).expert == expert)
                    rows[taken++] = waiting[i];
                else
                    waiting[kept++] = waiting[i];
            }
            do_rows(rows[0], expert, rows, taken);
            n = kept;
        }
        return 0;
    }

    // Computes the sums of the rows [first, first + count) of the destination. With SCATTER_IDX a row without
    // contributions is an empty sum. Without it, such a row is not written.
    void compute(int64_t first_row, int64_t row_count) {
        first = first_row;
        count = row_count;
        std::fill_n(sums, count * columns, 0.);
        std::fill_n(written, count, x.scatter != nullptr);
        std::fill_n(expert_of, count, -1);
        std::fill_n(group_of, count, 0);
        if (x.groups.grouping == mxdnn_row_grouping_row_ids)
            do_rows_by_id();
        else
            do_groups();
        add_old();
    }

    // Adds beta times the previous destination.
    void add_old() {
        const auto &ops = p.attr.post_ops.ops;
        if (ops.empty() || ops.back().kind != mxdnn_sum) return;
        const post_op_t &o = ops.back();
        const data_type_t as = o.dt == mxdnn_data_type_undef ? p.dst.dt : o.dt;
        for (int64_t i = 0; i < count; i++) {
            if (!written[i]) continue;
            const dim_t m = select_row(dst, dst_md(), first + i);
            for (dim_t c = 0; c < columns; c++)
                sums[i * columns + c] += double(o.scale) * (decode_value(as, dst.code(m, c)) - o.zero_point);
        }
    }

    void store() {
        for (int64_t i = 0; i < count; i++) {
            if (!written[i]) continue;
            const dim_t m = select_row(dst, dst_md(), first + i);
            select_group(dst, dst_md(), p.attr.dst, false, group_of[i], std::max(expert_of[i], 0));
            ref_store_row(dst, p.attr.dst, m, sums + i * columns, columns);
        }
    }
};

} // namespace

status_t ref_grouped_matmul_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const grouped_exec_t x(ctx);
    if (x.dst_rows == 0 || dim_from_end(p.dst, 1) == 0) return write_empty_dst(ctx);
    const int64_t runs = div_up(x.dst_rows, rows_together);
    const int nthr = int(std::min<int64_t>(runs, threads_of(ctx.stream, p.max_concurrency)));
    const auto for_rows = [&](auto &&body) {
        parallel(ctx, nthr, [&](int ithr, int n) {
            ref_grouped_run_t run(ctx, x, ithr);
            int64_t begin, end;
            balance(runs, n, ithr, begin, end);
            for (int64_t i = begin; i < end; i++) {
                run.compute(i * rows_together, std::min(rows_together, x.dst_rows - i * rows_together));
                body(run);
            }
        });
    };

    // A global scale that is computed needs all results first. They are computed twice, not stored.
    if (p.attr.dst.global == mxdnn_quantization_mode_dynamic_fp) {
        const memory_t &global = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        uint32_t *largest = static_cast<uint32_t *>(global.handle);
        const dim_t scales = global.md.dims[0];
        std::fill(largest, largest + scales, 0u);
        for_rows([&](const ref_grouped_run_t &run) {
            for (int64_t i = 0; i < run.count; i++)
                if (run.expert_of[i] >= 0)
                    ref_atomic_max(largest + (scales == 1 ? 0 : run.expert_of[i]),
                            ref_amax(run.sums + i * run.columns, run.columns));
        });
        for (dim_t i = 0; i < scales; i++) largest[i] = bits_of(nvfp4_global_scale(float_of(largest[i])));
    }
    for_rows([](ref_grouped_run_t &run) { run.store(); });
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
