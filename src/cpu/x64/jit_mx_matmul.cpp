// SPDX-License-Identifier: Apache-2.0
// Executing: prepare some parts of the rows of the source, let threads take runs of columns of one part after
// the other, finish each row in cache.
#include "cpu/x64/jit_mx_matmul.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "cpu/empty_dst.hpp"
#include "cpu/threading.hpp"
#include "cpu/x64/epilogue.hpp"
#include "cpu/x64/source_rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// One execution of one primitive.
struct jit_mx_matmul_base_t::run_t {
    const jit_mx_matmul_base_t &self;
    const exec_ctx_t &ctx;
    const matmul_conf_t &c;
    matmul_plan_t plan;
    int64_t M, dst_n, batch;
    int64_t k_parts;      // of every task
    int64_t task_columns; // of a task: those of the plan, or several times as many if there are parts of K
    int nthr;
    bool shares_batch;
    bool own_parts;         // each thread copies rows for itself
    bool amax_only = false; // results are only measured, for a global scale

    std::atomic<uint32_t> amax{0}; // bits of a non-negative float: ordered as integers

    // A batch entry, some of its rows, and where these are prepared: for all threads, or for one.
    struct part_t {
        const dim_t *idx = nullptr;
        const uint8_t *weights = nullptr;
        float weights_global = 1.f, src_global = 1.f;
        int64_t m0 = 0, rows = 0, padded_rows = 0;
        const void *source = nullptr;
        int64_t source_stride = 0;
        char *buffer = nullptr;
    };
    float *row_scales(const part_t &p) const {
        return reinterpret_cast<float *>(p.buffer + c.scratch.source);
    }
    float *block_sums(const part_t &p) const {
        return reinterpret_cast<float *>(p.buffer + c.scratch.source + c.scratch.row_scales);
    }
    char *thread_buffer(int ithr) const { return ctx.scratch<char>(scratch_t::thread, ithr); }
    char *source_buffer(int ithr) const {
        return c.scratch.own_sources ? thread_buffer(ithr) + c.scratch.panels + c.scratch.acc
                                     : ctx.scratch<char>(scratch_t::source_rows);
    }

    run_t(const jit_mx_matmul_base_t &s, const exec_ctx_t &x) : self(s), ctx(x), c(s.conf_) {
        const memory_desc_t &dst = x.memory(MXDNN_ARG_DST)->md;
        M = dim_from_end(dst, 2);
        dst_n = dim_from_end(dst, 1);
        batch = batch_of(dst);
        nthr = is_small(batch * M, c.weights.K, c.weights.N) ? 1 : threads_of(x.stream, c.machine.threads);
        shares_batch = c.scratch.own_sources && threads_share_batch(batch, M, c.weights.K, nthr);
        const bool usual = !shares_batch && M == s.usual_.M && nthr == s.usual_.threads;
        plan = usual ? s.usual_.plan : s.plan(x.pd.problem, M, shares_batch ? batch : 1, nthr);
        own_parts = c.has_own_parts(M) && c.streams(plan.direct, M);
        k_parts = c.k_parts(plan.direct, M);
        const int64_t all = div_up(dst_n, plan.columns) * parts_of(M, plan.rows, joined_rows(c.kernels));
        task_columns = plan.columns * (k_parts > 1 ? plan_tasks_together(all, c.machine.threads) : 1);
    }
    int64_t tasks() const { return div_up(dst_n, task_columns); }

    // Decides where kernels read the rows of a part. Returns the number of rows that have to be prepared.
    int64_t place_source(part_t &part) const {
        if (c.weights.K == 0) return 0; // empty sums
        source_rows_t first(ctx, c.compute_dt);
        first.set_batch(part.idx);
        // The last call with a direct kernel reads as many rows as the kernel has. Rows beyond M are zeros.
        part.padded_rows = self.kernels_.padded_rows(plan.direct, part.rows);
        const bool stream = c.streams(plan.direct, part.rows);
        const bool all_exist =
                plan.direct ? part.padded_rows == part.rows : self.kernels_.gemm_reads_in_place(part.rows);
        const bool in_place = !stream && all_exist && !ctx.pd.problem.attr.src.scales.set
                              && !(plan.direct && c.needs_sums) && first.in_place(part.m0)
                              && !c.conflicts(plan.direct, first.in_place_stride(), part.rows);
        part.source = in_place ? first.in_place(part.m0) : part.buffer;
        part.source_stride = in_place ? first.in_place_stride() : c.scratch.source_stride;
        return in_place ? 0 : part.padded_rows;
    }

    // Prepares rows [begin, end) of a part for kernels.
    void prepare_rows(const part_t &part, int64_t begin, int64_t end) const {
        source_rows_t src(ctx, c.compute_dt);
        src.set_batch(part.idx);
        src.set_unsigned(!plan.direct && c.compute_dt == mxdnn_s8);
        const int64_t padded = round_up(c.weights.K, k_step);
        const bool stream = c.streams(plan.direct, part.rows);
        const source_blocks_t blocks = c.stream_of(plan.direct, part.rows);
        for (int64_t r = begin; r < end; r++) {
            char *out = part.buffer + r * part.source_stride;
            source_sums_t sums{row_scales(part) + r,
                    c.needs_sums ? block_sums(part) + r * c.scratch.sums_per_row : nullptr, c.weights.block};
            if (stream) {
                const int64_t n = std::min({end - r, blocks.call_rows(r), int64_t(tile_source_rows)});
                int64_t m[tile_source_rows];
                std::iota(m, m + n, part.m0 + r);
                if (src.copy(m, n, r, blocks, part.buffer, sums))
                    r += n - 1;
                else
                    src.prepare(part.m0 + r, r, blocks, part.buffer, sums);
            } else if (r < part.rows) {
                src.prepare(part.m0 + r, out, padded, sums);
            } else {
                std::memset(out, 0, size_t(padded * c.kernels.compute_bytes));
                if (sums.block_sums)
                    std::memset(sums.block_sums, 0, size_t(c.scratch.sums_per_row) * sizeof(float));
            }
        }
    }

    void prepare_sources(part_t *parts, int n_parts, int threads) const {
        int64_t left[most_parts_together], rows = 0;
        for (int i = 0; i < n_parts; i++) rows += left[i] = place_source(parts[i]);
        if (rows == 0) return;
        const int n = rows * c.weights.K < serial_elements ? 1 : int(std::min<int64_t>(threads, rows));
        parallel(ctx, n, [&](int ithr, int nt) {
            int64_t begin, end; // relative to the part
            balance(rows, nt, ithr, begin, end);
            for (int i = 0; i < n_parts; begin -= left[i], end -= left[i], i++)
                if (begin < left[i] && end > 0)
                    prepare_rows(parts[i], std::max<int64_t>(begin, 0), std::min(end, left[i]));
        });
    }

    // Computes destination columns [c0, c1) of all rows. If there are parts of K: of one part, whose sums, or
    // those of the parts before, are in part_sums.
    void do_columns(const part_t &part, int64_t c0, int64_t c1, int64_t k_part, float *part_sums,
            const epilogue_t &epilogue, char *buffer) {
        float *acc = reinterpret_cast<float *>(buffer + c.scratch.panels);
        const int64_t half = c.half();
        const int64_t n0 = c.weights_column(c0), n1 = c.weights_column(c1);
        panel_operands_t operands{plan.direct, part.rows, part.source, part.source_stride, block_sums(part),
                part.weights, 0, part.rows};
        const bool scaled = ctx.pd.problem.attr.src.scales.set;
        float bias[epilogue_t::most_biases];
        operands.scale = part.weights_global * part.src_global;
        if (!amax_only) {
            operands.dst = epilogue.place_of(part.m0, c0);
            operands.dst_stride = epilogue.dst_row_bytes();
            operands.dst_bytes = epilogue.bytes_of_dst();
        }
        const bool linear = operands.dst && epilogue.is_linear() && !epilogue.has_bias_per_row();
        const bool last_part = k_part + 1 == k_parts;
        operands.k_part = k_part;
        operands.part_sums = part_sums;
        operands.store = last_part && linear
                         && self.kernels_.can_store(plan.direct, c1 - c0, scaled, epilogue.dst_type());
        if (linear) {
            operands.bias = epilogue.bias_of(0, c0, c1 - c0, bias);
            operands.row_scales = scaled ? row_scales(part) : nullptr;
        }
        self.kernels_.multiply(operands, n0, n1, acc, buffer);
        if (operands.store) return;
        if (linear && last_part)
            return epilogue.finish_linear(
                    {acc + n0 % panel_columns, c.scratch.acc_columns, operands.dst, operands.dst_stride,
                            part.rows, c1 - c0, operands.scale, operands.row_scales, operands.bias});
        const int64_t up_at = (div_up(n1, panel_columns) - n0 / panel_columns) * panel_columns;
        float *up = acc + up_at;
        if (part_sums) operands.part_sums += up_at;
        if (c.halves) self.kernels_.multiply(operands, half + c0, half + c1, up, buffer);
        if (!last_part) return;
        float most = 0;
        for (int64_t r = 0; r < part.rows; r++) {
            if (operands.dst && r + rows_ahead < part.rows)
                epilogue_t::fetch(static_cast<char *>(operands.dst) + (r + rows_ahead) * operands.dst_stride,
                        (c1 - c0) * operands.dst_bytes);
            float *x = acc + r * c.scratch.acc_columns + n0 % panel_columns;
            float *u = up + r * c.scratch.acc_columns + (half + c0) % panel_columns;
            row_terms_t row;
            row.m = row.bias_row = part.m0 + r;
            row.scale = scaled ? operands.scale * row_scales(part)[r] : operands.scale;
            if (amax_only)
                most = std::max(most, epilogue.amax_row(row, c0, c1 - c0, x, u));
            else
                epilogue.finish_row(row, c0, c1 - c0, x, u);
        }
        if (!amax_only) return;
        uint32_t seen = amax.load();
        while (seen < bits_of(most) && !amax.compare_exchange_weak(seen, bits_of(most))) {
        }
    }

    void set_entry(part_t &part, const dim_t *idx) const {
        const problem_t &p = ctx.pd.problem;
        part.idx = idx;
        int64_t entry = 0; // a matrix of weights may belong to several of the destination
        for (int i = 0; i < p.weights.ndims - 2; i++)
            entry = entry * p.weights.dims[i] + (p.weights.dims[i] == 1 ? 0 : idx[i]);
        part.weights = ctx.data<const uint8_t>(MXDNN_ARG_WEIGHTS) + entry * c.weights_stride;
        if (c.weights.global) std::memcpy(&part.weights_global, part.weights, sizeof(float));
        if (!p.attr.src.scales.set || p.attr.src.is_dynamic()) return;
        matrix_view_t src(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
        src.set_batch(idx);
        part.src_global = src.global();
    }

    // Calls body(parts, n) for the parts of the rows of an entry, `most` at a time, which `threads` threads
    // prepare.
    template <typename F>
    void for_parts(const part_t &entry, int most, int threads, F &&body) const {
        part_t parts[most_parts_together];
        const int64_t joined = joined_rows(c.kernels);
        for (int64_t m0 = 0; m0 < M;) {
            int n = 0;
            for (; n < most && m0 < M; n++) {
                part_t &part = parts[n] = entry;
                part.m0 = m0;
                part.rows = M - m0 <= plan.rows + joined ? M - m0 : plan.rows;
                part.buffer += n * c.scratch.sources();
                m0 += part.rows;
            }
            prepare_sources(parts, n, threads);
            body(parts, n);
        }
    }

    // A task: a range of columns of a part.
    void do_task(const part_t &part, int64_t t, const epilogue_t &epilogue, int ithr) {
        const int64_t first = t * task_columns, end = std::min(first + task_columns, dst_n);
        float *const sums = k_parts > 1 ? ctx.scratch<float>(scratch_t::partial_sums, ithr) : nullptr;
        for (int64_t k = 0; k < k_parts; k++) {
            float *of_columns = sums;
            for (int64_t c0 = first; c0 < end; c0 += plan.columns) {
                do_columns(part, c0, std::min(c0 + plan.columns, end), k, of_columns, epilogue,
                        thread_buffer(ithr));
                if (sums) of_columns += c.scratch.acc / int64_t(sizeof(float));
            }
        }
    }

    void do_entry(const dim_t *idx) { own_parts ? do_own_parts(idx) : do_batch_entry(idx); }

    // One matrix, shared by all threads.
    void do_batch_entry(const dim_t *idx) {
        part_t entry;
        entry.buffer = source_buffer(0);
        set_entry(entry, idx);
        for_parts(entry, c.scratch.parts, nthr, [&](const part_t *parts, int n_parts) {
            const int n = int(std::min<int64_t>(nthr, tasks()));
            task_shares_t shares(ctx.scratch<task_shares_t::share_t>(scratch_t::tasks), n, n_parts,
                    [&](int i) { return first_of_share(tasks(), n, i); });
            parallel(ctx, n, [&](int ithr, int) {
                epilogue_t epilogue(ctx);
                epilogue.set_batch(idx);
                shares.run(ithr, [&](int p, int64_t t) { do_task(parts[p], t, epilogue, ithr); });
            });
        });
    }

    // One matrix. The tasks of a part precede those of the next one, so a thread has few parts, whose rows it
    // copies for itself.
    void do_own_parts(const dim_t *idx) {
        part_t entry;
        set_entry(entry, idx);
        const int64_t tasks = this->tasks();
        const own_parts_t parts{M, plan.rows, parts_of(M, plan.rows, joined_rows(c.kernels)), tasks};
        const int n = int(std::min<int64_t>(nthr, parts.all_tasks()));
        task_shares_t shares(ctx.scratch<task_shares_t::share_t>(scratch_t::tasks), n, 1,
                [&](int i) { return parts.first_of_share(n, i); });
        parallel(ctx, n, [&](int ithr, int) {
            epilogue_t epilogue(ctx);
            epilogue.set_batch(idx);
            part_t part = entry;
            part.buffer = source_buffer(ithr);
            int64_t copied = -1;
            shares.run_prepared(
                    ithr, div_up(own_parts_t::tasks_of_copy * plan.columns, task_columns),
                    [&](int64_t t) { return t / tasks == copied; },
                    [&](int64_t t) {
                        if (t / tasks != copied) {
                            copied = t / tasks;
                            part.m0 = copied * plan.rows;
                            part.rows = parts.rows_of(copied);
                            prepare_rows(part, 0, place_source(part));
                        }
                        do_task(part, t % tasks, epilogue, ithr);
                    });
        });
    }

    // All matrices of a batch, shared by all threads. Each thread takes a range of the tasks of all matrices.
    void do_batch() {
        const int64_t tasks = this->tasks();
        const memory_desc_t &dst = ctx.memory(MXDNN_ARG_DST)->md;
        parallel(ctx, int(std::min<int64_t>(nthr, batch * tasks)), [&](int ithr, int nt) {
            epilogue_t epilogue(ctx);
            part_t entry;
            entry.buffer = source_buffer(ithr);
            int64_t begin, end;
            balance(batch * tasks, nt, ithr, begin, end);
            while (begin < end) {
                dim_t idx[max_ndims] = {};
                batch_index(dst, begin / tasks, idx);
                const int64_t first = begin % tasks, last = std::min(tasks, first + end - begin);
                set_entry(entry, idx);
                epilogue.set_batch(idx);
                for_parts(entry, 1, 1, [&](const part_t *parts, int) {
                    for (int64_t t = first; t < last; t++) do_task(*parts, t, epilogue, ithr);
                });
                begin += last - first;
            }
        });
    }
};

matmul_plan_t jit_mx_matmul_base_t::plan(const problem_t &p, dim_t M, int64_t batch, int threads) const {
    matmul_shape_t shape;
    shape.M = M;
    shape.K = conf_.weights.K;
    shape.N = conf_.weights.N;
    shape.batch = batch;
    shape.column_step = conf_.column_step;
    shape.gated = conf_.gated;
    shape.own_parts = conf_.has_own_parts(M);
    matmul_machine_t machine = conf_.machine;
    machine.threads = threads;
    matmul_plan_t plan = plan_mx_matmul(shape, p.attr.max_rows_hint, machine, conf_.kernels);
    // Direct calls of parts have all their rows.
    const int64_t call = plan.direct ? conf_.kernels.direct_rows : 1;
    if (plan.rows > conf_.source_rows) plan.rows = conf_.source_rows / call * call;
    return plan;
}

status_t jit_mx_matmul_base_t::execute(const exec_ctx_t &ctx) const {
    const memory_desc_t &dst = ctx.memory(MXDNN_ARG_DST)->md;
    if (few_ && dim_from_end(dst, 2) <= conf_.few_rows) return few_->execute(ctx);
    run_t run(*this, ctx);
    if (run.M == 0 || run.dst_n == 0) return write_empty_dst(ctx);
    if (ctx.record) {
        if (conf_.weights.K > 0) ctx.record->add_kernel(conf_.kernel_names(run.plan.direct));
        ctx.record->division = describe(run.plan);
    }
    const bool global = ctx.pd.problem.attr.dst.global == mxdnn_quantization_mode_dynamic_fp;
    if (run.shares_batch && !global) {
        run.do_batch();
        return mxdnn_success;
    }
    for_each_index(dst.ndims - 2, dst.dims, [&](const dim_t *idx) {
        if (global) {
            // The global scale needs all results first. They are computed twice, not stored.
            run.amax_only = true;
            run.amax = 0;
            run.do_entry(idx);
            run.amax_only = false;
            epilogue_t epilogue(ctx);
            epilogue.set_batch(idx);
            epilogue.set_global(float_of(run.amax));
        }
        run.do_entry(idx);
    });
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
