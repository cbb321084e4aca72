// SPDX-License-Identifier: Apache-2.0
// f32 as bits, and f32 arithmetic whose every step is rounded once, on hosts and CUDA devices alike.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

MXDNN_HD constexpr uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
MXDNN_HD constexpr float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

constexpr uint32_t f32_sign_mask = 0x80000000u;
constexpr uint32_t f32_inf_bits = 0x7f800000u;
constexpr uint32_t f32_nan_bits = 0x7fc00000u;
constexpr uint32_t f32_max_bits = 0x7f7fffffu;

// Magnitudes compared as integers: this orders all floats, with NaN above Inf, and does not depend on the
// floating-point environment.
MXDNN_HD constexpr uint32_t magnitude_bits(float x) { return bits_of(x) & ~f32_sign_mask; }
MXDNN_HD constexpr bool is_finite(float x) { return magnitude_bits(x) < f32_inf_bits; }
MXDNN_HD constexpr bool is_nan(float x) { return magnitude_bits(x) > f32_inf_bits; }

// 2^e for e in [-149, 127], subnormals included.
MXDNN_HD constexpr float exp2_f32(int e) {
    return float_of(e >= -126 ? uint32_t(e + 127) << 23 : uint32_t(1) << (e + 149));
}

// A product and a sum that are written with these functions are rounded twice. Device code uses the _rn
// intrinsics, which are never contracted. Host code needs -ffp-contract=off: the project sets it, and whoever
// compiles these headers for a target with FMA has to set it, too. Both need the default rounding mode, and
// denormals that are not flushed to zero.
#if defined(__CUDA_ARCH__)
#define MXDNN_F32_OP(intrinsic, expression)                                                                  \
    return __builtin_is_constant_evaluated() ? (expression) : intrinsic(a, b)
#else
#define MXDNN_F32_OP(intrinsic, expression) return (expression)
#endif
MXDNN_HD constexpr float mul_f32(float a, float b) { MXDNN_F32_OP(__fmul_rn, a * b); }
MXDNN_HD constexpr float add_f32(float a, float b) { MXDNN_F32_OP(__fadd_rn, a + b); }
MXDNN_HD constexpr float sub_f32(float a, float b) { MXDNN_F32_OP(__fsub_rn, a - b); }
MXDNN_HD constexpr float div_f32(float a, float b) { MXDNN_F32_OP(__fdiv_rn, a / b); }
#undef MXDNN_F32_OP

// x rounded to the nearest integer, ties to even, within [lo, hi]; NaN is 0. |lo|, |hi| < 2^24.
MXDNN_HD constexpr int rne_clamp(float x, int lo, int hi) {
    if (is_nan(x)) return 0;
    if (x <= float(lo)) return lo;
    if (x >= float(hi)) return hi;
    int i = int(x);
    const float rest = x - float(i); // exact, of the sign of x
    if (rest > 0.5f || (rest == 0.5f && i % 2 != 0)) i++;
    if (rest < -0.5f || (rest == -0.5f && i % 2 != 0)) i--;
    return i;
}

} // namespace impl
} // namespace mxdnn
