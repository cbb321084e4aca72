// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two bf16 or two f16 in a word, and what else sm_80 has for parts of words.
#pragma once

#include "common/formats/float_bits.hpp"

namespace mxdnn {
namespace impl {

// Two f32, rounded to bf16 or f16 side by side.
__device__ __forceinline__ uint32_t to_bf16x2(float low, float high) {
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ __forceinline__ uint32_t to_f16x2(float low, float high) {
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

namespace cuda {

struct bf16x2_t {
    static constexpr float integers = 1 << 7; // larger numbers are integers
    // x, of few bits, twice.
    __device__ static constexpr uint32_t of(float x) { return bits_of(x) / 0x10000 * 0x10001; }

    __device__ static __forceinline__ uint32_t fma(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t d;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
        return d;
    }
    // Sums below zero become zero.
    __device__ static __forceinline__ uint32_t fma_relu(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t d;
        asm("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
        return d;
    }
    __device__ static __forceinline__ uint32_t mul(uint32_t a, uint32_t b) {
        return fma(a, b, 0x80008000u); // adding -0 changes nothing
    }
    __device__ static __forceinline__ uint32_t abs(uint32_t a) {
        uint32_t d;
        asm("abs.bf16x2 %0, %1;" : "=r"(d) : "r"(a));
        return d;
    }
};

struct f16x2_t {
    static constexpr float integers = 1 << 10;
    __device__ static constexpr uint32_t of(float x) {
        const uint32_t b = bits_of(x), sign = b >> 31 << 15;
        return (b == 0 ? 0 : sign | ((b & 0x7fffffffu) - (112u << 23)) >> 13) * 0x10001;
    }
    __device__ static __forceinline__ uint32_t of_f32(float x) { return to_f16x2(x, x); }
    __device__ static __forceinline__ uint32_t fma(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t d;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
        return d;
    }
    __device__ static __forceinline__ uint32_t fma_relu(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t d;
        asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
        return d;
    }
    __device__ static __forceinline__ uint32_t mul(uint32_t a, uint32_t b) {
        uint32_t d;
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
        return d;
    }
};

// For a normal number; a unit or two off.
__device__ __forceinline__ float approximate_inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// Four bytes of 0 or 255: the signs of the bytes that the digits of the selector name, 0 to 3 of a, 4 to 7 of
// b.
__device__ __forceinline__ uint32_t byte_signs(uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector | 0x8888u));
    return d;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
