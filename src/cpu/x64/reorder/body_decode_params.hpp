// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of blocks as the numbers that decoders multiply with, add and subtract.
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// What is known about the parameters of some blocks.
enum class calm_t {
    no,
    finite, // all are finite, also multiplied by the decoder's unit
    exact   // finite, and every value under them is a bf16 value
};

// Scales with which all MX values are normal numbers of bf16.
constexpr uint32_t mx_calm_least = 17, mx_calm_most = 238;

// b.factor: the scale. b.divisor: the scale divided by `unit`. b.zero: added to the result. b.above:
// subtracted from the code.
calm_t decode_params(blocks_t &b, int n, const block_format_t &f, float global, float unit) {
    uint32_t wild = 0;
    bool exact = false;
    const float inverse_unit = 1.f / unit;
    if (f.family == quant_family_t::mx) {
        uint32_t outside = 0;
        for_blocks(n, [&](int i) {
            b.factor[i] = decode_e8m0(b.scale[i]);
            outside |= uint32_t(b.scale[i] - mx_calm_least > mx_calm_most - mx_calm_least);
        });
        exact = !outside;
    } else if (f.family == quant_family_t::nvfp4) {
        const float g = global;
        if (f.has_global)
            for_blocks(n, [&](int i) { b.factor[i] = g * decode_e4m3(b.scale[i]); });
        else
            for_blocks(n, [&](int i) { b.factor[i] = decode_e4m3(b.scale[i]); });
        exact = !f.has_global;
    } else {
        with_scale(f.scale_dt, [&](auto s) { decode_all(s, b.scale, n, b.factor); });
        const float middle = f.elem == mxdnn_u4 ? float(int4_mid) : 0.f;
        const float counted_from = float(code_of_added(f.zp)) - middle;
        if (is_added(f.zp)) {
            with_scale(f.zp_dt, [&](auto z) { decode_all(z, b.zp, n, b.zero); });
            for_blocks(n, [&](int i) {
                b.above[i] = counted_from;
                wild |= uint32_t((f32_bits(b.zero[i]) & magnitude_mask) >= inf_bits);
            });
        } else {
            for_blocks(n, [&](int i) { b.above[i] = float(int(b.zp[i])) - middle; });
        }
    }
    for_blocks(n, [&](int i) {
        b.divisor[i] = b.factor[i] * inverse_unit;
        wild |= uint32_t((f32_bits(b.divisor[i]) & magnitude_mask) >= inf_bits);
    });
    return wild ? calm_t::no : exact ? calm_t::exact : calm_t::finite;
}

// A code that is not an extreme value in any type of scale. Blocks that do not exist get it, so that they do
// not matter.
constexpr uint32_t calm_scale = 0x38;

MXDNN_INLINE void clear_blocks(blocks_t &b, int n) {
    for_blocks(n, [&](int i) {
        b.scale[i] = calm_scale;
        b.zp[i] = 0;
        b.zero[i] = b.above[i] = 0;
    });
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
