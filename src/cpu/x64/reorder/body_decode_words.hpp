// SPDX-License-Identifier: Apache-2.0
// Minifloats under powers of two to bf16 as integers: a scale adds to the exponent field, and nothing is
// rounded. Of scales that keep every value normal (calm_t::exact).
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Words of values under a scale of 1, minus `bias`, for the codes whose words are not shifts: subnormals, or
// all. The word of zero is so low that no scale makes it positive.
template <typename E>
struct value_words_t {
    static constexpr int m = E::mantissa_bits, bias = (127 - E::bias) << 7;
    static constexpr bool are_all = E::bits == 4;
    static constexpr int tabled = are_all ? int(E::sign_code) : 1 << m;
    static_assert(tabled <= 16);

    uint8_t low[16], high[16];
    constexpr value_words_t() : low(), high() {
        for (int i = 0; i < tabled; i++) {
            const uint32_t f32 = __builtin_bit_cast(uint32_t, E::decode(uint32_t(i)));
            const int word = i == 0 ? -0x8000 : int(f32 >> 16) - bias;
            low[i] = uint8_t(word & 0xff);
            high[i] = uint8_t(word >> 8 & 0xff);
        }
    }
};

// 16 words of each half of 32 codes.
struct words_t {
    __m256i first, second;
};

template <typename E>
struct words_decoder_t {
    static constexpr int m = E::mantissa_bits;
    static constexpr value_words_t<E> table{};

    // The number that a scale adds to words.
    MXDNN_INLINE uint16_t offset(uint32_t e8m0) {
        return uint16_t((int(e8m0) - 127) * (1 << 7) + value_words_t<E>::bias);
    }

    MXDNN_INLINE __m256i magnitudes(__m256i c) {
        return _mm256_and_si256(c, _mm256_set1_epi8(char(E::sign_code - 1)));
    }
    // Nonzero if there is an Inf or NaN.
    MXDNN_INLINE __m256i specials(__m256i c) {
        if (E::specials == specials_t::none) return _mm256_setzero_si256();
        return _mm256_cmpgt_epi8(magnitudes(c), _mm256_set1_epi8(char(E::max_code)));
    }
    // Codes 0..7 and 16..23 are in the low lane. `first` and `second` are what the scales of both halves add.
    MXDNN_INLINE words_t decode(__m256i c, __m256i first, __m256i second) {
        const __m256i magnitude = magnitudes(c), zero = _mm256_setzero_si256();
        __m256i low = look_up(table.low, magnitude), high = look_up(table.high, magnitude);
        if (!value_words_t<E>::are_all) {
            const __m256i normal = _mm256_cmpgt_epi8(magnitude, _mm256_set1_epi8((1 << m) - 1));
            const __m256i shifted_low = _mm256_and_si256(_mm256_slli_epi16(magnitude, 7 - m),
                                  _mm256_set1_epi8(char(0xff << (7 - m)))),
                          shifted_high = _mm256_and_si256(
                                  _mm256_srli_epi16(magnitude, m + 1), _mm256_set1_epi8(0xff >> (m + 1)));
            low = _mm256_blendv_epi8(low, shifted_low, normal);
            high = _mm256_blendv_epi8(high, shifted_high, normal);
        }
        const __m256i sign =
                _mm256_and_si256(_mm256_slli_epi16(c, 8 - E::bits), _mm256_set1_epi8(char(0x80)));
        const auto sum = [&](__m256i words, __m256i signs, __m256i offset) {
            return _mm256_or_si256(_mm256_max_epi16(_mm256_add_epi16(words, offset), zero), signs);
        };
        return {sum(_mm256_unpacklo_epi8(low, high), _mm256_unpacklo_epi8(zero, sign), first),
                sum(_mm256_unpackhi_epi8(low, high), _mm256_unpackhi_epi8(zero, sign), second)};
    }

private:
    MXDNN_INLINE __m256i look_up(const uint8_t *bytes, __m256i index) {
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(bytes)), index);
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
