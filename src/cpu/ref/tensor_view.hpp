// SPDX-License-Identifier: Apache-2.0
// One matrix of a tensor, in any form, element by element: what the reference is written in.
#pragma once

#include "common/formats/plain_bits.hpp"
#include "common/formats/quantize_block.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {

// Element (row, col) of batch entry b of a plain tensor begins at bit get_bit(). Strides count elements. Rows
// of types below a byte begin on a byte.
struct plain_view_t {
    const memory_desc_t *md = nullptr;
    uint8_t *data = nullptr;
    element_packing_t packing = mxdnn_element_packing_bytes;

    plain_view_t() = default;
    plain_view_t(const memory_t &m, element_packing_t p = mxdnn_element_packing_bytes)
        : md(&m.md), data(static_cast<uint8_t *>(m.handle)), packing(p) {}

    uint32_t load(const dim_t *idx) const;
    void store(const dim_t *idx, uint32_t code) const;
    float value(const dim_t *idx) const { return decode_value(md->dt, load(idx)); }
};

// A matrix [rows, cols] of one batch entry: quantised or not, plain or packed. `b` counts all batch entries
// in order. A tensor with fewer entries is broadcast.
class matrix_view_t {
public:
    // `arg` is MXDNN_ARG_SRC, WEIGHTS or DST of the problem whose memories ctx holds; a packed tensor may
    // be absent, see set_packed_data().
    matrix_view_t(const exec_ctx_t &ctx, int arg, const memory_desc_t &pd_md, const arg_attr_t &attr);

    // Selects the batch entry by the leading indices of the destination.
    void set_batch(const dim_t *idx);
    // For a packed tensor whose entries are not consecutive: the address of the selected one.
    void set_packed_data(uint8_t *data) { packed_matrix_.data = data; }
    // For rows of groups: the expert that the global scale belongs to, and how many rows the 128x4 scales are
    // ahead of the values.
    void set_global_index(dim_t i) { global_index_ = i; }
    void set_scale_row_shift(dim_t rows) { scale_row_shift_ = rows; }

    bool quantised() const { return quantised_; }
    const quant_t &quant() const { return quant_; }
    bool has_global() const { return quantised_ && quant_.global != global_scale_kind_t::none; }
    int axis_from_end() const { return axis_; }
    data_type_t dt() const { return dt_; }
    // The first byte of the batch entry of a packed tensor.
    uint8_t *packed_data() const { return packed_matrix_.data; }

    float value(dim_t row, dim_t col) const;
    uint32_t code(dim_t row, dim_t col) const;
    void set_code(dim_t row, dim_t col, uint32_t code) const;
    // The parameters of the block that has the element.
    block_params_t params(dim_t row, dim_t col) const;
    void set_params(dim_t row, dim_t col, const block_params_t &p) const;
    float global() const;
    void set_global(float g) const;

private:
    void scale_index(dim_t row, dim_t col, dim_t *idx) const;

    data_type_t dt_;
    bool quantised_ = false, packed_ = false;
    quant_t quant_;
    int axis_ = 1, ndims_;
    mxdnn_scales_layout_t scales_layout_;
    plain_view_t elements_, scales_, zero_points_;
    const memory_t *global_ = nullptr;
    packed_view_t packed_matrix_{};
    uint8_t *packed_data_ = nullptr;
    int64_t packed_stride_ = 0;
    const memory_desc_t *md_; // with runtime dims known
    dim_t batch_[max_ndims] = {};
    dim_t batch_index_ = 0;  // number of the entry among this tensor's own
    dim_t global_index_ = 0; // batch_index_, or an expert
    dim_t scale_row_shift_ = 0;
};

// Calls body(idx) for every index of the first `ndims` dims, last dim fastest.
template <typename F>
void for_each_index(int ndims, const dim_t *dims, F &&body) {
    dim_t idx[max_ndims] = {};
    for (int i = 0; i < ndims; i++)
        if (dims[i] == 0) return;
    for (;;) {
        body(static_cast<const dim_t *>(idx));
        int i = ndims - 1;
        while (i >= 0 && ++idx[i] == dims[i]) idx[i--] = 0;
        if (i < 0) return;
    }
}

} // namespace impl
} // namespace mxdnn
