// SPDX-License-Identifier: Apache-2.0
// Blocks of values to codes, the bits of formats/quantize_block.hpp with few instructions.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common/formats/quantize_block.hpp"
#include "gpu/cuda/device/ptx/bf16x2.cuh"

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

// ---- quantisers: a block's scale from its largest magnitude, then its codes ----
// encode_row() takes eight neighbours of one block; encode_columns() eight rows of one or two neighbouring
// columns, each a block of its own.

template <typename words_t>
__device__ __forceinline__ void row_values(const uint32_t *w, float (&x)[8]) {
#pragma unroll
    for (int i = 0; i < 8 / words_t::per_word; i++) words_t::values(w[i], x + i * words_t::per_word);
}
template <typename words_t>
__device__ __forceinline__ void column_values(const uint32_t *w, int column, float (&x)[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float both[2];
        words_t::values(w[i], both);
        x[i] = both[column];
    }
}

// e8m0_from_amax() without branches; what depends on the rounding alone is made once.
template <typename element_t>
class mx_scale_t {
public:
    __device__ explicit mx_scale_t(scale_rounding_t rounding)
        : divides_(rounding == mxdnn_scale_rounding_rceil),
          defined_(is_scale_rounding_defined(element_t::is_float, rounding)),
          carry_(rounding == mxdnn_scale_rounding_floor   ? 0
                  : rounding == mxdnn_scale_rounding_even ? 1u << (22 - element_t::mantissa_bits)
                                                          : 0x7fffffu) {}
    __device__ __forceinline__ uint32_t operator()(uint32_t amax) const {
        constexpr float inverse = 1.f / element_t::max;
        const uint32_t u = divides_ ? bits_of(mul_f32(float_of(amax), inverse)) : amax;
        // Of subnormal quotients 2^-127 has the code 0 and is half of 2^-126.
        const uint32_t carry = divides_ && u < 0x800000u ? 0x3fffffu : carry_;
        const int code = int((u + carry) >> 23) - (divides_ ? 0 : element_t::emax);
        return amax >= f32_inf_bits || !defined_ ? e8m0_poison : uint32_t(min(max(code, 0), 254));
    }

private:
    bool divides_, defined_;
    uint32_t carry_;
};

template <typename element_t>
struct mx_quantiser_t {
    using element = element_t;
    using group_t = code_group_t<element_t>;
    static constexpr int block_shift = 5;
    struct block_t {
        uint32_t scale;
        float factor;
    };
    mx_scale_t<element_t> scale_of;

    __device__ mx_quantiser_t(scale_rounding_t rounding, float, bool) : scale_of(rounding) {}
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const uint32_t scale = scale_of(amax);
        return {scale, e8m0_t::decode_inverse(scale)};
    }
    template <typename words_t>
    __device__ __forceinline__ group_t encode_row(const block_t &b, const uint32_t *w) const {
        float x[8];
        row_values<words_t>(w, x);
        return encode(b, x);
    }
    template <typename words_t>
    __device__ __forceinline__ void encode_columns(const block_t *b, const uint32_t *w, group_t *g) const {
#pragma unroll
        for (int c = 0; c < words_t::per_word; c++) {
            float x[8];
            column_values<words_t>(w, c, x);
            g[c] = encode(b[c], x);
        }
    }

private:
    __device__ __forceinline__ group_t encode(const block_t &b, float (&x)[8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], b.factor);
        group_t g = encode_group<element_t>(x);
        if (b.scale == e8m0_poison)
            for (uint32_t &w : g.w)
                w = element_t::poisoned_code * (element_t::bits == 4 ? 0x11111111u : 0x01010101u);
        return g;
    }
};

struct nvfp4_quantiser_t {
    using element = f4_e2m1_t;
    using group_t = code_group_t<element>;
    static constexpr int block_shift = 4;
    struct block_t {
        uint32_t scale;
        float factor, divisor;
    };
    float global, inverse;
    bool two_levels;

    __device__ nvfp4_quantiser_t(scale_rounding_t, float g, bool two)
        : global(g), inverse(div_f32(1.f, g)), two_levels(two) {}
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        float s = div_f32(float_of(amax), element::max);
        if (two_levels) s = global == 0 ? 0 : div_f32(s, global);
        uint32_t scale = magnitude_code<f8_e4m3_t>(fmaxf(s, f8_e4m3_t::min_normal)) & 0x7f;
        float value = float_of((scale << 20) + (120u << 23)); // no scale is subnormal
        if (amax >= f32_inf_bits || is_nan(s)) scale = f8_e4m3_t::nan_code, value = float_of(f32_nan_bits);
        if (!two_levels) return {scale, __frcp_rn(value), value};
        return {scale, div_f32(inverse, value), mul_f32(global, value)};
    }
    template <typename words_t>
    __device__ __forceinline__ group_t encode_row(const block_t &b, const uint32_t *w) const {
        float x[8];
        row_values<words_t>(w, x);
        return encode(b, x);
    }
    template <typename words_t>
    __device__ __forceinline__ void encode_columns(const block_t *b, const uint32_t *w, group_t *g) const {
#pragma unroll
        for (int c = 0; c < words_t::per_word; c++) {
            float x[8];
            column_values<words_t>(w, c, x);
            g[c] = encode(b[c], x);
        }
    }

private:
    __device__ __forceinline__ group_t encode(const block_t &b, float (&x)[8]) const {
        group_t g;
        if (is_finite(b.factor)) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], b.factor);
            return encode_group<element>(x);
        }
        g.w[0] = 0;
        if (is_nan(b.divisor)) return g;
#pragma unroll
        for (int i = 0; i < 8; i++)
            x[i] = b.divisor == 0 ? float_of(bits_of(x[i]) & f32_sign_mask) : div_f32(x[i], b.divisor);
        return encode_group<element>(x);
    }
};

// ---- MXFP4 of bf16: two values at a time ----
// A power of two times a bf16 is one, but for what is too small to matter; so magnitude_code() in bf16.

// The codes of the magnitudes in the low bits of each half; above them is rubbish.
__device__ __forceinline__ uint32_t f4_pair_codes(uint32_t w, uint32_t factors) {
    constexpr uint32_t one = 0x3f803f80u, six = 0x40c040c0u, addend = 0x42864286u; // 2^6, and 3 for its field
    const uint32_t m = min_bf16x2(mul_bf16x2(w & 0x7fff7fffu, factors), six);
    const uint32_t u = fma_bf16x2(max_bf16x2(m, one) & 0x7f807f80u, addend, m);
    return u + (u >> 6);
}
// Byte 0 (or 2) of four words side by side, and their byte 1 (or 3).
__device__ __forceinline__ uint32_t low_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d, int half) {
    const uint32_t ab = __byte_perm(a, b, half ? 0x0062 : 0x0040),
                   cd = __byte_perm(c, d, half ? 0x0062 : 0x0040);
    return __byte_perm(ab, cd, 0x5410);
}
__device__ __forceinline__ uint32_t high_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d, int half) {
    const uint32_t ab = __byte_perm(a, b, half ? 0x0073 : 0x0051),
                   cd = __byte_perm(c, d, half ? 0x0073 : 0x0051);
    return __byte_perm(ab, cd, 0x5410);
}
__device__ __forceinline__ uint32_t join_f4(
        uint32_t even, uint32_t odd, uint32_t even_signs, uint32_t odd_signs) {
    return (even & 0x07070707u) | (odd << 4 & 0x70707070u) | (even_signs >> 4 & 0x08080808u)
           | (odd_signs & 0x80808080u);
}

struct mxfp4_of_bf16_t {
    using element = f4_e2m1_t;
    using group_t = code_group_t<element>;
    static constexpr int block_shift = 5;
    struct block_t {
        uint32_t scale, factor; // as bf16
    };
    mx_scale_t<element> scale_of;

    __device__ mxfp4_of_bf16_t(scale_rounding_t rounding, float, bool) : scale_of(rounding) {}
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const uint32_t scale = scale_of(amax);
        return {scale, bits_of(e8m0_t::decode_inverse(scale)) >> 16};
    }
    template <typename words_t>
    __device__ __forceinline__ group_t encode_row(const block_t &b, const uint32_t *w) const {
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = f4_pair_codes(w[i], b.factor * 0x10001u);
        group_t g{{join_f4(low_bytes(v[0], v[1], v[2], v[3], 0), low_bytes(v[0], v[1], v[2], v[3], 1),
                high_bytes(w[0], w[1], w[2], w[3], 0), high_bytes(w[0], w[1], w[2], w[3], 1))}};
        if (b.scale == e8m0_poison) g.w[0] = element::poisoned_code * 0x11111111u;
        return g;
    }
    template <typename words_t>
    __device__ __forceinline__ void encode_columns(const block_t *b, const uint32_t *w, group_t *g) const {
        uint32_t v[8];
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = f4_pair_codes(w[i], b[0].factor | b[1].factor << 16);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            g[c].w[0] = join_f4(low_bytes(v[0], v[2], v[4], v[6], c), low_bytes(v[1], v[3], v[5], v[7], c),
                    high_bytes(w[0], w[2], w[4], w[6], c), high_bytes(w[1], w[3], w[5], w[7], c));
            if (b[c].scale == e8m0_poison) g[c].w[0] = element::poisoned_code * 0x11111111u;
        }
    }
};

// The quickest quantiser of a format for words of a source type.
template <typename quantiser_t, typename words_t>
struct best_quantiser_t {
    using type = quantiser_t;
};
template <>
struct best_quantiser_t<mx_quantiser_t<f4_e2m1_t>, bf16_words_t> {
    using type = mxfp4_of_bf16_t;
};

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
