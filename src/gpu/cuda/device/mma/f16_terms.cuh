// SPDX-License-Identifier: Apache-2.0
// Values of high precision as sums of bf16, exactly, the least last. Every term has the sign of its value,
// and is 0 only where that is: its product with Inf is Inf then, too.
#pragma once

#include <cuda_fp16.h>

#include "gpu/cuda/device/mma/weight_format.cuh"

namespace mxdnn {
namespace impl {

// Subtracts the first term, of 8 bits, from x. If nothing would be left, it is one step smaller.
__device__ __forceinline__ float take_bf16_term(float &x) {
    const uint32_t bits = __float_as_uint(x), magnitude = bits & 0x7FFFFFFFu;
    const bool whole = (bits & 0xFFFF) == 0 && magnitude != 0 && magnitude < 0x7F800000u;
    const float high = __uint_as_float((bits & 0xFFFF0000u) - (whole ? 0x10000u : 0u));
    x = magnitude == 0x7F800000u ? x : x - high;
    return high;
}

// Term 0 or 1 of two f16, each times `scale`, a power of two.
__device__ __forceinline__ uint32_t bf16_term_of_f16(uint32_t pair, int term, float scale) {
    const float2 v = __half22float2(*reinterpret_cast<const __half2 *>(&pair));
    float x = v.x * scale, y = v.y * scale;
    const float x0 = take_bf16_term(x), y0 = take_bf16_term(y);
    return term ? to_bf16x2(x, y) : to_bf16x2(x0, y0);
}

} // namespace impl
} // namespace mxdnn
