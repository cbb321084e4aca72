// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 and 8 bits, by their bits, to f32 and back. (The toolkit's headers of these types take the
// compiler as long as all others of a kernel.)
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {

__device__ __forceinline__ float f16_to_float(uint16_t v) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
    return f;
}
__device__ __forceinline__ float bf16_to_float(uint16_t v) {
    float f;
#if __CUDA_ARCH__ >= 900
    asm("cvt.f32.bf16 %0, %1;" : "=f"(f) : "h"(v));
#else
    asm("mov.b32 %0, {0, %1};" : "=f"(f) : "h"(v));
#endif
    return f;
}
__device__ __forceinline__ uint16_t to_f16(float v) {
    uint16_t r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ uint16_t to_bf16(float v) {
    uint16_t r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
#if __CUDA_ARCH__ >= 890
// To the nearest codes that are finite; NaN becomes NaN.
template <bool e4m3>
__device__ __forceinline__ uint16_t to_f8x2(float low, float high) {
    uint16_t r;
    if constexpr (e4m3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
    return r;
}
#endif

} // namespace impl
} // namespace mxdnn
