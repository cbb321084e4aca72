// SPDX-License-Identifier: Apache-2.0
// IEEE binary32: the type that all arithmetic is done in; its codes are its bits.
#pragma once

#include "common/formats/float_bits.hpp"
#include "common/formats/roles.hpp"

namespace mxdnn {
namespace impl {

struct f32_t {
    static constexpr data_type_t id = mxdnn_f32;
    static constexpr const char *name = "f32";
    static constexpr unsigned roles = role_high_precision | role_scale | role_zero_point;
    static constexpr int bits = 32;
    static constexpr int mantissa_bits = 23;
    static constexpr bool is_float = true;
    static constexpr bool is_signed = true;
    static constexpr float max = float_of(f32_max_bits);
    static constexpr int emax = 127;
    static constexpr uint32_t nan_code = f32_nan_bits;

    MXDNN_HD static constexpr float decode(uint32_t code) { return float_of(code); }
    MXDNN_HD static constexpr uint32_t encode(float x) { return bits_of(x); }
    MXDNN_HD static constexpr uint32_t encode_saturating(float x) {
        return magnitude_bits(x) == f32_inf_bits ? (bits_of(x) & f32_sign_mask) | f32_max_bits : bits_of(x);
    }
};

} // namespace impl
} // namespace mxdnn
