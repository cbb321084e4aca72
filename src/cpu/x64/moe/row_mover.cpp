// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/moe/row_mover.hpp"

#include "common/formats/plain_bits.hpp"

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
    if (bytes_ == 0) return; // there may be no memory
    const uint8_t *from = src_ + src * src_pitch_;
    uint8_t *to = dst_ + dst * dst_pitch_;
    if (src_pitch_ == bytes_ && dst_pitch_ == bytes_)
        std::memcpy(to, from, size_t(n * bytes_));
    else
        for (dim_t i = 0; i < n; i++) std::memcpy(to + i * dst_pitch_, from + i * src_pitch_, size_t(bytes_));
    if (dst_scales_.data)
        for (dim_t i = 0; i < n; i++) move_scales(dst + i, src + i);
}

void row_mover_t::move_scales(dim_t dst, dim_t src) const {
    const scale_rows_t &s = src_scales_, &d = dst_scales_;
    const uint8_t *from = s.at(src, 0);
    uint8_t *to = d.at(dst, 0);
    if (s.contiguous() && d.contiguous()) {
        std::memcpy(to, from, size_t(s.cols * s.width));
        return;
    }
    // Four columns of a row are contiguous, except with strides. In the 128x4 order the next four are a tile
    // further.
    dim_t c = 0;
    if ((s.swizzled || s.contiguous()) && (d.swizzled || d.contiguous())) {
        const int64_t s_step = s.swizzled ? swizzle_128x4::tile : 4,
                      d_step = d.swizzled ? swizzle_128x4::tile : 4;
        for (; c + 4 <= s.cols; c += 4) std::memcpy(to + c / 4 * d_step, from + c / 4 * s_step, 4);
    }
    for (; c < s.cols; c++) std::memcpy(d.at(dst, c), s.at(src, c), size_t(s.width));
    pad_row(dst, s.cols);
}

void row_mover_t::zero(dim_t dst, dim_t n) const {
    if (bytes_ == 0) return;
    const scale_rows_t &d = dst_scales_;
    for (dim_t row = dst; row < dst + n; row++) {
        std::memset(dst_ + row * dst_pitch_, 0, size_t(bytes_));
        if (!d.data) continue;
        if (d.contiguous())
            std::memset(d.at(row, 0), 0, size_t(d.cols * d.width));
        else if (d.swizzled)
            pad_row(row, 0);
        else
            for (dim_t c = 0; c < d.cols; c++) std::memset(d.at(row, c), 0, size_t(d.width));
    }
}

void row_mover_t::pad(dim_t rows) const {
    if (!dst_scales_.swizzled) return;
    for (dim_t row = rows; row < round_up(rows, swizzle_128x4::tile_rows); row++) pad_row(row, 0);
}

// Writes zeros from column first_col of the row to the end of its 128x4 tiles.
void row_mover_t::pad_row(dim_t row, dim_t first_col) const {
    const scale_rows_t &d = dst_scales_;
    if (!d.swizzled) return;
    const dim_t end = round_up(d.cols, swizzle_128x4::tile_cols);
    dim_t c = first_col;
    for (; c < end && c % 4; c++) *d.at(row, c) = 0;
    uint8_t *to = d.at(row, c);
    for (; c < end; c += 4, to += swizzle_128x4::tile) std::memset(to, 0, 4);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
