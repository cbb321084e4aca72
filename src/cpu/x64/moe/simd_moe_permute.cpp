// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/moe/simd_moe_permute.hpp"

#include <algorithm>

#include "common/problem_util.hpp"
#include "cpu/threading.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// For less than this it does not pay to wake a thread.
constexpr int64_t bytes_per_thread = 64 << 10;

// Calls fn(begin, end) for parts of [0, rows), on as many threads as their bytes justify.
template <typename F>
void for_rows(const exec_ctx_t &ctx, dim_t rows, int64_t bytes_per_row, F &&fn) {
    const dim_t wanted = std::max<dim_t>(1, std::min(rows, rows * bytes_per_row / bytes_per_thread));
    const int nthr = int(std::min<dim_t>(wanted, threads_of(ctx.stream, ctx.pd.problem.max_concurrency)));
    parallel(ctx, nthr, [&](int ithr, int n) {
        int64_t begin, end;
        balance(rows, n, ithr, begin, end);
        fn(begin, end);
    });
}

} // namespace

reason_t takes_rows(const problem_t &p) {
    for (const memory_desc_t *md : {&p.src, &p.dst})
        if (!has_contiguous_rows(*md))
            return no(md == &p.src ? "src" : "dst", to_string(*md).c_str(), "rows of stride 1");
    return yes();
}

status_t rows_moe_permute_t::execute(const exec_ctx_t &ctx) const {
    const permute_plan_t plan(ctx);
    MXDNN_CHECK(plan.init(ctx.pd.problem.permute.alignment));
    plan.write_offsets(ctx);
    int32_t *idx = ctx.data<int32_t>(MXDNN_ARG_PERMUTED_IDX);
    const row_mover_t rows(ctx);
    for_rows(ctx, plan.end(), rows.row_bytes(), [&](dim_t begin, dim_t end) {
        plan.for_runs(begin, end, [&](dim_t dst, dim_t src, dim_t n) {
            if (src < 0)
                rows.zero(dst, n);
            else
                rows.move(dst, src, n);
            for (dim_t i = 0; idx && i < n; i++) idx[dst + i] = src < 0 ? -1 : int32_t(src + i);
        });
    });
    // Rows after the last end belong to no expert.
    if (idx) std::fill(idx + plan.end(), idx + plan.dst_rows, -1);
    return mxdnn_success;
}

void simd_moe_unpermute_base_t::combine(
        const exec_ctx_t &ctx, const unpermute_plan_t &plan, dim_t first, dim_t tokens) const {
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &dst = *ctx.memory(MXDNN_ARG_DST);
    const int64_t src_width = data_type_info(src.md.dt)->bits / 8,
                  dst_width = data_type_info(dst.md.dt)->bits / 8;
    const combine_params_t params = {src.md.dt, dst.md.dt, static_cast<const uint8_t *>(src.handle),
            src.md.strides[0] * src_width, src.md.dims[1], int(plan.k), plan.weights, plan.weights_dt};
    const int64_t bytes = params.cols * (plan.k * src_width + dst_width);
    for_rows(ctx, tokens, bytes, [&](dim_t begin, dim_t end) {
        for (dim_t t = begin; t < end; t++) {
            uint8_t *to = static_cast<uint8_t *>(dst.handle) + (first + t) * dst.md.strides[0] * dst_width;
            kernels_.combine(params, plan.inverse + t * plan.k, (first + t) * plan.k, to);
        }
    });
}

void simd_moe_unpermute_base_t::move(
        const exec_ctx_t &ctx, const unpermute_plan_t &plan, dim_t first, dim_t tokens) const {
    const row_mover_t rows(ctx);
    for_rows(ctx, tokens, 2 * rows.row_bytes(), [&](dim_t begin, dim_t end) {
        for (dim_t t = begin; t < end; t++) {
            const int32_t from = plan.inverse[t];
            if (from < 0)
                rows.zero(first + t, 1);
            else
                rows.move(first + t, from, 1);
        }
    });
    rows.pad(plan.tokens);
}

status_t simd_moe_unpermute_base_t::execute(const exec_ctx_t &ctx) const {
    const unpermute_plan_t plan(ctx);
    MXDNN_CHECK(plan.init());
    if (ctx.memory(MXDNN_ARG_DST)->md.dims[1] == 0) return mxdnn_success;
    for (dim_t first = 0; first < plan.tokens; first += plan.part_tokens()) {
        if (first > 0) plan.invert(first);
        const dim_t tokens = std::min(plan.part_tokens(), plan.tokens - first);
        // Rows without weights are copied as bytes.
        const problem_t &p = ctx.pd.problem;
        if (is_high_precision(p.dst.dt) && (plan.weights || p.src.dt != p.dst.dt))
            combine(ctx, plan, first, tokens);
        else
            move(ctx, plan, first, tokens);
    }
    return mxdnn_success;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
