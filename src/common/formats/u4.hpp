// SPDX-License-Identifier: Apache-2.0
// Unsigned 4-bit integers, the codes of int4 with zero points.
#pragma once

#include "common/formats/small_int.hpp"

namespace mxdnn {
namespace impl {

struct u4_t : small_int_t<4, false> {
    static constexpr data_type_t id = mxdnn_u4;
    static constexpr const char *name = "u4";
    static constexpr unsigned roles = role_affine_element;
};

} // namespace impl
} // namespace mxdnn
