// SPDX-License-Identifier: Apache-2.0
// 4-bit floats for products at the rate of FP8 on CUDA. A step of 64 rows x 64 columns is 16 bytes for each
// of the 128 threads of a warpgroup: one 32-bit word for every 16 rows, with four neighbouring rows of
// columns c and c + 8. These are the bytes of two registers of wgmma for 8-bit types, in the order of K that
// plain rows of the source have. Magnitudes stand as nibbles side by side, so that a byte permutation looks
// four of them up at once, and signs where a mask lands them (mma/decode_f4_lookup.cuh). Of code i, which is
// row i % 4 of the thread's rows, and column c (i < 4) or c + 8:
//     magnitude    bits 4 i .. 4 i + 2
//     sign         bit 8 i + 7 if i < 4, bit 8 (i - 4) + 3 otherwise
#pragma once

#include "common/layouts/n64.hpp"

namespace mxdnn {
namespace impl {

// The bit of the word for bit b of code i.
MXDNN_HD constexpr int n64_f4_bit(int i, int b) { return b < 3 ? 4 * i + b : i < 4 ? 8 * i + 7 : 8 * i - 29; }

struct n64_f4_t : n64_frame_t {
    static constexpr uint32_t id = 5, version = 1;
    static constexpr int bits = 4;
    static constexpr const char *name = "n64_f4";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const int column = int(n % 64), row = int(k % 16);
        const int thread = column / 16 * 32 + column % 8 * 4 + row / 4;
        const int bit = n64_f4_bit(column / 8 % 2 * 4 + row % 4, b);
        return {codes(s, k, n) + thread * 16 + k % 64 / 16 * 4 + bit / 8, bit % 8};
    }
};

} // namespace impl
} // namespace mxdnn
