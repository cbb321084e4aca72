// SPDX-License-Identifier: Apache-2.0
// 8-bit codes for x86. Sixteen columns of four rows make one 64-byte vector of four 16-byte
// lanes; a lane holds four columns: rows 0 1 of each in its low half, rows 2 3 in its high half.
// Looked up in byte tables and interleaved within lanes (unpack low, unpack high), they become
// the bf16 pairs (0, 1) and (2, 3), a dword per column in the order of the columns.
#pragma once

#include "common/layouts/n16.hpp"

namespace mxdnn {
namespace impl {

// The byte of row 0..3 and column 0..15 within a vector. n16_b6 has the same order.
MXDNN_HD constexpr int64_t n16_byte_in_vector(int64_t row, int64_t column) {
    return column / 4 * 16 + row / 2 * 8 + column % 4 * 2 + row % 2;
}

struct n16_b8_t : n16_frame_t {
    static constexpr uint32_t id = 3, version = 1;
    static constexpr int bits = 8;
    static constexpr const char *name = "n16_b8";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const int64_t row = k % tile_rows(s);
        return {codes(s, k, n) + row / 4 * 64 + n16_byte_in_vector(row % 4, n % columns), b};
    }
};

} // namespace impl
} // namespace mxdnn
