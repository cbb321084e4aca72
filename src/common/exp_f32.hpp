// SPDX-License-Identifier: Apache-2.0
// The exponential of every vector kernel: f32 in and out, a few ulp, one rounding after the other, so that
// all ISAs give the same bits.
//
// Always inlined: these functions are compiled for several ISAs, and the linker must not merge them.
#pragma once

#include "common/types.hpp"

#define MXDNN_RULE MXDNN_HD static inline __attribute__((always_inline))

namespace mxdnn {
namespace impl {
namespace exp_rule {

MXDNN_RULE uint32_t bits(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}
MXDNN_RULE float real(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}

} // namespace exp_rule

// e^x as 2^n times a polynomial on [-ln2/2, ln2/2]. Overflow gives Inf. A result below half of 2^-149 gives
// 0. NaN stays NaN.
MXDNN_RULE float exp_f32(float x) {
    const float least = x < -104.f ? -104.f : x, c = least > 89.f ? 89.f : least;
    const float shifted = __builtin_fmaf(c, 1.44269504f, 12582912.f); // 1.5 * 2^23: rounds to an integer
    const float n = shifted - 12582912.f;
    float r = __builtin_fmaf(n, -0.693359375f, c);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    float p = 1.f / 5040;
    p = __builtin_fmaf(p, r, 1.f / 720);
    p = __builtin_fmaf(p, r, 1.f / 120);
    p = __builtin_fmaf(p, r, 1.f / 24);
    p = __builtin_fmaf(p, r, 1.f / 6);
    p = __builtin_fmaf(p, r, .5f);
    p = __builtin_fmaf(p, r, 1.f);
    p = __builtin_fmaf(p, r, 1.f);
    // 2^n as two factors, because one factor could overflow.
    const int32_t i = int32_t(exp_rule::bits(shifted) - 0x4b400000u); // n, as the distance from 1.5 * 2^23
    const int32_t half = i >> 1, rest = i - half;
    const float y =
            p * exp_rule::real(uint32_t(half + 127) << 23) * exp_rule::real(uint32_t(rest + 127) << 23);
    return x != x ? x : y;
}

} // namespace impl
} // namespace mxdnn

#undef MXDNN_RULE
