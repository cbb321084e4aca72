// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/gradient/jit_grouped_backward_weights.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

#include "common/backward_weights_exec.hpp"
#include "common/formats/format_list.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/threading.hpp"
#include "cpu/x64/gradient/word_rows.hpp"
#include "cpu/x64/matmul_plan.hpp"
#include "cpu/x64/moe/simd_moe_route.hpp"
#include "cpu/x64/reorder/reorder_kernels.hpp"
#include "cpu/x64/rows/row_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// How far ahead rows are fetched. They are short parts of long ones, which the processor's own prefetch does
// not follow.
constexpr int64_t fetched_ahead = 16;
constexpr int64_t line = 16; // dwords of a cache line: columns of a panel, steps that are transposed
constexpr int64_t step = gradient_step_bytes / 4; // dwords of a column that are multiplied together

// Parts of the buffer of a thread, in dwords.
struct parts_t {
    int64_t left, panels, sums, words, scales, old, size;

    explicit parts_t(const gradient_plan_t &block) {
        const int64_t widest = round_up(std::max(block.left, block.right), line);
        left = 0;
        panels = left + block.left * step;
        sums = panels + block.right * step;
        words = sums + block.left * block.right;
        scales = words + line * widest;
        old = scales + widest;
        size = old + widest;
    }
};

bool is_contiguous(const memory_desc_t &md, int dim) { return md.dims[dim] <= 1 || md.strides[dim] == 1; }

// Rows whose elements are contiguous, also where strides are known at the execution only.
reason_t check_rows(const char *name, const memory_desc_t &md) {
    if (is_contiguous(md, md.ndims - 1)) return yes();
    return no(name, to_string(md).c_str(), "columns that are contiguous");
}

} // namespace

void gradient_conf_t::book(scratch_parts_t &scratch, int threads) const {
    scratch.book(scratch_t::thread, parts_t(block).size * 4, threads);
}

reason_t configure(gradient_conf_t &c, const problem_t &p, cpu_isa_t isa) {
    const reason_t may = may_run(p, isa);
    if (!may.ok()) return may;
    const bool wants_pairs = p.src.dt != mxdnn_f32 && p.src.dt != mxdnn_f16
                             && preferred_compute(isa, cpu_family()) != mxdnn_f32;
    const auto find = [&](kernel_kind_t kind, data_type_t compute_dt) {
        return find_kernel(kind, isa, mxdnn_data_type_undef, {}, compute_dt);
    };
    if (wants_pairs) c.gemm = find(kernel_kind_t::gradient, mxdnn_bf16);
    if (wants_pairs && !c.gemm) c.gemm = find(kernel_kind_t::gemm, mxdnn_bf16);
    c.pairs = c.gemm != nullptr;
    if (!c.pairs) c.gemm = find(kernel_kind_t::gemm, mxdnn_f32);
    // Each ISA has its own list entry. If it has no kernel of its own here, the next entry is as good.
    if (!c.gemm || c.gemm->isa != isa)
        return no("kernels", c.gemm ? isa_name(c.gemm->isa) : "none", isa_name(isa));
    for (const auto &rows : {check_rows("src", p.src), check_rows("diff_dst", p.diff_dst)})
        if (!rows.ok()) return rows;
    const memory_desc_t &d = p.diff_weights;
    c.swapped = !is_contiguous(d, 2);
    if (c.swapped && !is_contiguous(d, 1))
        return no("diff_weights", to_string(d).c_str(), "K or N to be contiguous");
    for (const post_op_t &o : p.attr.post_ops.ops)
        if (o.dt != mxdnn_data_type_undef && !has_role(o.dt, role_high_precision))
            return no("sum", data_type_name(o.dt), "f32, bf16 or f16");

    c.rows = c.gemm->max_rows;
    c.panels = 1;
    for (int panels : c.gemm->panels) c.panels = std::max(c.panels, panels);
    gradient_shape_t shape{d.dims[0], d.dims[1], d.dims[2]};
    if (c.swapped) std::swap(shape.left, shape.right);
    c.block = plan_gradient(
            shape, {cache_sizes().l2, p.max_concurrency, c.rows, int(c.panels * panel_columns)});
    return yes();
}

std::string describe(const gradient_conf_t &c) {
    return "block:" + std::to_string(c.block.left) + "x" + std::to_string(c.block.right) + " rows:"
           + std::to_string(c.step_rows()) + (c.swapped ? " transposed:diff_dst" : " transposed:src");
}

status_t jit_grouped_backward_weights_base_t::create_kernel() {
    kernel_params_t k;
    k.rows = conf_.rows;
    k.panels = conf_.panels;
    const char *reason = nullptr;
    const status_t status = x64::create_kernel(*conf_.gemm, k, &gemm_, &reason);
    if (status == mxdnn_success) return status;
    return fail(status, "kernel %s could not be generated: %s", conf_.gemm->name,
            reason ? reason : "no reason given");
}

struct jit_grouped_backward_weights_base_t::run_t {
    using group_t = backward_weights_exec_t::group_t;
    struct columns_t {
        int64_t first, count;
    };

    const gradient_conf_t &c;
    const jit_kernel_t &gemm;
    const problem_t &p;
    const memory_t &diff_weights;
    const grouped_operand_t &left, &right;
    const reorder_kernels_t &kernels;
    const bool around; // whether results bypass the caches
    uint32_t *buffer;
    const parts_t parts{c.block};
    const int64_t rows_of_dword = c.pairs ? 2 : 1;
    // The columns of the left operand that are in the buffer with all rows of their group; -1: none.
    int64_t kept_group = -1, kept_first = -1;

    float *floats(int64_t part) const { return reinterpret_cast<float *>(buffer + part); }

    // A dword for each of the columns, from `row` of the group on. Rows from `end` on are zeros.
    void load_words(const grouped_operand_t &o, int64_t g, const group_t &group, const columns_t &columns,
            int64_t row, int64_t end, uint32_t *words) const {
        const int64_t n = columns.count, bytes = data_type_info(o.md->dt)->bits / 8;
        if (row >= end) {
            std::memset(words, 0, size_t(n) * 4);
            return;
        }
        if (o.scales && row % o.block == 0) {
            const int64_t stride = o.scales_column_stride();
            const uint8_t *codes = static_cast<const uint8_t *>(o.scales->handle)
                                   + o.scales_offset(g, group.first_block, row / o.block)
                                   + columns.first * stride;
            word_rows_avx2.scales(codes, stride, floats(parts.scales), n);
        }
        const auto at = [&](int64_t r) {
            return o.data + (o.row_offset(group.first + r) + columns.first) * bytes;
        };
        for (int64_t r = row + fetched_ahead; r < std::min(end, row + fetched_ahead + rows_of_dword); r++)
            for (int64_t b = 0; b < n * bytes; b += 64) __builtin_prefetch(at(r) + b, 0, 3);
        const uint8_t *second = nullptr;
        if (c.pairs && row + 1 < end) {
            second = at(row + 1);
        } else if (c.pairs) {
            std::memset(buffer + parts.old, 0, size_t(n * bytes));
            second = reinterpret_cast<const uint8_t *>(buffer + parts.old);
        }
        word_rows_avx2.words(o.md->dt, at(row), second, floats(parts.scales), words, n);
    }

    // [column][dword]. A call of the kernel has `rows` columns, so columns of zeros follow.
    void load_left(
            int64_t g, const group_t &group, const columns_t &columns, int64_t row, int64_t dwords) const {
        uint32_t *words = buffer + parts.words, *to = buffer + parts.left;
        const int64_t pitch = round_up(columns.count, line);
        for (int64_t first = 0; first < dwords; first += line) {
            for (int64_t i = 0; i < line; i++)
                load_words(left, g, group, columns, row + (first + i) * rows_of_dword, group.rows,
                        words + i * pitch);
            kernels.transpose(4, words, pitch * 4, int(line), int(columns.count), to + first, step * 4);
        }
        const int64_t all = round_up(columns.count, c.rows);
        std::memset(to + columns.count * step, 0, size_t((all - columns.count) * step) * 4);
    }

    // [panel][dword][16], with columns of zeros up to whole calls of the kernel.
    void load_right(
            int64_t g, const group_t &group, const columns_t &columns, int64_t row, int64_t dwords) const {
        uint32_t *words = buffer + parts.words, *to = buffer + parts.panels;
        const int64_t all = round_up(columns.count, c.panels * panel_columns);
        std::memset(words + columns.count, 0, size_t(all - columns.count) * 4);
        for (int64_t i = 0; i < dwords; i++) {
            load_words(right, g, group, columns, row + i * rows_of_dword, group.rows, words);
            for (int64_t n = 0; n < all; n += panel_columns)
                std::memcpy(to + n * step + i * panel_columns, words + n, panel_columns * 4);
        }
    }

    void multiply(const columns_t &l, const columns_t &r, int64_t dwords, bool accumulate) const {
        gemm_args_t a = {};
        a.src_stride = step * 4;
        a.wei_stride = step * panel_columns * 4;
        a.k = dwords * rows_of_dword;
        a.acc_stride = c.block.right * 4;
        a.accumulate = accumulate;
        // A call's panels stay in the first-level cache, while the left operand passes by.
        for (int64_t n = 0; n < r.count; n += c.panels * panel_columns)
            for (int64_t m = 0; m < l.count; m += c.rows) {
                a.src = buffer + parts.left + m * step;
                a.wei = buffer + parts.panels + n * step;
                a.fetch = a.wei;
                a.acc = floats(parts.sums) + m * c.block.right + n;
                gemm(&a);
            }
    }

    // Sums of a block of a gradient.
    void compute(int64_t g, const group_t &group, const columns_t &l, const columns_t &r) {
        // Nothing is added to a gradient without rows, so a sum begins with -0 there.
        if (group.rows == 0)
            std::fill_n(
                    floats(parts.sums), l.count * c.block.right, p.attr.post_ops.ops.empty() ? 0.f : -0.f);
        const int64_t step_rows = c.step_rows();
        for (int64_t row = 0; row < group.rows; row += step_rows) {
            const int64_t dwords = round_up(std::min(step_rows, group.rows - row), k_step) / rows_of_dword;
            if (kept_group != g || kept_first != l.first) load_left(g, group, l, row, dwords);
            load_right(g, group, r, row, dwords);
            multiply(l, r, dwords, row > 0);
        }
        kept_group = group.rows <= step_rows ? g : -1;
        kept_first = l.first;
    }

    void store(int64_t g, const columns_t &l, const columns_t &r) const {
        const memory_desc_t &md = diff_weights.md;
        const int64_t bytes = data_type_info(md.dt)->bits / 8;
        const row_kernels_t &rows = row_kernels();
        float *old = floats(parts.old);
        for (int64_t m = 0; m < l.count; m++) {
            float *x = floats(parts.sums) + m * c.block.right;
            const int64_t at = g * md.strides[0] + (l.first + m) * md.strides[c.swapped ? 2 : 1] + r.first;
            uint8_t *to = static_cast<uint8_t *>(diff_weights.handle) + at * bytes;
            for (const post_op_t &o : p.attr.post_ops.ops) {
                rows.to_f32(o.dt == mxdnn_data_type_undef ? md.dt : o.dt, to, 1, old, r.count);
                rows.add_scaled(x, old, o.scale, float(o.zero_point), r.count);
            }
            if (around)
                rows.from_f32_around(md.dt, x, to, r.count);
            else
                rows.from_f32(md.dt, x, to, 1, r.count);
        }
    }
};

status_t jit_grouped_backward_weights_base_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const backward_weights_exec_t x(ctx);
    const memory_t &diff_weights = *ctx.memory(MXDNN_ARG_DIFF_WEIGHTS);
    const grouped_operand_t &left = conf_.swapped ? x.diff_dst : x.src,
                            &right = conf_.swapped ? x.src : x.diff_dst;
    const int64_t G = p.diff_weights.dims[0], L = left.columns(), R = right.columns();
    if (G == 0 || L == 0 || R == 0) return mxdnn_success;
    const int64_t across = div_up(R, conf_.block.right), tasks = div_up(L, conf_.block.left) * across;
    // What a task takes is about its rows, and storing the results.
    constexpr int64_t rows_of_storing = 32;
    int64_t all = 0;
    x.for_each_group([&](int64_t, const backward_weights_exec_t::group_t &group) {
        all += (group.rows + rows_of_storing) * tasks;
    });
    const int nthr = int(std::min<int64_t>(G * tasks, threads_of(ctx.stream, p.max_concurrency)));
    // Sums that are added to are in the caches in any case.
    const bool around = p.attr.post_ops.ops.empty() && size_of(diff_weights.md) / nthr > cache_sizes().l2 / 2;
    if (ctx.record) ctx.record->add_kernel(gemm_->name());
    parallel(ctx, nthr, [&](int ithr, int n) {
        run_t run{conf_, *gemm_, p, diff_weights, left, right,
                conf_.gemm->isa == cpu_isa_t::avx2 ? reorder_kernels_avx2 : reorder_kernels_avx512, around,
                ctx.scratch<uint32_t>(scratch_t::thread, ithr)};
        // The tasks that begin in the thread's share of the work.
        int64_t begin, end, at = 0;
        balance(all, n, ithr, begin, end);
        x.for_each_group([&](int64_t g, const backward_weights_exec_t::group_t &group) {
            const int64_t cost = group.rows + rows_of_storing;
            const auto task_from = [&](int64_t work) {
                return std::clamp<int64_t>(div_up(std::max<int64_t>(work - at, 0), cost), 0, tasks);
            };
            for (int64_t i = task_from(begin); i < task_from(end); i++) {
                const int64_t first_left = i / across * conf_.block.left,
                              first_right = i % across * conf_.block.right;
                const run_t::columns_t l{first_left, std::min(conf_.block.left, L - first_left)},
                        r{first_right, std::min(conf_.block.right, R - first_right)};
                run.compute(g, group, l, r);
                run.store(g, l, r);
            }
            at += cost * tasks;
        });
        if (around) _mm_sfence();
    });
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
