// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two bf16 in a word, from sm_80 on; NaN gives way in the smaller and the larger of two.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {

__device__ __forceinline__ uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
__device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
    return fma_bf16x2(a, b, 0x80008000u); // -0 changes nothing
}
__device__ __forceinline__ uint32_t min_bf16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("min.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
__device__ __forceinline__ uint32_t max_bf16x2(uint32_t a, uint32_t b) {
    uint32_t d;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
