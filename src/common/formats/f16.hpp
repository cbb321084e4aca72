// SPDX-License-Identifier: Apache-2.0
// IEEE binary16: rounds to nearest even and overflows to Inf.
#pragma once

#include "common/formats/minifloat.hpp"

namespace mxdnn {
namespace impl {

struct f16_t : minifloat_t<5, 10, 15, specials_t::ieee, overflow_t::infinity> {
    static constexpr data_type_t id = mxdnn_f16;
    static constexpr const char *name = "f16";
    static constexpr unsigned roles = role_high_precision | role_scale | role_zero_point;
};
static_assert(f16_t::max == 65504.f && f16_t::nan_code == 0x7e00);

} // namespace impl
} // namespace mxdnn
