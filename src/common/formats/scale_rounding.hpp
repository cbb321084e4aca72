// SPDX-License-Identifier: Apache-2.0
// The e8m0 scale of an MX block from its largest magnitude, in the four ways that can be chosen.
#pragma once

#include "common/formats/float_bits.hpp"

namespace mxdnn {
namespace impl {

using scale_rounding_t = mxdnn_scale_rounding_t;

// The properties of an element type that the choice of a scale needs.
struct e8m0_target_t {
    int emax; // exponent of the largest value
    int mantissa_bits;
    float max;
    bool is_float;
};

template <typename element_t>
inline constexpr e8m0_target_t e8m0_target = {
        element_t::emax, element_t::mantissa_bits, element_t::max, element_t::is_float};

constexpr uint32_t e8m0_poison = 255; // the scale of a block that holds NaN or Inf

// `even` rounds to the mantissa of the element. An integer has none.
MXDNN_HD constexpr bool is_scale_rounding_defined(bool element_is_float, scale_rounding_t rounding) {
    switch (rounding) {
    case mxdnn_scale_rounding_floor:
    case mxdnn_scale_rounding_ceil:
    case mxdnn_scale_rounding_rceil: return true;
    case mxdnn_scale_rounding_even: return element_is_float;
    }
    return false;
}

// amax_bits is the largest magnitude_bits() of the block. The result is 255 for NaN and Inf. It is also 255
// for a rounding that is not defined for the element, so that such a mistake cannot look like data.
MXDNN_HD constexpr uint32_t e8m0_from_amax(
        uint32_t amax_bits, const e8m0_target_t &element, scale_rounding_t rounding) {
    if (amax_bits >= f32_inf_bits || !is_scale_rounding_defined(element.is_float, rounding))
        return e8m0_poison;

    if (rounding == mxdnn_scale_rounding_rceil) {
        const float d = mul_f32(float_of(amax_bits), div_f32(1.f, element.max));
        const uint32_t u = bits_of(d), field = u >> 23, mantissa = u & 0x7fffff;
        if (field == 0) return mantissa > 0x400000 ? 1 : 0;
        const uint32_t code = field + (mantissa != 0);
        return code > 254 ? 254 : code;
    }

    // Exponent fields, not exponents of values: subnormals count as -127, and rounding may carry beyond 127.
    uint32_t u = amax_bits;
    if (rounding == mxdnn_scale_rounding_even) u += 1u << (23 - element.mantissa_bits - 1);
    int exponent = int(u >> 23) - 127;
    if (rounding == mxdnn_scale_rounding_ceil) exponent += (u & 0x7fffff) != 0;
    exponent -= element.emax;
    return uint32_t((exponent < -127 ? -127 : exponent > 127 ? 127 : exponent) + 127);
}

template <typename element_t>
MXDNN_HD constexpr uint32_t e8m0_from_amax(uint32_t amax_bits, scale_rounding_t rounding) {
    return e8m0_from_amax(amax_bits,
            {element_t::emax, element_t::mantissa_bits, element_t::max, element_t::is_float}, rounding);
}

} // namespace impl
} // namespace mxdnn
