// SPDX-License-Identifier: Apache-2.0
// What the kernels for mx_reorder of rows in groups are told.
#pragma once

#include "common/group_scales.hpp"
#include "common/row_groups.hpp"
#include "gpu/cuda/interface/tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// A CTA of quantise_groups has a square of so many rows of a group and columns: a tile of the 128x4 order of
// either side.
constexpr int group_square = int(swizzle_128x4::tile_rows);

// One destination, in rows of codes of a byte.
struct quantised_groups_t {
    uint8_t *codes; // null: there is none
    uint8_t *scales;
    bool swizzled;
    int64_t scale_row_step, scale_col_step; // bytes, of linear scales
    int64_t limit;                          // rows of linear scales, bytes of those in the 128x4 order
    mxdnn_scale_rounding_t rounding;
};

struct quantise_groups_args_t {
    data_type_t src_dt, dst_dt;
    const uint8_t *src; // rows of 16-bit values
    int64_t columns;    // a multiple of 16
    row_groups_t groups;
    quantised_groups_t along_columns, along_rows; // blocks of 32
};

// Squares of rows that there may be.
inline int64_t most_group_squares(const row_groups_t &g) {
    return (g.rows + (group_square - 1) * (g.groups < g.rows ? g.groups : g.rows)) / group_square;
}

// For the reference.
struct grouped_reorder_args_t {
    reorder_args_t all; // the rows of all groups as one matrix
    row_groups_t groups;
    group_scales_t scales[2]; // of src and dst
    int64_t limits[2];        // as above
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
