// SPDX-License-Identifier: Apache-2.0
// Where the scales of rows in groups are: those of all groups stand one after the other.
#pragma once

#include "common/formats/swizzle_128x4.hpp"

namespace mxdnn {
namespace impl {

// The scales of one side of a reorder.
struct group_scales_t {
    int64_t block = 0; // 0: there are none
    bool of_rows = false, swizzled = false;
    int64_t columns = 0; // of the side

    // Bytes of the 128x4 order of a group of so many rows; rows of linear scales.
    MXDNN_HD int64_t length(int64_t rows) const {
        if (!swizzled) return of_rows ? div_up(rows, block) : rows;
        return of_rows ? swizzle_128x4::size(columns, div_up(rows, block))
                       : swizzle_128x4::size(rows, div_up(columns, block));
    }
    // Each row has scales of its own, which are where the row is.
    MXDNN_HD bool follows_rows() const { return !swizzled && !of_rows; }
};

} // namespace impl
} // namespace mxdnn
