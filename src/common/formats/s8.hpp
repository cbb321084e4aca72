// SPDX-License-Identifier: Apache-2.0
// Signed bytes. decode() reads them as MXINT8, where a code counts steps of 2^-6; under floating-point scales
// the code itself is multiplied.
#pragma once

#include "common/formats/small_int.hpp"

namespace mxdnn {
namespace impl {

// The integer of a code is to_int(code).
struct s8_t : small_int_t<8, true> {
    static constexpr data_type_t id = mxdnn_s8;
    static constexpr const char *name = "s8";
    static constexpr unsigned roles = role_mx_element | role_affine_element;
    static constexpr uint32_t poisoned_code = 0;

    static constexpr int lowest = -highest; // -128 can be decoded but is never encoded

    static constexpr float step = 1.f / 64;
    static constexpr float max = 127 * step;
    static constexpr int emax = 0;

    MXDNN_HD static constexpr float decode(uint32_t code) { return float(to_int(code)) * step; }
    MXDNN_HD static constexpr uint32_t encode(float x) {
        return from_int(rne_clamp(mul_f32(x, 1 / step), lowest, highest));
    }
    MXDNN_HD static constexpr uint32_t encode_saturating(float x) { return encode(x); }
};

} // namespace impl
} // namespace mxdnn
