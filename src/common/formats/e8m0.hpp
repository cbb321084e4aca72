// SPDX-License-Identifier: Apache-2.0
// OCP E8M0: powers of two from 2^-127 to 2^127 and NaN; the scale of every MX format.
#pragma once

#include "common/formats/float_bits.hpp"
#include "common/formats/roles.hpp"

namespace mxdnn {
namespace impl {

struct e8m0_t {
    static constexpr data_type_t id = mxdnn_e8m0;
    static constexpr const char *name = "e8m0";
    static constexpr unsigned roles = role_scale;
    static constexpr int bits = 8;
    static constexpr int bias = 127;
    static constexpr int mantissa_bits = 0;
    static constexpr bool is_float = true;
    static constexpr bool is_signed = false;
    static constexpr float max = exp2_f32(127);
    static constexpr int emax = 127;
    static constexpr uint32_t max_code = 254;
    static constexpr uint32_t nan_code = 255;

    MXDNN_HD static constexpr float decode(uint32_t code) {
        code &= 0xff;
        return code == nan_code ? float_of(f32_nan_bits) : exp2_f32(int(code) - bias);
    }

    // The factor by which the elements of a block are multiplied before they are rounded, 2^(127 - code). The
    // scale is not NaN.
    MXDNN_HD static constexpr float decode_inverse(uint32_t code) {
        return exp2_f32(bias - int(code & 0xff));
    }

    // The nearest power of two. Ties go to the even code; values beyond the ends saturate. NaN, Inf and
    // negative values give NaN. The scale of a block is computed in another way: see scale_rounding.hpp.
    MXDNN_HD static constexpr uint32_t encode(float x) {
        const uint32_t u = bits_of(x);
        if (magnitude_bits(x) == 0) return 0;
        if (u >= f32_inf_bits) return nan_code;          // negative values too
        if (u < 0x800000u) return u > 0x600000u ? 1 : 0; // code 0 is the subnormal 0x400000
        const uint32_t code = (u + 0x3fffffu + ((u >> 23) & 1)) >> 23;
        return code > max_code ? max_code : code;
    }
    MXDNN_HD static constexpr uint32_t encode_saturating(float x) { return encode(x); }
};

} // namespace impl
} // namespace mxdnn
