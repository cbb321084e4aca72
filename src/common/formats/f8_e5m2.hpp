// SPDX-License-Identifier: Apache-2.0
// OCP E5M2: has Inf and NaN as IEEE types have, but conversion to it saturates. MX element.
#pragma once

#include "common/formats/minifloat.hpp"

namespace mxdnn {
namespace impl {

struct f8_e5m2_t : minifloat_t<5, 2, 15, specials_t::ieee> {
    static constexpr data_type_t id = mxdnn_f8_e5m2;
    static constexpr const char *name = "f8_e5m2";
    static constexpr unsigned roles = role_mx_element;
    // The code of every element of a block that holds NaN or Inf.
    static constexpr uint32_t poisoned_code = 0x7f;
};
static_assert(f8_e5m2_t::max == 57344.f && f8_e5m2_t::emax == 15 && f8_e5m2_t::nan_code == 0x7f);

} // namespace impl
} // namespace mxdnn
