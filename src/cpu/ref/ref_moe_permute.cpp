// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/ref_moe_permute.hpp"

#include <cmath>

#include "cpu/ref/tensor_view.hpp"

namespace mxdnn {
namespace impl {

namespace {

// Rows of values or codes and, of a quantised tensor, the scales of their blocks.
struct rows_t {
    matrix_view_t src, dst;
    dim_t cols;
    memory_desc_t const &dst_md;
    uint8_t *swizzled; // the scales of dst, if they are in the 128x4 order

    explicit rows_t(const exec_ctx_t &ctx)
        : src(ctx, MXDNN_ARG_SRC, ctx.pd.problem.src, ctx.pd.problem.attr.src),
          dst(ctx, MXDNN_ARG_DST, ctx.pd.problem.dst, ctx.pd.problem.attr.dst),
          cols(ctx.memory(MXDNN_ARG_DST)->md.dims[1]), dst_md(ctx.memory(MXDNN_ARG_DST)->md),
          swizzled(ctx.pd.problem.attr.dst.layout == mxdnn_scales_swizzle_128x4
                           ? ctx.data<uint8_t>(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST)
                           : nullptr) {}

    dim_t block() const { return dst.quant().block; }

    // src_row -1: zeros, also for scales.
    void move(dim_t dst_row, dim_t src_row) const {
        for (dim_t c = 0; c < cols; c++) dst.set_code(dst_row, c, src_row < 0 ? 0 : src.code(src_row, c));
        if (!dst.quantised()) return;
        for (dim_t c = 0; c < cols; c += block())
            dst.set_params(dst_row, c, src_row < 0 ? block_params_t() : src.params(src_row, c));
        pad_scales(dst_row);
    }

    // The columns of a tile that no scale of the row uses are zero.
    void pad_scales(dim_t row) const {
        if (!swizzled) return;
        const dim_t own = div_up(cols, block());
        for (dim_t c = own; c < round_up(own, swizzle_128x4::tile_cols); c++)
            swizzled[swizzle_128x4::offset(row, c, own)] = 0;
    }
    // The rows of the last tile that the tensor does not have are zero, too.
    void pad_rows(dim_t rows) const {
        if (!swizzled) return;
        const dim_t own = div_up(cols, block());
        for (dim_t r = rows; r < round_up(rows, swizzle_128x4::tile_rows); r++)
            for (dim_t c = 0; c < round_up(own, swizzle_128x4::tile_cols); c++)
                swizzled[swizzle_128x4::offset(r, c, own)] = 0;
    }
};

} // namespace

status_t ref_moe_permute_t::execute(const exec_ctx_t &ctx) const {
    const permute_plan_t plan(ctx);
    MXDNN_CHECK(plan.init(ctx.pd.problem.permute.alignment));
    plan.write_offsets(ctx);
    int32_t *idx = ctx.data<int32_t>(MXDNN_ARG_PERMUTED_IDX);
    const rows_t rows(ctx);
    if (rows.cols > 0 || idx)
        plan.for_runs(0, plan.end(), [&](dim_t dst_row, dim_t src_row, dim_t n) {
            for (dim_t i = 0; i < n; i++) {
                const dim_t from = src_row < 0 ? -1 : src_row + i;
                rows.move(dst_row + i, from);
                if (idx) idx[dst_row + i] = int32_t(from);
            }
        });
    // Rows after the last end belong to no expert.
    for (dim_t row = plan.end(); idx && row < plan.dst_rows; row++) idx[row] = -1;
    return mxdnn_success;
}

status_t ref_moe_unpermute_t::execute(const exec_ctx_t &ctx) const {
    const unpermute_plan_t plan(ctx);
    MXDNN_CHECK(plan.init());
    const rows_t rows(ctx);
    if (rows.cols == 0) return mxdnn_success;
    const data_type_info_t *dst = data_type_info(ctx.pd.problem.dst.dt);
    for (dim_t t = 0; t < plan.tokens; t++) {
        const dim_t in_part = t % plan.part_tokens();
        if (in_part == 0) plan.invert(t);
        const int32_t *from = plan.inverse + in_part * plan.k;
        if (rows.dst.quantised()) {
            rows.move(t, from[0]);
            continue;
        }
        for (dim_t c = 0; c < rows.cols; c++) {
            // A sum in the order of the choices. Choices without a row add nothing.
            float sum = 0;
            bool first = true;
            for (dim_t j = 0; j < plan.k; j++) {
                if (from[j] < 0) continue;
                const float x = rows.src.value(from[j], c), w = plan.weight(t * plan.k + j);
                sum = first ? w * x : std::fma(w, x, sum);
                first = false;
            }
            rows.dst.set_code(t, c, dst->encode(sum));
        }
    }
    if (rows.dst.quantised()) rows.pad_rows(plan.tokens);
    return mxdnn_success;
}

} // namespace impl
} // namespace mxdnn
