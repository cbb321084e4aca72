// SPDX-License-Identifier: Apache-2.0
// Unsigned bytes: the zero points of int4.
#pragma once

#include "common/formats/small_int.hpp"

namespace mxdnn {
namespace impl {

struct u8_t : small_int_t<8, false> {
    static constexpr data_type_t id = mxdnn_u8;
    static constexpr const char *name = "u8";
    static constexpr unsigned roles = role_zero_point;
};

} // namespace impl
} // namespace mxdnn
