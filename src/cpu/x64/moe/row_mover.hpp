// SPDX-License-Identifier: Apache-2.0
// Moving whole rows of a matrix, and the scales of their blocks, as bytes.
#pragma once

#include "common/formats/format_list.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// The scales of one side: linear with any strides, or in the 128x4 order.
struct scale_rows_t {
    uint8_t *data = nullptr; // null: not quantised
    bool swizzled = false;
    int64_t pitch = 0, step = 0; // linear: bytes from row to row and from column to column
    dim_t cols = 0;
    int width = 1; // bytes of a scale

    scale_rows_t() = default;
    scale_rows_t(const exec_ctx_t &ctx, int arg);

    bool contiguous() const { return !swizzled && step == width; }
    uint8_t *at(dim_t row, dim_t col) const {
        return data + (swizzled ? swizzle_128x4::offset(row, col, cols) : row * pitch + col * step);
    }
};

// Moves rows from one tensor to another of the same format. Rows of both are contiguous.
class row_mover_t {
public:
    explicit row_mover_t(const exec_ctx_t &ctx);

    // Bytes of a row of the destination.
    int64_t row_bytes() const { return bytes_ + src_scales_.cols * src_scales_.width; }

    // Copies rows [src, src + n) to rows [dst, dst + n).
    void move(dim_t dst, dim_t src, dim_t n) const;
    // Writes rows of zeros, with zero scales.
    void zero(dim_t dst, dim_t n) const;
    // Clears the scales of the last 128x4 tile that belong to no row.
    void pad(dim_t rows) const;

private:
    void move_scales(dim_t dst, dim_t src) const;
    void pad_row(dim_t row, dim_t first_col) const;

    const uint8_t *src_;
    uint8_t *dst_;
    int64_t src_pitch_, dst_pitch_, bytes_;
    scale_rows_t src_scales_, dst_scales_;
};

// Whether the rows of md are contiguous.
bool has_contiguous_rows(const memory_desc_t &md);

} // namespace x64
} // namespace impl
} // namespace mxdnn
