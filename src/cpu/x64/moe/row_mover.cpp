// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/moe/row_mover.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

bool has_contiguous_rows(const memory_desc_t &md) {
    return md.strides[1] == 1 && (data_type_info(md.dt)->bits >= 8 || inner_dim(md) == 1);
}

scale_rows_t::scale_rows_t(const exec_ctx_t &ctx, int arg) {
    const arg_attr_t &a = *ctx.pd.problem.attr.arg(arg);
    if (!a.scales.set) return;
    const memory_t &m = *ctx.memory(MXDNN_ARG_ATTR_SCALES | arg);
    data = static_cast<uint8_t *>(m.handle);
    width = data_type_info(a.scales.dt)->bits / 8;
    quant_t quant;
    int axis = 0;
    const memory_desc_t &md = ctx.memory(arg)->md;
    quant_of("", md, a, quant, &axis); // accepted when the descriptor was created
    cols = div_up(md.dims[1], quant.block);
    swizzled = a.layout == mxdnn_scales_swizzle_128x4;
    if (swizzled) return;
    pitch = m.md.strides[0] * width;
    step = m.md.strides[1] * width;
}

row_mover_t::row_mover_t(const exec_ctx_t &ctx)
    : src_(ctx.data<const uint8_t>(MXDNN_ARG_SRC)), dst_(ctx.data<uint8_t>(MXDNN_ARG_DST)),
      src_scales_(ctx, MXDNN_ARG_SRC), dst_scales_(ctx, MXDNN_ARG_DST) {
    const memory_desc_t &s = ctx.memory(MXDNN_ARG_SRC)->md, &d = ctx.memory(MXDNN_ARG_DST)->md;
    const int code_bits = data_type_info(s.dt)->bits;
    const mxdnn_element_packing_t packing = ctx.pd.problem.attr.src.packing;
    const int bits = storage_bits(code_bits, packing);
    bytes_ = plain_row_bytes(s.dims[1], code_bits, packing);
    src_pitch_ = stride_bytes(s, 0, bits);
    dst_pitch_ = stride_bytes(d, 0, bits);
}

void row_mover_t::move(dim_t dst, dim_t src, dim_t n) const {
    if (bytes_ == 0) return; // and maybe no memory
    const uint8_t *from = src_ + src * src_pitch_;
    uint8_t *to = dst_ + dst * dst_pitch_;
    if (src_pitch_ == bytes_ && dst_pitch_ == bytes_)
        std::memcpy(to, from, size_t(n * bytes_));
    else
        for (dim_t i = 0; i < n; i++) std::memcpy(to + i * dst_pitch_, from + i * src_pitch_, size_t(bytes_));
    const scale_rows_t &s = src_scales_, &d = dst_scales_;
    if (!s.data) return;
    for (dim_t i = 0; i < n; i++) {
        if (s.contiguous() && d.contiguous()) {
            std::memcpy(d.at(dst + i, 0), s.at(src + i, 0), size_t(s.cols * s.width));
        } else {
            for (dim_t c = 0; c < s.cols; c++)
                std::memcpy(d.at(dst + i, c), s.at(src + i, c), size_t(s.width));
            pad_row(dst + i, s.cols);
        }
    }
}

void row_mover_t::zero(dim_t dst, dim_t n) const {
    for (dim_t row = dst; bytes_ > 0 && row < dst + n; row++) {
        std::memset(dst_ + row * dst_pitch_, 0, size_t(bytes_));
        const scale_rows_t &d = dst_scales_;
        if (!d.data) continue;
        for (dim_t c = 0; c < d.cols; c++) std::memset(d.at(row, c), 0, size_t(d.width));
        pad_row(row, d.cols);
    }
}

void row_mover_t::pad(dim_t rows) const {
    if (!dst_scales_.swizzled) return;
    for (dim_t row = rows; row < round_up(rows, swizzle_128x4::tile_rows); row++) pad_row(row, 0);
}

// Columns of the row's 128x4 tiles from first_col on.
void row_mover_t::pad_row(dim_t row, dim_t first_col) const {
    if (!dst_scales_.swizzled) return;
    for (dim_t c = first_col; c < round_up(dst_scales_.cols, swizzle_128x4::tile_cols); c++)
        *dst_scales_.at(row, c) = 0;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
