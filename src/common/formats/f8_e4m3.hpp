// SPDX-License-Identifier: Apache-2.0
// OCP E4M3 ("e4m3fn"): no Inf, one NaN per sign, saturating. MX element, and the scale type of NVFP4.
#pragma once

#include "common/formats/minifloat.hpp"

namespace mxdnn {
namespace impl {

struct f8_e4m3_t : minifloat_t<4, 3, 7, specials_t::nan> {
    static constexpr data_type_t id = mxdnn_f8_e4m3;
    static constexpr const char *name = "f8_e4m3";
    static constexpr unsigned roles = role_mx_element | role_scale;
    // The code of every element of a block that holds NaN or Inf.
    static constexpr uint32_t poisoned_code = 0x7f;
};
static_assert(f8_e4m3_t::max == 448.f && f8_e4m3_t::emax == 8 && f8_e4m3_t::nan_code == 0x7f);

} // namespace impl
} // namespace mxdnn
