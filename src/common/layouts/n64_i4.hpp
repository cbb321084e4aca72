// SPDX-License-Identifier: Apache-2.0
// Integers of 4 bits for CUDA. Steps and words are those of n64_b4; a code's bits stand side by side, because
// as the low bits of a bf16 they are the integer times a power of two, where others have to meet an exponent:
// register r, low half, has bits 4 r .. 4 r + 3 of the word, its high half the same 16 further. Masks alone
// land the codes of registers 0 and 1, and, shifted right by 8, those of registers 2 and 3
// (mma/decode_int4.cuh).
#pragma once

#include "common/layouts/n64.hpp"

namespace mxdnn {
namespace impl {

struct n64_i4_t : n64_frame_t {
    static constexpr uint32_t id = 4, version = 1;
    static constexpr int bits = 4;
    static constexpr const char *name = "n64_i4";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const n64_fragment_t f = n64_fragment(k, n);
        const int bit = 4 * f.reg + b + 16 * f.half;
        return {codes(s, k, n) + f.thread * 16 + k % 64 / 16 * 4 + bit / 8, bit % 8};
    }
};

} // namespace impl
} // namespace mxdnn
