// SPDX-License-Identifier: Apache-2.0
// OCP FP4 E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. MX and NVFP4 element.
#pragma once

#include "common/formats/minifloat.hpp"

namespace mxdnn {
namespace impl {

struct f4_e2m1_t : minifloat_t<2, 1, 1, specials_t::none> {
    static constexpr data_type_t id = mxdnn_f4_e2m1;
    static constexpr const char *name = "f4_e2m1";
    static constexpr unsigned roles = role_mx_element;
    // The code of every element of a block that holds NaN or Inf.
    static constexpr uint32_t poisoned_code = 0;
};
static_assert(f4_e2m1_t::max == 6.f && f4_e2m1_t::emax == 2);

} // namespace impl
} // namespace mxdnn
