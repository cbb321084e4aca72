// SPDX-License-Identifier: Apache-2.0
// 4-bit codes for CUDA. A step of 64 rows x 64 columns is 16 bytes for each of the 128 threads of
// a warpgroup: one 32-bit word for every 16 rows, which holds the eight codes of the thread's four
// fragment registers. Bits are placed so that masks and shifts land the code of a register's half
// as the bits s 000000ee m000000 of a bf16, which is the e2m1 value times 2^-126:
//     register 0    w
//     register 1    w rotated right by 4
//     register 2    w shifted left by 6
//     register 3    w rotated right by 6, but its lowest code bit from w shifted left by 2
// all under the mask 0x81C0 in each half (mma/decode_f4.cuh).
#pragma once

#include "common/layouts/n64.hpp"

namespace mxdnn {
namespace impl {

// The bit of the word for bit b of the code of register reg, low half. That of the high half is 16 further,
// modulo 32.
MXDNN_HD constexpr int n64_b4_bit(int reg, int b) {
    const int landing = b == 3 ? 15 : 6 + b; // s; e e m
    const int from_right[4] = {0, 4, -6, 6};
    return reg == 3 && b == 0 ? 4 : (landing + from_right[reg]) & 31;
}

struct n64_b4_t : n64_frame_t {
    static constexpr uint32_t id = 1, version = 1;
    static constexpr int bits = 4;
    static constexpr const char *name = "n64_b4";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const n64_fragment_t f = n64_fragment(k, n);
        const int bit = (n64_b4_bit(f.reg, b) + 16 * f.half) & 31;
        return {codes(s, k, n) + f.thread * 16 + k % 64 / 16 * 4 + bit / 8, bit % 8};
    }
};

} // namespace impl
} // namespace mxdnn
