// SPDX-License-Identifier: Apache-2.0
// bfloat16: f32's exponents, 7 bits of mantissa; rounds to nearest even and overflows to Inf.
#pragma once

#include "common/formats/minifloat.hpp"

namespace mxdnn {
namespace impl {

struct bf16_t : minifloat_t<8, 7, 127, specials_t::ieee, overflow_t::infinity> {
    static constexpr data_type_t id = mxdnn_bf16;
    static constexpr const char *name = "bf16";
    static constexpr unsigned roles = role_high_precision | role_scale | role_zero_point;
};
static_assert(bf16_t::max == 0x1.fep127f && bf16_t::nan_code == 0x7fc0);

} // namespace impl
} // namespace mxdnn
