// SPDX-License-Identifier: Apache-2.0
// How the codes of a quantised matrix are to be read: everything but the codes' own type.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

enum class zero_point_kind_t : uint8_t {
    none = 0,
    u8 = 1,        // value = (code - zp) * scale
    float_zero = 2 // value = (code - 8) * scale + zero, u4 only
};

enum class global_scale_kind_t : uint8_t { none = 0, one = 1, per_expert = 2 };

struct quant_t {
    data_type_t scale_dt = mxdnn_data_type_undef;
    dim_t block = 0; // elements along the blocked axis that share a scale
    zero_point_kind_t zp = zero_point_kind_t::none;
    data_type_t zp_dt = mxdnn_data_type_undef;              // u8, or for float_zero a floating type
    global_scale_kind_t global = global_scale_kind_t::none; // f32, for NVFP4 only

    MXDNN_HD friend constexpr bool operator==(const quant_t &a, const quant_t &b) {
        return a.scale_dt == b.scale_dt && a.block == b.block && a.zp == b.zp && a.zp_dt == b.zp_dt
               && a.global == b.global;
    }
    MXDNN_HD friend constexpr bool operator!=(const quant_t &a, const quant_t &b) { return !(a == b); }
};

} // namespace impl
} // namespace mxdnn
