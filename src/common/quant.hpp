// SPDX-License-Identifier: Apache-2.0
// How the codes of a quantised matrix are to be read: everything but the codes' own type.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

enum class zero_point_kind_t : uint8_t {
    none = 0,
    u8 = 1,         // value = (code - zp) * scale
    float_zero = 2, // value = (code - 8) * scale + zero, u4 only
    minimum = 3     // value = code * scale + minimum, u4 only
};

// Zero points that are added to the product of code and scale: of a floating-point type.
MXDNN_HD constexpr bool is_added(zero_point_kind_t zp) {
    return zp == zero_point_kind_t::float_zero || zp == zero_point_kind_t::minimum;
}

// The code of u4 whose value is the zero point, where that is added.
MXDNN_HD constexpr int code_of_added(zero_point_kind_t zp) {
    return zp == zero_point_kind_t::float_zero ? 8 : 0;
}

enum class global_scale_kind_t : uint8_t { none = 0, one = 1, per_expert = 2 };

struct quant_t {
    data_type_t scale_dt = mxdnn_data_type_undef;
    dim_t block = 0; // elements along the blocked axis that share a scale
    zero_point_kind_t zp = zero_point_kind_t::none;
    data_type_t zp_dt = mxdnn_data_type_undef;              // u8, or a floating type
    global_scale_kind_t global = global_scale_kind_t::none; // f32, for NVFP4 only
    bool whole_row = false; // a row has one scale, however long it is; sources of matmuls only

    MXDNN_HD friend constexpr bool operator==(const quant_t &a, const quant_t &b) {
        return a.scale_dt == b.scale_dt && a.block == b.block && a.zp == b.zp && a.zp_dt == b.zp_dt
               && a.global == b.global && a.whole_row == b.whole_row;
    }
    MXDNN_HD friend constexpr bool operator!=(const quant_t &a, const quant_t &b) { return !(a == b); }
};

} // namespace impl
} // namespace mxdnn
