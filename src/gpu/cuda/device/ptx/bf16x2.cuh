// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two bf16 in a word, and what else sm_80 has for parts of words.
#pragma once

#include "common/formats/float_bits.hpp"

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
__device__ __forceinline__ uint32_t add_bf16x2(uint32_t a, uint32_t b) {
    return fma_bf16x2(a, 0x3f803f80u, b);
}
// Sums below zero become zero.
__device__ __forceinline__ uint32_t fma_relu_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
__device__ __forceinline__ uint32_t abs_bf16x2(uint32_t a) {
    uint32_t d;
    asm("abs.bf16x2 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}
// Four bytes of 0 or 255, the signs of those that a selector's digits name: 0 to 3 of a, 4 to 7 of b.
__device__ __forceinline__ uint32_t byte_signs(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector | 0x8888u));
    return d;
}
// x, of few bits, twice.
__device__ __forceinline__ constexpr uint32_t bf16x2_of(float x) { return bits_of(x) / 0x10000 * 0x10001; }

} // namespace cuda
} // namespace impl
} // namespace mxdnn
