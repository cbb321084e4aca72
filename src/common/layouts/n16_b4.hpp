// SPDX-License-Identifier: Apache-2.0
// 4-bit codes for x86. Sixteen columns of eight rows make one 64-byte vector, a dword lane per
// column; the low word of a lane holds rows 0 2 4 6, the high word rows 1 3 5 7. Shifted right by
// 4 s, the low four bits of the two words are therefore the pair (2s, 2s+1) that a bf16 dot
// product wants, and the low bits of the lane are one row for an f32 kernel.
#pragma once

#include "common/layouts/n16.hpp"

namespace mxdnn {
namespace impl {

struct n16_b4_t : n16_frame_t {
    static constexpr uint32_t id = 1, version = 1;
    static constexpr int bits = 4;
    static constexpr const char *name = "n16_b4";

    // Bit b of the code of element (k, n).
    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const int64_t row = k % tile_rows(s);
        const int nibble = int(row % 2) * 4 + int(row % 8) / 2;
        return {codes(s, k, n) + row / 8 * 64 + n % columns * 4 + nibble / 2, nibble % 2 * 4 + b};
    }
};

} // namespace impl
} // namespace mxdnn
