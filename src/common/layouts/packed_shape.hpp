// SPDX-License-Identifier: Apache-2.0
// What a layout needs to know of one packed matrix: its size and the sizes of its parts.
#pragma once

#include "common/quant.hpp"

namespace mxdnn {
namespace impl {

// One [K, N] matrix (one batch entry, one expert) with blocks along K.
struct packed_shape_t {
    int64_t K = 0, N = 0;
    int64_t block = 32; // rows of K that share a scale
    int bits = 4;       // of a code
    int scale_bytes = 1;
    int zp_bytes = 0;    // 0 without zero points
    bool global = false; // the matrix begins with an f32 global scale
};

// The position of a bit in a packed matrix.
struct bit_pos_t {
    int64_t byte = 0;
    int bit = 0; // 0 is the least significant
};

constexpr int bytes_of_scale_type(data_type_t dt) {
    return dt == mxdnn_f32                       ? 4
           : dt == mxdnn_bf16 || dt == mxdnn_f16 ? 2
           : dt == mxdnn_data_type_undef         ? 0
                                                 : 1;
}

constexpr packed_shape_t make_packed_shape(int64_t K, int64_t N, int bits, const quant_t &q) {
    packed_shape_t s;
    s.K = K;
    s.N = N;
    s.block = q.block;
    s.bits = bits;
    s.scale_bytes = bytes_of_scale_type(q.scale_dt);
    s.zp_bytes = q.zp == zero_point_kind_t::none ? 0 : bytes_of_scale_type(q.zp_dt);
    s.global = q.global != global_scale_kind_t::none;
    return s;
}

} // namespace impl
} // namespace mxdnn
