// SPDX-License-Identifier: Apache-2.0
// f32 to codes, 32 elements at a time, for every element type: the same bits as the scalar traits give. The
// codes are a byte each, in the order of the source type (f32x32_t).
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

MXDNN_INLINE __m256i blend_bytes(__m256i a, __m256i b, __m256i mask) {
    return _mm256_blendv_epi8(a, b, mask);
}

// 4 x 8 integers of 32 bits as bytes, saturated to signed bytes.
MXDNN_INLINE __m256i pack_signed(__m256i a, __m256i b, __m256i c, __m256i d) {
    return _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}

// ---- Minifloats ---- A magnitude y has the exponent e (at least emin). Adding 2^(e + 23 - m) to it rounds
// to nearest even, and leaves the number of steps of 2^(e - m) in the low bits of the sum. The exponent of
// the sum counts the steps below e. Multiplied and added as two 16-bit halves, both make the code.
template <typename E>
struct minifloat_encoder_t {
    static constexpr int m = E::mantissa_bits;
    static_assert(m >= 1 && m <= 6 && E::bits <= 8);
    // For a sum whose steps are 0 and whose exponent is emin.
    static constexpr int base = (23 - m + E::emin + 127) << m;
    static constexpr float least_normal = E::min_normal, shift = exp2_f32(23 - m);

    MXDNN_INLINE __m256i steps(__m256 y) {
        const __m256 exponent = _mm256_castsi256_ps(_mm256_set1_epi32(int(inf_bits)));
        const __m256 e =
                _mm256_and_ps(_mm256_max_ps(y, _mm256_set1_ps(least_normal)), exponent); // a power of two
        const __m256 sum = _mm256_fmadd_ps(e, _mm256_set1_ps(shift), y);
        // (steps << (7 - m)) + (exponent field << 7)
        return _mm256_madd_epi16(_mm256_castps_si256(sum), _mm256_set1_epi32((1 << 16) | (1 << (7 - m))));
    }
    MXDNN_INLINE __m256i codes_u16(__m256 a, __m256 b) {
        const __m256i v = _mm256_srli_epi16(_mm256_packus_epi32(steps(a), steps(b)), 7 - m);
        return _mm256_sub_epi16(v, _mm256_set1_epi16(base));
    }
    // For magnitudes. NaN and values beyond the largest get the code of the largest.
    MXDNN_INLINE __m256i codes(const f32x32_t &y) {
        const __m256i v = _mm256_packus_epi16(codes_u16(y.v[0], y.v[1]), codes_u16(y.v[2], y.v[3]));
        return _mm256_min_epu8(v, _mm256_set1_epi8(char(E::max_code)));
    }
    // Bit 7 of each byte, moved to the sign bit of the type.
    MXDNN_INLINE __m256i sign_of_code(__m256i signs) {
        return _mm256_and_si256(_mm256_srli_epi16(signs, 8 - E::bits), _mm256_set1_epi8(char(E::sign_code)));
    }

    // The factor is positive and x is finite.
    template <typename S, typename P>
    MXDNN_INLINE __m256i encode_scaled(const typename S::raw_t *x, const P &p) {
        __m256i signs;
        f32x32_t y = S::load_magnitudes(x, signs);
        multiply(y, p);
        return _mm256_or_si256(codes(y), sign_of_code(signs));
    }
    // For anything: the sign is that of the product, and NaN becomes the type's NaN without a sign.
    template <typename S, typename P>
    MXDNN_INLINE __m256i encode_any(const typename S::raw_t *x, const P &p) {
        f32x32_t y = S::load(x);
        multiply(y, p);
        const __m256i signs = sign_bytes(y);
        const __m256i nan =
                pack_signed(unordered(y.v[0]), unordered(y.v[1]), unordered(y.v[2]), unordered(y.v[3]));
        clear_signs(y);
        const __m256i c = _mm256_or_si256(codes(y), sign_of_code(signs));
        return blend_bytes(c, _mm256_set1_epi8(char(E::nan_code)), nan);
    }

    template <typename P>
    MXDNN_INLINE void multiply(f32x32_t &y, const P &p) {
        for (int i = 0; i < 4; i++) y.v[i] = _mm256_mul_ps(y.v[i], p.factor(i));
    }
    MXDNN_INLINE __m256i unordered(__m256 y) {
        return _mm256_castps_si256(_mm256_cmp_ps(y, y, _CMP_UNORD_Q));
    }
};

// ---- bf16 to minifloats under a power of two ---- The scale only changes exponents, so elements are rounded
// without a product. What differs between blocks is the exponent of the smallest normal value. mx_shifts()
// computes `shift` from these:
struct mx_shift_t {
    int offset, least; // of the exponent field: scale code + offset, at least `least`
    int added;         // added to the field after it was moved to bf16's place
    int most;          // the largest scale code without overflow
};

// As minifloat_encoder_t::codes(). The power of two is made from 16 bits. For even and odd elements.
template <typename E>
struct mx_bf16_encoder_t {
    static constexpr int m = E::mantissa_bits;
    static constexpr mx_shift_t shift = {E::emin, 1, 0, 254 - (23 - m) - E::emax - 1};

    MXDNN_INLINE __m256i codes_u16(__m256i x, __m256i least) {
        const __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi16(0x7fff));
        const __m256i e = _mm256_max_epu16(_mm256_and_si256(x, _mm256_set1_epi16(0x7f80)), least);
        const __m256i power = _mm256_add_epi16(e, _mm256_set1_epi16((23 - m) << 7));
        const __m256i steps =
                _mm256_blend_epi16(sum(_mm256_slli_epi32(magnitude, 16), _mm256_slli_epi32(power, 16)),
                        _mm256_slli_epi32(sum(upper(magnitude), upper(power)), 16), 0xaa);
        return _mm256_add_epi16(steps, _mm256_srli_epi16(_mm256_sub_epi16(e, least), 7 - m));
    }
    template <typename P>
    MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
        const __m256i a = load256(x), b = load256(x + 16);
        const __m256i c = _mm256_packus_epi16(codes_u16(a, p.shift(0)), codes_u16(b, p.shift(1)));
        const __m256i sign = minifloat_encoder_t<E>::sign_of_code(_mm256_packs_epi16(a, b));
        return _mm256_or_si256(_mm256_min_epu8(c, _mm256_set1_epi8(char(E::max_code))), sign);
    }

private:
    MXDNN_INLINE __m256i upper(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi32(int(0xffff0000))); }
    MXDNN_INLINE __m256i sum(__m256i a, __m256i b) {
        return _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
    }
};

// To 8 bits: normal numbers are rounded as integers, with `fields` exponents to spare below them. Nonzero
// elements in that range are rare: they are subnormal, 2^-14 of the largest and less.
template <typename E>
struct rounding_t {
    static constexpr int m = E::mantissa_bits, cut = 7 - m, fields = m + 1;
    static constexpr int below_half = (1 << (cut - 1)) - 1, spare = fields << m;
    // Codes with `spare` below this, except 0, belong to subnormals.
    static constexpr int least = spare + (1 << m);
    static constexpr mx_shift_t shift = {
            -(E::bias + fields), 1, -below_half, mx_bf16_encoder_t<E>::shift.most};
    // b.shift is smaller by this than the shift of mx_bf16_encoder_t.
    static constexpr int less = ((mx_bf16_encoder_t<E>::shift.offset + E::bias + fields) << 7) + below_half;
};
template <typename E>
struct rounded_bf16_encoder_t {
    using r = rounding_t<E>;
    static constexpr mx_shift_t shift = r::shift;

    MXDNN_INLINE __m256i cut_u16(__m256i x, __m256i off) {
        const __m256i v = _mm256_subs_epu16(_mm256_and_si256(x, _mm256_set1_epi16(0x7fff)), off);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(x, r::cut), _mm256_set1_epi16(1));
        return _mm256_srli_epi16(_mm256_add_epi16(v, odd), r::cut);
    }
    template <typename P>
    MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
        const __m256i a = load256(x), b = load256(x + 16);
        const __m256i v = _mm256_packus_epi16(cut_u16(a, p.shift(0)), cut_u16(b, p.shift(1)));
        const __m256i below =
                _mm256_subs_epu8(_mm256_set1_epi8(r::least - 1), _mm256_sub_epi8(v, _mm256_set1_epi8(1)));
        if (__builtin_expect(!_mm256_testz_si256(below, below), 0))
            return mx_bf16_encoder_t<E>::encode(x, less_t<P>{p});
        const __m256i c = _mm256_min_epu8(
                _mm256_subs_epu8(v, _mm256_set1_epi8(r::spare)), _mm256_set1_epi8(char(E::max_code)));
        return _mm256_or_si256(c, minifloat_encoder_t<E>::sign_of_code(_mm256_packs_epi16(a, b)));
    }

private:
    template <typename P>
    struct less_t {
        const P &p;
        __m256i shift(int v) const { return _mm256_add_epi16(p.shift(v), _mm256_set1_epi16(r::less)); }
    };
};

// The best encoder for elements of a type.
template <typename E, bool large = E::bits == 8>
struct bf16_encoder_of {
    using type = mx_bf16_encoder_t<E>;
};
template <typename E>
struct bf16_encoder_of<E, true> {
    using type = rounded_bf16_encoder_t<E>;
};

// ---- integers ----

// Rounded to nearest even after clamping. NaN gives 0.
MXDNN_INLINE __m256i to_int(__m256 y, float lo, float hi) {
    y = _mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q));
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(y, _mm256_set1_ps(lo)), _mm256_set1_ps(hi)));
}

struct mxint8_encoder_t {
    // Finite elements of a block that is not poisoned are at most 128 steps, and packing saturates.
    template <typename S, typename P>
    MXDNN_INLINE __m256i encode_scaled(const typename S::raw_t *x, const P &p) {
        const f32x32_t y = S::load(x);
        __m256i c[4];
        for (int i = 0; i < 4; i++) c[i] = _mm256_cvtps_epi32(steps(y.v[i], p.factor(i)));
        return _mm256_max_epi8(pack_signed(c[0], c[1], c[2], c[3]), _mm256_set1_epi8(char(-s8_t::highest)));
    }
    template <typename S, typename P>
    MXDNN_INLINE __m256i encode_any(const typename S::raw_t *x, const P &p) {
        const f32x32_t y = S::load(x);
        __m256i c[4];
        for (int i = 0; i < 4; i++) c[i] = to_int(steps(y.v[i], p.factor(i)), -s8_t::highest, s8_t::highest);
        return pack_signed(c[0], c[1], c[2], c[3]);
    }

private:
    MXDNN_INLINE __m256 steps(__m256 y, __m256 factor) {
        return _mm256_mul_ps(_mm256_mul_ps(y, factor), _mm256_set1_ps(1 / s8_t::step));
    }
};

// An affine block computes (x - zero) / scale + zero_point. Quotients are first clamped to a range beyond
// which no zero point changes the code; then the sum is clamped to the type.
template <typename E, typename S, typename P>
MXDNN_INLINE __m256i encode_affine(const typename S::raw_t *x, const P &p) {
    const f32x32_t y = S::load(x);
    const __m256i lo = _mm256_set1_epi32(E::lowest), hi = _mm256_set1_epi32(E::highest);
    __m256i c[4];
    for (int i = 0; i < 4; i++) {
        const __m256i steps =
                to_int(_mm256_div_ps(_mm256_sub_ps(y.v[i], p.zero(i)), p.divisor(i)), -1024, 1024);
        c[i] = _mm256_min_epi32(_mm256_max_epi32(_mm256_add_epi32(steps, p.zero_point(i)), lo), hi);
    }
    const __m256i v = pack_signed(c[0], c[1], c[2], c[3]);
    return _mm256_and_si256(v, _mm256_set1_epi8(char(E::code_mask)));
}

// The same without a division, for elements and scales of at most 11 significant bits. Their quotient is a
// tie between two codes, or at least 2^-12 away from one. The product with the reciprocal is off by less than
// 2^-16. Rounded to multiples of 2^-14 it is therefore on the right side, or on the tie. Quotients are below
// affine_reach, so that those of 4 bits, with a zero point added, fit in a byte. There is no zero.
template <typename E>
constexpr float affine_reach = E::bits == 8 ? 192 : 64;
constexpr float affine_grid = 768;        // steps of 2^-14 from 512 to 1024
constexpr float affine_whole = 0x1.8p23f; // whole steps from 2^23 to 2^24, as integers in the low bits
template <typename E, typename P>
MXDNN_INLINE __m256i affine_codes(__m256i steps, const P &p) {
    // Only u4 has zero points.
    if (E::lowest == 0) steps = _mm256_add_epi8(steps, p.zero_point_bytes());
    const __m256i lo = _mm256_set1_epi8(char(E::lowest)), hi = _mm256_set1_epi8(char(E::highest));
    return _mm256_and_si256(
            _mm256_min_epi8(_mm256_max_epi8(steps, lo), hi), _mm256_set1_epi8(char(E::code_mask)));
}
template <typename E, typename S, typename P>
MXDNN_INLINE __m256i encode_affine_by_reciprocal(const typename S::raw_t *x, const P &p) {
    static_assert(sizeof(typename S::raw_t) == 2);
    const __m256 grid = _mm256_set1_ps(affine_grid);
    const f32x32_t y = S::load(x);
    __m256i c[4];
    for (int i = 0; i < 4; i++)
        c[i] = _mm256_cvtps_epi32(_mm256_sub_ps(_mm256_fmadd_ps(y.v[i], p.factor(i), grid), grid));
    return affine_codes<E>(pack_signed(c[0], c[1], c[2], c[3]), p);
}
// For bf16, even and odd elements: their factors are in this order, too. The codes are in that of
// source_bf16_t.
template <typename E, typename P>
MXDNN_INLINE __m256i encode_affine_bf16(const uint16_t *x, const P &p) {
    const auto steps = [&](__m256i y, int v) {
        const __m256 rounded =
                _mm256_fmadd_ps(_mm256_castsi256_ps(y), p.factor(v), _mm256_set1_ps(affine_grid));
        return _mm256_castps_si256(_mm256_add_ps(rounded, _mm256_set1_ps(affine_whole - affine_grid)));
    };
    const auto words = [&](__m256i y, int v) {
        const __m256i odd = _mm256_and_si256(y, _mm256_set1_epi32(int(0xffff0000)));
        return _mm256_blend_epi16(
                steps(_mm256_slli_epi32(y, 16), v), _mm256_slli_epi32(steps(odd, v + 1), 16), 0xaa);
    };
    return affine_codes<E>(_mm256_packs_epi16(words(load256(x), 0), words(load256(x + 16), 2)), p);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
