// SPDX-License-Identifier: Apache-2.0
// Blocks of values to codes, the bits of formats/quantize_block.hpp with few instructions.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common/formats/quantize_block.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Source types. A word is 32 bits of them; magnitudes of 16-bit ones are compared two at a time.
struct bf16_words_t {
    static constexpr int per_word = 2;
    __device__ static uint32_t larger(uint32_t m, uint32_t w) { return __vmaxu2(m, w & 0x7fff7fffu); }
    __device__ static uint32_t f32_bits(uint32_t m, int half) { return half ? m & 0x7fff0000u : m << 16; }
    __device__ static void values(uint32_t w, float *x) {
        x[0] = float_of(w << 16);
        x[1] = float_of(w & 0xffff0000u);
    }
};
struct f16_words_t {
    static constexpr int per_word = 2;
    __device__ static uint32_t larger(uint32_t m, uint32_t w) { return __vmaxu2(m, w & 0x7fff7fffu); }
    __device__ static uint32_t f32_bits(uint32_t m, int half) {
        return bits_of(__half2float(__ushort_as_half(uint16_t(half ? m >> 16 : m))));
    }
    __device__ static void values(uint32_t w, float *x) {
        x[0] = __half2float(__ushort_as_half(uint16_t(w)));
        x[1] = __half2float(__ushort_as_half(uint16_t(w >> 16)));
    }
};
struct f32_words_t {
    static constexpr int per_word = 1;
    __device__ static uint32_t larger(uint32_t m, uint32_t w) { return max(m, w & 0x7fffffffu); }
    __device__ static uint32_t f32_bits(uint32_t m, int) { return m; }
    __device__ static void values(uint32_t w, float *x) { x[0] = float_of(w); }
};
// Of all values that a word of larger() stands for.
template <typename words_t>
__device__ __forceinline__ uint32_t amax_of(uint32_t m) {
    if constexpr (words_t::per_word == 2) m = max(m & 0xffffu, m >> 16);
    return words_t::f32_bits(m, 0);
}

// The code of |x| in the low bits of the result; above them is rubbish. Adding 2^(23 - M) steps rounds to a
// multiple of the step, ties to even, and leaves how many there are in the low bits of the sum; its exponent
// field says in which binade. The sum of the two is the code, up to a constant that the addend makes up for.
template <typename element_t>
__device__ __forceinline__ uint32_t magnitude_code(float x) {
    constexpr int M = element_t::mantissa_bits, shift = 23 - M;
    constexpr uint32_t least = uint32_t(element_t::emin + 127 + shift) << M;
    constexpr float addend = float(1 << shift) + float(-least & 0xff) / (1 << M);
    const float m = fminf(fabsf(x), element_t::max);
    const float binade = float_of(bits_of(fmaxf(m, element_t::min_normal)) & f32_inf_bits);
    const uint32_t u = bits_of(__fmaf_rn(binade, addend, m));
    return u + (u >> shift);
}

// Eight codes side by side; x are finite or infinite.
template <typename element_t>
struct code_group_t {
    static constexpr int words = element_t::bits == 4 ? 1 : 2;
    uint32_t w[words];
};

template <typename element_t>
__device__ __forceinline__ code_group_t<element_t> encode_group(const float (&x)[8]) {
    code_group_t<element_t> g;
    if constexpr (element_t::bits == 4) {
        uint32_t codes = 0, signs = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) codes = __funnelshift_r(codes, magnitude_code<element_t>(x[i]), 4);
#pragma unroll
        for (int i = 7; i >= 0; i--) signs = __funnelshift_l(bits_of(x[i]), signs, 4);
        g.w[0] = (codes & 0x77777777u) | (signs & 0x88888888u);
        return g;
    } else {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *y = x + 4 * h;
            if constexpr (!element_t::is_float) {
                uint32_t codes = 0;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float steps = mul_f32(y[i], 1 / element_t::step), most = element_t::highest;
                    // The low bits of such a sum are the nearest integer.
                    const uint32_t u = bits_of(add_f32(fminf(fmaxf(steps, -most), most), 12582912.f));
                    codes = __funnelshift_r(codes, u, 8);
                }
                g.w[h] = codes;
                continue;
            }
#if __CUDA_ARCH__ >= 890
            if constexpr (element_t::bits == 8) {
                constexpr auto kind = element_t::mantissa_bits == 3 ? __NV_E4M3 : __NV_E5M2;
                const uint32_t lo = __nv_cvt_float2_to_fp8x2(make_float2(y[0], y[1]), __NV_SATFINITE, kind);
                const uint32_t hi = __nv_cvt_float2_to_fp8x2(make_float2(y[2], y[3]), __NV_SATFINITE, kind);
                g.w[h] = lo | hi << 16;
                continue;
            }
#endif
            if constexpr (element_t::is_float) {
                constexpr uint32_t magnitudes = (element_t::sign_code - 1) * 0x01010101u;
                uint32_t codes = 0, signs = 0;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    codes = __funnelshift_r(codes, magnitude_code<element_t>(y[i]), 8);
#pragma unroll
                for (int i = 3; i >= 0; i--) signs = __funnelshift_l(bits_of(y[i]), signs, 8);
                g.w[h] = (codes & magnitudes) | (signs & 0x80808080u) >> (8 - element_t::bits);
            }
        }
        return g;
    }
}

// One block: its scale from the largest magnitude, then its codes.
template <typename element_t>
struct mx_quantiser_t {
    using element = element_t;
    static constexpr int block = 32;
    uint32_t scale;
    float factor;

    __device__ mx_quantiser_t(uint32_t amax, scale_rounding_t rounding, float, bool)
        : scale(e8m0_from_amax<element_t>(amax, rounding)), factor(e8m0_t::decode_inverse(scale)) {}
    __device__ __forceinline__ code_group_t<element_t> encode(float (&x)[8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], factor);
        code_group_t<element_t> g = encode_group<element_t>(x);
        if (scale == e8m0_poison)
            for (uint32_t &w : g.w) w = element_t::poisoned_code * (element_t::bits == 4 ? 0x11111111u : 0x01010101u);
        return g;
    }
};

struct nvfp4_quantiser_t {
    using element = f4_e2m1_t;
    static constexpr int block = 16;
    uint32_t scale;
    float factor, divisor;

    __device__ nvfp4_quantiser_t(uint32_t amax, scale_rounding_t, float global, bool two_levels) {
        scale = two_levels ? nvfp4_scale(amax, global) : nvfp4_scale(amax);
        const float s = f8_e4m3_t::decode(scale);
        factor = div_f32(two_levels ? div_f32(1.f, global) : 1.f, s);
        divisor = two_levels ? mul_f32(global, s) : s;
    }
    __device__ __forceinline__ code_group_t<element> encode(float (&x)[8]) const {
        code_group_t<element> g;
        if (is_finite(factor)) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], factor);
            return encode_group<element>(x);
        }
        g.w[0] = 0;
#pragma unroll 1
        for (int i = 0; i < 8; i++) g.w[0] |= nvfp4_quantize_by(x[i], factor, divisor) << 4 * i;
        return g;
    }
};

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
