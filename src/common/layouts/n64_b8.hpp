// SPDX-License-Identifier: Apache-2.0
// 8-bit codes for CUDA. A step of 32 rows x 64 columns is 16 bytes for each of the 128 threads of
// a warpgroup: two words for every 16 rows. Word 0 holds register 0 in the low byte of each half
// and register 1 in the high byte, word 1 registers 2 and 3.
#pragma once

#include "common/layouts/n64.hpp"

namespace mxdnn {
namespace impl {

struct n64_b8_t : n64_frame_t {
    static constexpr uint32_t id = 3, version = 1;
    static constexpr int bits = 8;
    static constexpr const char *name = "n64_b8";

    MXDNN_HD static constexpr bit_pos_t elem_bit(const packed_shape_t &s, int64_t k, int64_t n, int b) {
        const n64_fragment_t f = n64_fragment(k, n);
        return {codes(s, k, n) + f.thread * 16 + k % 32 / 16 * 8 + f.reg / 2 * 4 + f.half * 2 + f.reg % 2, b};
    }
};

} // namespace impl
} // namespace mxdnn
