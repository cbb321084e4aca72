// SPDX-License-Identifier: Apache-2.0
#include "cpu/ref/tensor_view.hpp"

#include <cstring>

namespace mxdnn {
namespace impl {

namespace {

// The place of an element: the first byte of its row, and its column along the dim with stride 1, which
// matters for codes below a byte only.
struct location_t {
    int64_t row_byte;
    int64_t col;
};

location_t locate(const memory_desc_t &md, const dim_t *idx, int code_bits, element_packing_t packing) {
    const int bits = storage_bits(code_bits, packing), inner = bits % 8 ? inner_dim(md) : -1;
    location_t at = {0, 0};
    for (int i = 0; i < md.ndims; i++)
        if (i == inner)
            at.col = idx[i];
        else if (idx[i])
            at.row_byte += idx[i] * stride_bytes(md, i, bits);
    return at;
}

} // namespace

uint32_t plain_view_t::load(const dim_t *idx) const {
    const int bits = data_type_info(md->dt)->bits;
    const location_t at = locate(*md, idx, bits, packing);
    if (bits < 8) return get_code(data + at.row_byte, at.col, bits, packing);
    uint32_t code = 0;
    std::memcpy(&code, data + at.row_byte, bits / 8);
    return code;
}

void plain_view_t::store(const dim_t *idx, uint32_t code) const {
    const int bits = data_type_info(md->dt)->bits;
    const location_t at = locate(*md, idx, bits, packing);
    if (bits < 8) return set_code(data + at.row_byte, at.col, bits, packing, code);
    std::memcpy(data + at.row_byte, &code, bits / 8);
}

matrix_view_t::matrix_view_t(
        const exec_ctx_t &ctx, int arg, const memory_desc_t &pd_md, const arg_attr_t &attr)
    : dt_(pd_md.dt), ndims_(pd_md.ndims), scales_layout_(attr.layout), md_(&pd_md) {
    const memory_t *given = ctx.memory(arg);
    if (is_packed(pd_md)) {
        quantised_ = packed_ = true;
        quant_ = pd_md.packed.quant;
        axis_ = 2;
        packed_data_ = given ? static_cast<uint8_t *>(given->handle) : nullptr;
        packed_stride_ = pd_md.packed.stride;
        packed_matrix_ = {layout_of(pd_md), shape_of(pd_md), packed_data_};
        return;
    }
    md_ = &given->md;
    elements_ = plain_view_t(*given, attr.packing);
    if (!attr.scales.set || has_role(dt_, role_high_precision)) return; // not quantised, or only in execute
    quantised_ = true;
    quant_of("", *md_, attr, quant_, &axis_); // accepted when the descriptor was created
    scales_ = plain_view_t(*ctx.memory(MXDNN_ARG_ATTR_SCALES | arg));
    if (quant_.zp != zero_point_kind_t::none)
        zero_points_ = plain_view_t(*ctx.memory(MXDNN_ARG_ATTR_ZERO_POINTS | arg));
    if (quant_.global != global_scale_kind_t::none) global_ = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg);
}

void matrix_view_t::set_batch(const dim_t *idx) {
    batch_index_ = 0;
    for (int i = 0; i < ndims_ - 2; i++) {
        batch_[i] = md_->dims[i] == 1 ? 0 : idx[i];
        batch_index_ = batch_index_ * md_->dims[i] + batch_[i];
    }
    global_index_ = batch_index_;
    if (packed_data_) packed_matrix_.data = packed_data_ + batch_index_ * packed_stride_;
}

uint32_t matrix_view_t::code(dim_t row, dim_t col) const {
    if (packed_) return packed_matrix_.code(row, col);
    dim_t idx[max_ndims];
    std::memcpy(idx, batch_, sizeof(idx));
    idx[ndims_ - 2] = row;
    idx[ndims_ - 1] = col;
    return elements_.load(idx);
}

void matrix_view_t::set_code(dim_t row, dim_t col, uint32_t code) const {
    if (packed_) return packed_matrix_.set_code(row, col, code);
    dim_t idx[max_ndims];
    std::memcpy(idx, batch_, sizeof(idx));
    idx[ndims_ - 2] = row;
    idx[ndims_ - 1] = col;
    elements_.store(idx, code);
}

void matrix_view_t::scale_index(dim_t row, dim_t col, dim_t *idx) const {
    (axis_ == 2 ? row : col) /= quant_.block;
    if (scales_layout_ == mxdnn_scales_swizzle_128x4) {
        // The rows of the 128x4 order run along the dim that is not blocked.
        const dim_t blocks = div_up(md_->dims[ndims_ - axis_], quant_.block);
        idx[0] = batch_index_;
        if (axis_ == 1) row += scale_row_shift_;
        idx[1] = axis_ == 2 ? swizzle_128x4::offset(col, row, blocks)
                            : swizzle_128x4::offset(row, col, blocks);
        return;
    }
    std::memcpy(idx, batch_, sizeof(batch_));
    idx[ndims_ - 2] = row;
    idx[ndims_ - 1] = col;
}

block_params_t matrix_view_t::params(dim_t row, dim_t col) const {
    block_params_t p;
    if (packed_) {
        p.scale = packed_matrix_.scale(row, col);
        if (quant_.zp != zero_point_kind_t::none) p.zp = packed_matrix_.zero_point(row, col);
        return p;
    }
    dim_t idx[max_ndims];
    scale_index(row, col, idx);
    p.scale = scales_.load(idx);
    if (zero_points_.md) p.zp = zero_points_.load(idx);
    return p;
}

void matrix_view_t::set_params(dim_t row, dim_t col, const block_params_t &p) const {
    if (packed_) {
        packed_matrix_.set_scale(row, col, p.scale);
        if (quant_.zp != zero_point_kind_t::none) packed_matrix_.set_zero_point(row, col, p.zp);
        return;
    }
    dim_t idx[max_ndims];
    scale_index(row, col, idx);
    scales_.store(idx, p.scale);
    if (zero_points_.md) zero_points_.store(idx, p.zp);
}

float matrix_view_t::global() const {
    if (packed_) return packed_matrix_.global();
    if (!global_) return 1.f;
    return static_cast<const float *>(global_->handle)[global_->md.dims[0] == 1 ? 0 : global_index_];
}

void matrix_view_t::set_global(float g) const {
    if (packed_) return packed_matrix_.set_global(g);
    if (global_) static_cast<float *>(global_->handle)[global_->md.dims[0] == 1 ? 0 : global_index_] = g;
}

float matrix_view_t::value(dim_t row, dim_t col) const {
    if (!quantised_) return decode_value(dt_, code(row, col));
    return dequantize_element(dt_, quant_, params(row, col), global(), code(row, col));
}

} // namespace impl
} // namespace mxdnn
