// SPDX-License-Identifier: Apache-2.0
// What a matmul makes of a source of high precision before it multiplies: codes in blocks that share a scale.
#pragma once

#include "common/formats/quantize_block.hpp"

namespace mxdnn {
namespace impl {

enum class recipe_kind_t : uint8_t { none, row_int8, row_fp8, mx_int8 };

struct source_recipe_t {
    recipe_kind_t kind = recipe_kind_t::none;
    scale_rounding_t rounding = mxdnn_scale_rounding_floor; // for mx_int8

    // Elements along K that share a scale.
    MXDNN_HD constexpr int64_t block(int64_t K) const {
        return kind == recipe_kind_t::mx_int8 ? mx_block : K;
    }

    // The scale of a block whose largest magnitude has these bits: a code of e8m0, or the bits of an f32.
    MXDNN_HD constexpr uint32_t scale(uint32_t amax_bits) const {
        switch (kind) {
        case recipe_kind_t::row_int8: return bits_of(row_int8_scale(amax_bits));
        case recipe_kind_t::row_fp8: return bits_of(row_fp8_scale(amax_bits));
        case recipe_kind_t::mx_int8: return e8m0_from_amax<s8_t>(amax_bits, rounding);
        case recipe_kind_t::none: break;
        }
        return 0;
    }

    // The value of the code of x, exact in double.
    MXDNN_HD constexpr double value(float x, uint32_t scale) const {
        switch (kind) {
        case recipe_kind_t::row_int8:
            return double(s8_t::to_int(row_int8_quantize(x, float_of(scale)))) * double(float_of(scale));
        case recipe_kind_t::row_fp8:
            return double(f8_e4m3_t::decode(row_fp8_quantize(x, float_of(scale)))) * double(float_of(scale));
        case recipe_kind_t::mx_int8: return mx_dequantize<s8_t>(mx_quantize<s8_t>(x, scale), scale);
        case recipe_kind_t::none: break;
        }
        return x;
    }
};

} // namespace impl
} // namespace mxdnn
