// SPDX-License-Identifier: Apache-2.0
// 4-bit integers with groups to bf16 pairs: in f32, as the reference computes them, and rounded once. Lanes
// of f32 stand in the order of the pairs, so that rounding two registers into one leaves nothing to move.
#pragma once

#include "common/layouts/n16.hpp"
#include "cpu/x64/kernels/avx512_core_bf16/pair_decoder.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

class int4_decoder_t {
public:
    int4_decoder_t(jit_base_t &j, data_type_t wei_dt, const quant_t &quant)
        : j_(j), wei_dt_(wei_dt), zp_(quant.zp) {}

    void take_registers(zmm_pool_t &pool);
    void load_constants();
    // Parameters of a group: 16 scales in f32 at `scales`, and 16 zero points if the format has any.
    void load_params(const Xbyak::RegExp &scales, const Xbyak::RegExp &zero_points);
    // Decodes 16 rows of codes to eight vectors, one pair of rows each, in ascending order. `rows` of them
    // exist: any number from none to more than 16.
    static constexpr int pairs = 8;
    void decode_pair(int pair, const Xbyak::RegExp &codes, const Xbyak::RegExp &dst, int rows);

private:
    jit_base_t &j_;
    const data_type_t wei_dt_;
    const zero_point_kind_t zp_;
    // By halves of the columns.
    Xbyak::Zmm twice_[2], scale_[2], zero_[2], codes_[2], value_[2], table_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
