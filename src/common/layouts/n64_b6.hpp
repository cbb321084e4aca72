// SPDX-License-Identifier: Apache-2.0
// 6-bit codes for CUDA. A step of 64 rows x 64 columns is two planes: 16 bytes for each of the 128
// threads with the low four bits of its codes, then 8 bytes each with the top two bits.
//     low plane    a word for every 16 rows; registers 0 1 2 3 in bits 7..4, 3..0, 11..8, 15..12
//                  of each half
//     top plane    a word for every 32 rows; rotated right by 2 j it has the top two bits of
//                  register j % 4 of the 16 rows j / 4 in bits 15 and 8 of each half
// so that a shift and a mask for each plane land a code as s 000000e mmmm0000 (e2m3).
#pragma once

#include "common/layouts/n64.hpp"

namespace mxdnn {
namespace impl {

// The bit of the low plane's word for bit b < 4 of the code of register reg, low half. That of the high half
// is 16 further.
MXDNN_HD constexpr int n64_b6_low_bit(int reg, int b) {
    const int first[4] = {4, 0, 8, 12};
    return first[reg] + b;
}
// The same for the top plane's word: bits 4 and 5 of the first or the second (step 0 or 1) of its 16 rows;
// modulo 32.
MXDNN_HD constexpr int n64_b6_top_bit(int step, int reg, int b) {
    return (b == 5 ? 15 : 8) + 2 * (step * 4 + reg);
}

struct n64_b6_t : n64_frame_t {
    static constexpr uint32_t id = 2, version = 1;
    static constexpr int bits = 6;
    static constexpr const char *name = "n64_b6";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const n64_fragment_t f = n64_fragment(k, n);
        const int64_t base = codes(s, k, n), step = k % 64 / 16;
        if (b < 4) {
            const int bit = n64_b6_low_bit(f.reg, b) + 16 * f.half;
            return {base + f.thread * 16 + step * 4 + bit / 8, bit % 8};
        }
        const int bit = (n64_b6_top_bit(int(step % 2), f.reg, b) + 16 * f.half) & 31;
        return {base + 128 * 16 + f.thread * 8 + step / 2 * 4 + bit / 8, bit % 8};
    }
};

} // namespace impl
} // namespace mxdnn
