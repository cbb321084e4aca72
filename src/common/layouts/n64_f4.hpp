// SPDX-License-Identifier: Apache-2.0
// 4-bit floats for products at the rate of FP8 on CUDA. A step of 64 rows x 64 columns is 16 bytes for each
// of the 128 threads of a warpgroup: one 32-bit word for every 16 rows, with four neighbouring rows of
// columns c and c + 8. These are the bytes of two registers of wgmma for 8-bit types, in the order of K that
// plain rows of the source have. Byte i of the word has the codes of row i:
//     bit 7, bits 3 .. 1    sign and magnitude of column c
//     bit 0, bits 6 .. 4    sign and magnitude of column c + 8
// So a mask makes the register of column c, and two shifts that of column c + 8: codes land as the bits
// s 000ee m0 of an f8_e5m2, which is the e2m1 value times 2^-14 (mma/decode_f4_e5m2.cuh).
#pragma once

#include "common/layouts/n64.hpp"

namespace mxdnn {
namespace impl {

// The bit of the word for bit b of code i: of row i % 4 of the thread's rows, and column c (i < 4) or c + 8.
MXDNN_HD constexpr int n64_f4_bit(int i, int b) {
    return i < 4 ? 8 * i + (b == 3 ? 7 : b + 1) : 8 * (i - 4) + (b == 3 ? 0 : b + 4);
}

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
