// SPDX-License-Identifier: Apache-2.0
// OCP FP6 E3M2: every code is a number. MX element.
#pragma once

#include "common/formats/minifloat.hpp"

namespace mxdnn {
namespace impl {

struct f6_e3m2_t : minifloat_t<3, 2, 3, specials_t::none> {
    static constexpr data_type_t id = mxdnn_f6_e3m2;
    static constexpr const char *name = "f6_e3m2";
    static constexpr unsigned roles = role_mx_element;
    // The code of every element of a block that holds NaN or Inf.
    static constexpr uint32_t poisoned_code = 0;
};
static_assert(f6_e3m2_t::max == 28.f && f6_e3m2_t::emax == 4);

} // namespace impl
} // namespace mxdnn
