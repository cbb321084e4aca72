// SPDX-License-Identifier: Apache-2.0
// Codes to f32, 16 at a time, and f32 to bf16, f16 and f32: the same bits as the scalar traits give.
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

struct f32x16_t {
    __m256 v[2];
};

MXDNN_INLINE f32x16_t f16_to_f32(__m256i v) {
    return {{_mm256_cvtph_ps(_mm256_castsi256_si128(v)), _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1))}};
}

// Every code of a minifloat is moved to the place of an f16, where subnormals are subnormal, and Inf and NaN
// remain so. The difference of the exponents' biases is left to the factor: a value of 1 becomes `unit`.
template <typename E>
struct minifloat_decoder_t {
    static constexpr int m = E::mantissa_bits;
    static constexpr float unit = exp2_f32(E::bias - 15);
    static_assert(E::exponent_bits <= 5 && E::bias <= 15);

    MXDNN_INLINE f32x16_t decode(__m128i c) {
        // Moves the sign to bit 7, then everything to the top.
        if (E::bits < 8)
            c = _mm_and_si128(_mm_slli_epi16(c, 8 - E::bits), _mm_set1_epi8(char(0xff << (8 - E::bits))));
        constexpr int magnitude = int(E::sign_code - 1) << (10 - m);
        __m256i v = _mm256_slli_epi16(_mm256_cvtepi8_epi16(c), 3 + E::exponent_bits);
        v = _mm256_and_si256(v, _mm256_set1_epi16(short(0x8000 | magnitude)));
        if (E::specials == specials_t::nan) {
            constexpr int nan = int(E::nan_code) << (10 - m);
            const __m256i is_nan = _mm256_cmpeq_epi16(
                    _mm256_and_si256(v, _mm256_set1_epi16(0x7fff)), _mm256_set1_epi16(short(nan)));
            v = _mm256_xor_si256(v, _mm256_and_si256(is_nan, _mm256_set1_epi16(short(nan ^ 0x7e00))));
        }
        return f16_to_f32(v);
    }
};

struct mxint8_decoder_t {
    static constexpr float unit = 1 / s8_t::step;

    MXDNN_INLINE f32x16_t decode(__m128i c) {
        return {{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(c)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(c, 8)))}};
    }
};

template <typename E>
struct mx_decoder_t : minifloat_decoder_t<E> {};
template <>
struct mx_decoder_t<s8_t> : mxint8_decoder_t {};

// 4-bit integers, those without a sign minus 8: f16 with a zero low byte.
template <typename E>
struct integer_decoder_t {
    struct table_t {
        uint8_t high[16];
        constexpr table_t() : high() {
            for (int i = 0; i < 16; i++)
                high[i] = uint8_t(f16_t::encode(float(E::is_signed ? (i ^ 8) - 8 : i - 8)) >> 8);
        }
    };
    static constexpr table_t table{};

    MXDNN_INLINE f32x16_t decode(__m128i c) {
        const __m128i high = _mm_shuffle_epi8(load128(table.high), c);
        return f16_to_f32(_mm256_slli_epi16(_mm256_cvtepu8_epi16(high), 8));
    }
};
template <>
struct integer_decoder_t<s8_t> : mxint8_decoder_t {};

// ---- f32 to the destination ----

struct target_f32_t {
    using raw_t = float;
    MXDNN_INLINE void store(bool around, raw_t *p, const f32x16_t &x) {
        write256(around, p, _mm256_castps_si256(x.v[0]));
        write256(around, p + 8, _mm256_castps_si256(x.v[1]));
    }
};
struct target_f16_t {
    using raw_t = uint16_t;
    MXDNN_INLINE void store(bool around, raw_t *p, const f32x16_t &x) {
        const __m128i a = _mm256_cvtps_ph(x.v[0], _MM_FROUND_TO_NEAREST_INT);
        write256(around, p, _mm256_set_m128i(_mm256_cvtps_ph(x.v[1], _MM_FROUND_TO_NEAREST_INT), a));
    }
};
// The upper halves of dwords, in order.
MXDNN_INLINE __m256i upper_halves(__m256i a, __m256i b) {
    const __m256i v = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
    return _mm256_permute4x64_epi64(v, 0xd8);
}
// For numbers that bf16 can represent.
struct target_exact_bf16_t {
    using raw_t = uint16_t;
    MXDNN_INLINE void store(bool around, raw_t *p, const f32x16_t &x) {
        write256(around, p, upper_halves(_mm256_castps_si256(x.v[0]), _mm256_castps_si256(x.v[1])));
    }
};
// For anything but NaN. Rounds to nearest even.
struct target_finite_bf16_t {
    using raw_t = uint16_t;
    MXDNN_INLINE __m256i round(__m256 x) {
        const __m256i u = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
        return _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    }
    MXDNN_INLINE void store(bool around, raw_t *p, const f32x16_t &x) {
        write256(around, p, upper_halves(round(x.v[0]), round(x.v[1])));
    }
};
struct target_bf16_t {
    using raw_t = uint16_t;
    // Rounds to nearest even. NaN keeps its sign and upper bits and becomes quiet. The result is in the high
    // half of each dword.
    MXDNN_INLINE __m256i round(__m256 x) {
        const __m256i u = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
        const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
        const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        return _mm256_blendv_epi8(rounded, quiet, nan);
    }
    MXDNN_INLINE void store(bool around, raw_t *p, const f32x16_t &x) {
        write256(around, p, upper_halves(round(x.v[0]), round(x.v[1])));
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
