// SPDX-License-Identifier: Apache-2.0
// 6-bit codes for x86. Sixteen rows of sixteen columns are four vectors of 64 codes in the order
// of n16_b8, kept in three: vector 0, 1, 2 in the low six bits of the bytes, and vector 3 in their
// top two bits, two bits of each code in each of the three (lowest bits in the first). A byte
// permute ignores the top bits of its index, so three of four vectors need no unpacking at all.
#pragma once

#include "common/layouts/n16_b8.hpp"

namespace mxdnn {
namespace impl {

struct n16_b6_t : n16_frame_t {
    static constexpr uint32_t id = 2, version = 1;
    static constexpr int bits = 6;
    static constexpr const char *name = "n16_b6";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const int64_t row = k % tile_rows(s), vector = row % 16 / 4;
        const int64_t base = codes(s, k, n) + row / 16 * 192 + n16_byte_in_vector(row % 4, n % columns);
        return vector < 3 ? bit_pos_t{base + vector * 64, b} : bit_pos_t{base + b / 2 * 64, 6 + b % 2};
    }
};

} // namespace impl
} // namespace mxdnn
