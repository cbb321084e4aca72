// SPDX-License-Identifier: Apache-2.0
// Signed 4-bit integers, the codes of symmetric int4.
#pragma once

#include "common/formats/small_int.hpp"

namespace mxdnn {
namespace impl {

struct s4_t : small_int_t<4, true> {
    static constexpr data_type_t id = mxdnn_s4;
    static constexpr const char *name = "s4";
    static constexpr unsigned roles = role_affine_element;
};

} // namespace impl
} // namespace mxdnn
