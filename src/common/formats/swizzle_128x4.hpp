// SPDX-License-Identifier: Apache-2.0
// Where the 128x4 order keeps the scale of (row, column): tiles of 128 rows by 4 columns, 512 bytes each,
// as Blackwell tensor cores and cuBLASLt read them. One matrix; every expert is padded on its own.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

struct swizzle_128x4 {
    static constexpr int64_t tile_rows = 128, tile_cols = 4, tile = tile_rows * tile_cols;

    // Bytes of the padded matrix. Padding is zero.
    MXDNN_HD static constexpr int64_t size(int64_t rows, int64_t cols) {
        return div_up(rows, tile_rows) * div_up(cols, tile_cols) * tile;
    }
    MXDNN_HD static constexpr int64_t offset(int64_t row, int64_t col, int64_t cols) {
        return (row / tile_rows * div_up(cols, tile_cols) + col / tile_cols) * tile + row % 32 * 16
               + row % tile_rows / 32 * 4 + col % tile_cols;
    }
};

} // namespace impl
} // namespace mxdnn
