// SPDX-License-Identifier: Apache-2.0
// Blocks of values to codes, the bits of formats/quantize_block.hpp with few instructions.
#pragma once

#include <type_traits>

#include "common/formats/quantize_block.hpp"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/device/ptx/narrow.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Source types. A word is 32 bits of values. Magnitudes of 16-bit types are compared two at a time. finite()
// has zeros instead of NaN and Inf.
struct bf16_words_t {
    static constexpr int per_word = 2;
    __device__ static uint32_t finite(uint32_t w) { return w & __vcmpltu2(w & 0x7fff7fffu, 0x7f807f80u); }
    __device__ static uint32_t larger(uint32_t m, uint32_t v, uint32_t w) {
        return __vimax3_u16x2(m, v & 0x7fff7fffu, w & 0x7fff7fffu);
    }
    __device__ static uint32_t f32_bits(uint32_t m, int half) { return half ? m & 0x7fff0000u : m << 16; }
    __device__ static void values(uint32_t w, float *x) {
        x[0] = float_of(w << 16);
        x[1] = float_of(w & 0xffff0000u);
    }
};
struct f16_words_t {
    static constexpr int per_word = 2;
    __device__ static uint32_t finite(uint32_t w) { return w & __vcmpltu2(w & 0x7fff7fffu, 0x7c007c00u); }
    __device__ static uint32_t larger(uint32_t m, uint32_t v, uint32_t w) {
        return bf16_words_t::larger(m, v, w);
    }
    __device__ static uint32_t f32_bits(uint32_t m, int half) {
        return bits_of(f16_to_float(uint16_t(half ? m >> 16 : m)));
    }
    __device__ static void values(uint32_t w, float *x) {
        x[0] = f16_to_float(uint16_t(w));
        x[1] = f16_to_float(uint16_t(w >> 16));
    }
};
struct f32_words_t {
    static constexpr int per_word = 1;
    __device__ static uint32_t finite(uint32_t w) { return (w & 0x7fffffffu) < f32_inf_bits ? w : 0; }
    __device__ static uint32_t larger(uint32_t m, uint32_t v, uint32_t w) {
        return __vimax3_u32(m, v & 0x7fffffffu, w & 0x7fffffffu);
    }
    __device__ static uint32_t f32_bits(uint32_t m, int) { return m; }
    __device__ static void values(uint32_t w, float *x) { x[0] = float_of(w); }
};
// f of the words of a source type.
template <typename F>
auto visit_words(data_type_t dt, const F &f) {
    switch (dt) {
    case mxdnn_bf16: return f(bf16_words_t());
    case mxdnn_f16: return f(f16_words_t());
    default: return f(f32_words_t());
    }
}
// The largest magnitudes of an even number of words, and of all values of such a word.
template <typename words_t, int n>
__device__ __forceinline__ uint32_t largest(const uint32_t *w) {
    uint32_t m = 0;
#pragma unroll
    for (int i = 0; i < n; i += 2) m = words_t::larger(m, w[i], w[i + 1]);
    return m;
}
template <typename words_t>
__device__ __forceinline__ uint32_t amax_of(uint32_t m) {
    if constexpr (words_t::per_word == 2) m = max(m & 0xffffu, m >> 16);
    return words_t::f32_bits(m, 0);
}

// ---- codes of magnitudes ----

// With two exponent bits and M bits of mantissa, the code of a magnitude is the nearest integer, ties to
// even, to the smallest of three lines, one for each binade: 2^M x, 2^(M-1) x + 2^M, 2^(M-2) x + 2^(M+1).
// Rounding keeps their order. So each is rounded first, by an addend that leaves integers in the low bits.
template <typename element_t>
constexpr bool is_of_three_lines() {
    if constexpr (element_t::is_float)
        return element_t::exponent_bits == 2;
    else
        return false;
}

constexpr float f32_integers = 1 << 23;
// The code of a magnitude up to the largest, added to the bits of f32_integers.
template <typename element_t>
__device__ __forceinline__ uint32_t three_lines_code(float m) {
    constexpr float one = 1 << element_t::mantissa_bits;
    return __vimin3_u32(bits_of(__fmaf_rn(m, one, f32_integers)),
            bits_of(__fmaf_rn(m, one / 2, f32_integers + one)),
            bits_of(__fmaf_rn(m, one / 4, f32_integers + 2 * one)));
}

// The code of |x| in the low bits of the result; higher bits mean nothing. Adding 2^(23 - M) steps rounds to
// a multiple of the step, ties to even, and leaves the number of steps in the low bits of the sum. The
// exponent field of the sum gives the binade. The sum of both is the code plus a constant, for which the
// addend corrects.
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

// Eight neighbouring codes. x are finite or infinite.
template <typename element_t>
struct code_group_t {
    static constexpr int width = element_t::bits == 4 ? 4 : 8, per_word = 32 / width, words = 8 / per_word;
    uint32_t w[words];

    // `code` in each place of a word.
    static constexpr uint32_t all(uint32_t code) {
        uint32_t w = 0;
        for (int i = 0; i < per_word; i++) w = w << width | code;
        return w;
    }
    __device__ void fill(uint32_t code) {
        for (uint32_t &v : w) v = all(code);
    }
};

// A word of codes from as many values. clamps: values may exceed that of the largest code by more than half a
// step.
template <typename element_t, bool clamps = true>
__device__ __forceinline__ uint32_t encode_word(const float *x) {
    using group_t = code_group_t<element_t>;
    constexpr int n = group_t::per_word, width = group_t::width;
    if constexpr (!element_t::is_float) {
        uint32_t codes = 0;
#pragma unroll
        for (int i = 0; i < n; i++) {
            const float steps = mul_f32(x[i], 1 / element_t::step), most = element_t::highest;
            // The low bits of such a sum are the nearest integer.
            const uint32_t u = bits_of(add_f32(fminf(fmaxf(steps, -most), most), 12582912.f));
            codes = __funnelshift_r(codes, u, width);
        }
        return codes;
    } else {
#if __CUDA_ARCH__ >= 890
        if constexpr (element_t::bits == 8) {
            constexpr bool e4m3 = element_t::mantissa_bits == 3;
            return to_f8x2<e4m3>(x[0], x[1]) | uint32_t(to_f8x2<e4m3>(x[2], x[3])) << 16;
        }
#endif
        uint32_t codes = 0, signs = 0;
        if constexpr (is_of_three_lines<element_t>()) {
            constexpr uint32_t integers = 0x4b000000u; // f32_integers
            uint32_t sum_of_integers = 0;
#pragma unroll
            for (int i = n - 1; i >= 0; i--) {
                const float m = clamps ? fminf(fabsf(x[i]), element_t::max) : fabsf(x[i]);
                codes = (codes << width) + three_lines_code<element_t>(m);
                sum_of_integers = (sum_of_integers << width) + integers;
            }
            codes -= sum_of_integers;
        } else {
#pragma unroll
            for (int i = 0; i < n; i++)
                codes = __funnelshift_r(codes, magnitude_code<element_t>(x[i]), width);
            codes &= group_t::all(element_t::sign_code - 1);
        }
#pragma unroll
        for (int i = n - 1; i >= 0; i--) signs = __funnelshift_l(bits_of(x[i]), signs, width);
        return codes | (signs & group_t::all(1u << (width - 1))) >> (width - element_t::bits);
    }
}

template <typename element_t, bool clamps = true>
__device__ __forceinline__ code_group_t<element_t> encode_group(const float (&x)[8]) {
    using group_t = code_group_t<element_t>;
    group_t g;
#pragma unroll
    for (int i = 0; i < group_t::words; i++)
        g.w[i] = encode_word<element_t, clamps>(x + i * group_t::per_word);
    return g;
}

// ---- Quantisers: the scale of a block from its largest magnitude, then its codes ---- encode_row() takes
// eight neighbours of one block; encode_columns() eight rows of one or two neighbouring columns, each a block
// of its own.

// For quantisers that process values one by one: derived_t::encode(block, x).
template <typename derived_t>
struct value_quantiser_t {
    static constexpr bool takes_long = false;

    template <typename words_t, typename block_t>
    __device__ __forceinline__ auto encode_row(const block_t &b, const uint32_t *w) const {
        float x[8];
#pragma unroll
        for (int i = 0; i < 8 / words_t::per_word; i++) words_t::values(w[i], x + i * words_t::per_word);
        return static_cast<const derived_t *>(this)->encode(b, x);
    }
    template <typename words_t, typename block_t, typename group_t>
    __device__ __forceinline__ void encode_columns(const block_t *b, const uint32_t *w, group_t *g) const {
#pragma unroll
        for (int c = 0; c < words_t::per_word; c++) {
            float x[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float both[2];
                words_t::values(w[i], both);
                x[i] = both[c];
            }
            g[c] = static_cast<const derived_t *>(this)->encode(b[c], x);
        }
    }
};

// e8m0_from_amax() without branches. Values that depend on the rounding alone are computed once.
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
        // Among subnormal quotients, 2^-127 has the code 0 and is half of 2^-126.
        const uint32_t carry = divides_ && u < 0x800000u ? 0x3fffffu : carry_;
        const int code = int((u + carry) >> 23) - (divides_ ? 0 : element_t::emax);
        return amax >= f32_inf_bits || !defined_ ? e8m0_poison : uint32_t(min(max(code, 0), 254));
    }

private:
    bool divides_, defined_;
    uint32_t carry_;
};

template <typename element_t>
struct mx_quantiser_t : value_quantiser_t<mx_quantiser_t<element_t>> {
    using element = element_t;
    using group_t = code_group_t<element_t>;
    static constexpr int block_shift = 5;
    struct block_t {
        uint32_t scale;
        float factor;
    };
    mx_scale_t<element_t> scale_of;

    __device__ mx_quantiser_t(scale_rounding_t rounding, float) : scale_of(rounding) {}
    template <typename words_t>
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const uint32_t scale = scale_of(amax);
        return {scale, e8m0_t::decode_inverse(scale)};
    }
    __device__ __forceinline__ group_t encode(const block_t &b, float (&x)[8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], b.factor);
        group_t g = encode_group<element_t>(x);
        if (b.scale == e8m0_poison) g.fill(element_t::poisoned_code);
        return g;
    }
};

// a / b rounded once, from the nearest float to 1 / b, if no exponent is near the limits. Each correction
// uses an exact remainder, which is rounded.
__device__ __forceinline__ float divide(float a, float b, float inverse) {
    float q = mul_f32(a, inverse);
#pragma unroll
    for (int i = 0; i < 2; i++) q = __fmaf_rn(__fmaf_rn(-b, q, a), inverse, q);
    return q;
}
__device__ __forceinline__ bool is_middling(float x) {
    return fabsf(x) > 1e-20f && fabsf(x) < 1e20f; // quotients of two such numbers are far from both limits
}
// The nearest float to 1 / x for a scale x: an approximation that is a few units off, and one correction.
__device__ __forceinline__ float inverse_of_scale(float x) {
    const float y = approximate_inverse(x);
    return __fmaf_rn(__fmaf_rn(-x, y, 1.f), y, y);
}

// The scale's code for a block whose largest magnitude is s times that of an element.
__device__ __forceinline__ uint32_t nvfp4_scale_code(float s) {
    return magnitude_code<f8_e4m3_t>(fmaxf(s, f8_e4m3_t::min_normal)) & 0x7f;
}
// No scale is subnormal.
__device__ __forceinline__ float nvfp4_scale_value(uint32_t code) {
    return float_of((code << 20) + (120u << 23));
}

struct nvfp4_quantiser_t : value_quantiser_t<nvfp4_quantiser_t> {
    using element = f4_e2m1_t;
    using group_t = code_group_t<element>;
    static constexpr int block_shift = 4;
    struct block_t {
        uint32_t scale;
        float factor;
    };

    __device__ nvfp4_quantiser_t(scale_rounding_t, float) {}
    template <typename words_t>
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const uint32_t scale = scale_of<words_t>(amax);
        return {scale, inverse_of_scale(nvfp4_scale_value(scale))};
    }
    __device__ __forceinline__ group_t encode(const block_t &b, float (&x)[8]) const {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], b.factor);
        group_t g = encode_group<element>(x);
        if (b.scale == f8_e4m3_t::nan_code) g.fill(0);
        return g;
    }

    template <typename words_t>
    __device__ static __forceinline__ uint32_t scale_of(uint32_t amax) {
        // For a 16-bit magnitude, the product is as near to the quotient as its own rounding, and never on
        // the other side of a boundary between scales.
        const float s = words_t::per_word == 2 ? mul_f32(float_of(amax), 1 / element::max)
                                               : divide(float_of(amax), element::max, 1 / element::max);
        return amax >= f32_inf_bits ? f8_e4m3_t::nan_code : nvfp4_scale_code(s);
    }
};

// Under a global scale.
struct nvfp4_two_levels_t : value_quantiser_t<nvfp4_two_levels_t> {
    using element = f4_e2m1_t;
    using group_t = code_group_t<element>;
    static constexpr int block_shift = 4;
    static constexpr bool takes_long = true;
    struct block_t {
        uint32_t scale;
        float factor, divisor;
        bool usual; // the factor suffices, and no value becomes 7 or more
    };
    float global, inverse;
    bool middling;

    __device__ nvfp4_two_levels_t(scale_rounding_t, float g)
        : global(g), inverse(div_f32(1.f, g)), middling(is_middling(g)) {}
    template <typename words_t>
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const float a = float_of(amax);
        if (middling && is_middling(a)) {
            const float s = divide(divide(a, element::max, 1 / element::max), global, inverse);
            const uint32_t scale = nvfp4_scale_code(s);
            const float value = nvfp4_scale_value(scale);
            // Rounding changes a scale by a sixteenth at most, except for negative scales and those beyond
            // the largest.
            return {scale, divide(inverse, value, inverse_of_scale(value)), 0,
                    bits_of(s) < bits_of(f8_e4m3_t::max * 1.0625f)};
        }
        // By the rules, without shortcuts: zeros, NaN, Inf and values near the limits of exponents.
        const uint32_t scale = odd_scale(amax, global);
        const float value = f8_e4m3_t::decode(scale);
        return {scale, quotient(inverse, value), mul_f32(global, value), false};
    }
    __device__ __forceinline__ group_t encode(const block_t &b, float (&x)[8]) const {
        if (b.usual) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], b.factor);
            return encode_group<element, false>(x);
        }
        if (is_finite(b.factor)) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = mul_f32(x[i], b.factor);
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                x[i] = b.divisor == 0 ? float_of(bits_of(x[i]) & f32_sign_mask) : quotient(x[i], b.divisor);
        }
        group_t g = encode_group<element>(x);
        if (is_nan(b.divisor)) g.fill(0);
        return g;
    }

private:
    // Not inlined, so that rare cases use no registers.
    __device__ static __noinline__ uint32_t odd_scale(uint32_t amax, float global) {
        return nvfp4_scale(amax, global);
    }
    __device__ static __noinline__ float quotient(float a, float b) { return div_f32(a, b); }
};

// ---- bf16 with three lines: two values at a time ----

// The lowest bytes of the halves of four words, or the signs of those halves as bytes of 0 or 255: those of
// the lower halves side by side, and those of the upper ones.
struct halves_t {
    uint32_t lower, upper;
};
__device__ __forceinline__ halves_t join_halves(uint32_t ab, uint32_t cd) {
    return {__byte_perm(ab, cd, 0x5410), __byte_perm(ab, cd, 0x7632)};
}
__device__ __forceinline__ halves_t bytes_of_halves(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return join_halves(__byte_perm(a, b, 0x6240), __byte_perm(c, d, 0x6240));
}
__device__ __forceinline__ halves_t signs_of_halves(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return join_halves(byte_signs(a, b, 0x7351), byte_signs(c, d, 0x7351));
}

// The codes of two magnitudes in a word, as integers of type pair_t with the codes in their lowest bytes.
template <typename element_t, typename pair_t>
__device__ __forceinline__ uint32_t pair_codes(uint32_t m) {
    constexpr float one = 1 << element_t::mantissa_bits, most = element_t::max_code;
    constexpr auto of = pair_t::of;
    // The third line ends at the largest code. It is as far below it as m leaves, if that is positive.
    const uint32_t left = pair_t::fma_relu(m, of(-one / 4), of(most - 2 * one));
    return __vimin3_u16x2(pair_t::fma(m, of(one), of(pair_t::integers)),
            pair_t::fma(m, of(one / 2), of(pair_t::integers + one)),
            pair_t::fma(left, of(-1), of(pair_t::integers + most)));
}

// For quantisers that compute codes of two values at once: derived_t::factors() of the blocks of both, and
// codes() of a word under them.
template <typename derived_t, typename element_t, typename pair_t>
struct pair_quantiser_t {
    using element = element_t;
    using group_t = code_group_t<element_t>;
    static constexpr bool takes_long = false;
    static constexpr uint32_t sign_code = element_t::sign_code;

    template <typename words_t, typename block_t>
    __device__ __forceinline__ group_t encode_row(const block_t &b, const uint32_t *w) const {
        const auto factors = derived_t::factors(b, b);
        uint32_t bytes[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t x = w[2 * h], y = w[2 * h + 1];
            bytes[h] = __byte_perm(derived_t::codes(x, factors), derived_t::codes(y, factors), 0x6420)
                       | (byte_signs(x, y, 0x7531) & sign_code * 0x01010101u);
        }
        group_t g;
        if constexpr (group_t::width == 4) {
            for (uint32_t &v : bytes) v += v >> 4; // two codes in every second byte
            g.w[0] = __byte_perm(bytes[0], bytes[1], 0x6420);
        } else {
            g.w[0] = bytes[0], g.w[1] = bytes[1];
        }
        if (b.scale == derived_t::poison) g.fill(element_t::poisoned_code);
        return g;
    }
    template <typename words_t, typename block_t>
    __device__ __forceinline__ void encode_columns(const block_t *b, const uint32_t *w, group_t *g) const {
        const auto factors = derived_t::factors(b[0], b[1]);
        uint32_t v[8];
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = derived_t::codes(w[i], factors);
        if constexpr (group_t::width == 4) {
            // Two codes in a byte: 16 times the second, on the first.
#pragma unroll
            for (int i = 0; i < 8; i += 2)
                v[i] = pair_t::fma(pair_t::fma(v[i + 1], pair_t::of(1), pair_t::of(-pair_t::integers)),
                        pair_t::of(16), v[i]);
            const halves_t codes = bytes_of_halves(v[0], v[2], v[4], v[6]),
                           even = signs_of_halves(w[0], w[2], w[4], w[6]),
                           odd = signs_of_halves(w[1], w[3], w[5], w[7]);
            g[0].w[0] = codes.lower | (even.lower & 0x08080808u) | (odd.lower & 0x80808080u);
            g[1].w[0] = codes.upper | (even.upper & 0x08080808u) | (odd.upper & 0x80808080u);
        } else {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const uint32_t *x = v + 4 * h, *y = w + 4 * h;
                const halves_t codes = bytes_of_halves(x[0], x[1], x[2], x[3]),
                               signs = signs_of_halves(y[0], y[1], y[2], y[3]);
                g[0].w[h] = codes.lower | (signs.lower & sign_code * 0x01010101u);
                g[1].w[h] = codes.upper | (signs.upper & sign_code * 0x01010101u);
            }
        }
        for (int c = 0; c < 2; c++)
            if (b[c].scale == derived_t::poison) g[c].fill(element_t::poisoned_code);
    }
};

// A power of two times a bf16 is a bf16, except for negligibly small values.
template <typename element_t>
struct mx_of_bf16_t : pair_quantiser_t<mx_of_bf16_t<element_t>, element_t, bf16x2_t> {
    static constexpr int block_shift = 5;
    static constexpr uint32_t poison = e8m0_poison;
    struct block_t {
        uint32_t scale, factor; // as bf16
    };
    mx_scale_t<element_t> scale_of;

    __device__ mx_of_bf16_t(scale_rounding_t rounding, float) : scale_of(rounding) {}
    template <typename words_t>
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const uint32_t scale = scale_of(amax);
        return {scale, bits_of(e8m0_t::decode_inverse(scale)) >> 16};
    }
    __device__ static __forceinline__ uint32_t factors(const block_t &lower, const block_t &upper) {
        return lower.factor | upper.factor << 16;
    }
    __device__ static __forceinline__ uint32_t codes(uint32_t w, uint32_t factors) {
        return pair_codes<element_t, bf16x2_t>(bf16x2_t::mul(bf16x2_t::abs(w), factors));
    }
};

// A magnitude x under a scale s = 2^e (1 + m/8) becomes x 2^-e in f16, which is exact, times an f16 next to 1
// / (1 + m/8). If x / s is not a tie of two codes, it is at least 2^-8 of itself away from one, and rounding
// stays on its side. Ties must be found as rounding to f32 finds them. For m = 7 that gives a few more ties
// at 1.25, 2.5 and 5: there x is increased by one unit of f16. For m = 3, 1 / (1 + m/8) is slightly
// increased. A test tries every x under every s.
struct nvfp4_of_bf16_t : pair_quantiser_t<nvfp4_of_bf16_t, f4_e2m1_t, f16x2_t> {
    static constexpr int block_shift = 4;
    static constexpr uint32_t poison = f8_e4m3_t::nan_code;
    struct block_t {
        uint32_t scale;
        uint32_t power, inverse, more; // as bf16; as f16 twice; units of f16, twice
    };
    struct factors_t {
        uint32_t power, inverse, more;
    };

    __device__ nvfp4_of_bf16_t(scale_rounding_t, float) {}
    template <typename words_t>
    __device__ __forceinline__ block_t block(uint32_t amax) const {
        const uint32_t scale = nvfp4_quantiser_t::scale_of<words_t>(amax);
        // 2^-e, and 2^-112 because bf16's exponent field counts from a lower value than f16's.
        const uint32_t power = ((127 - 112 + 7) << 7) - ((scale & 0x78) << 4);
        const float inverse = approximate_inverse(float_of((scale & 7) << 20 | bits_of(1.f)));
        return {scale, power, f16x2_t::of_f32(inverse * 1.00005f), (scale & 7) == 7 ? 0x10001u : 0};
    }
    __device__ static __forceinline__ factors_t factors(const block_t &lower, const block_t &upper) {
        return {lower.power | upper.power << 16, __byte_perm(lower.inverse, upper.inverse, 0x5410),
                __byte_perm(lower.more, upper.more, 0x5410)};
    }
    __device__ static __forceinline__ uint32_t codes(uint32_t w, const factors_t &f) {
        // Values beyond 2^22 get the largest code under any scale; the shift would overflow for them.
        const uint32_t m = __vminu2(bf16x2_t::abs(w), bf16x2_t::of(1 << 22));
        return pair_codes<f4_e2m1_t, f16x2_t>(
                f16x2_t::mul(bf16x2_t::mul(m, f.power) * 8 + f.more, f.inverse));
    }
};

// The fastest quantiser of a format for words of a source type.
template <typename quantiser_t, typename words_t>
struct best_quantiser_t {
    using type = quantiser_t;
};
template <typename element_t>
struct best_quantiser_t<mx_quantiser_t<element_t>, bf16_words_t> {
    using type = std::conditional_t<is_of_three_lines<element_t>(), mx_of_bf16_t<element_t>,
            mx_quantiser_t<element_t>>;
};
template <>
struct best_quantiser_t<nvfp4_quantiser_t, bf16_words_t> {
    using type = nvfp4_of_bf16_t;
};

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
