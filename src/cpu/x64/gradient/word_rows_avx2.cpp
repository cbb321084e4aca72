// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/gradient/word_rows.hpp"

#include <immintrin.h>

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

#define MXDNN_INLINE static inline __attribute__((always_inline))

constexpr int lanes = 8;

MXDNN_INLINE __m256 bits_as_f32(__m256i v) { return _mm256_castsi256_ps(v); }

// Eight values of a type, exact in f32.
template <data_type_t dt>
MXDNN_INLINE __m256 load(const uint8_t *p) {
    if constexpr (dt == mxdnn_f32) {
        return _mm256_loadu_ps(reinterpret_cast<const float *>(p));
    } else if constexpr (dt == mxdnn_bf16) {
        const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
        return bits_as_f32(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
    } else if constexpr (dt == mxdnn_f16) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
    } else {
        const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p));
        // e5m2 is the upper half of an f16.
        if constexpr (dt == mxdnn_f8_e5m2)
            return _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), codes));
        // e4m3 is an f16 whose exponent bias is larger by 8. All ones is NaN: only for it a saturating
        // subtraction leaves a difference, which completes the exponent.
        const __m128i w = _mm_unpacklo_epi8(_mm_setzero_si128(), codes);
        const __m128i nan = _mm_slli_epi16(
                _mm_subs_epu16(_mm_add_epi16(w, w), _mm_set1_epi16(short(0xfc00))), 5); // 0x4000 or 0
        const __m128i f16 = _mm_and_si128(_mm_srai_epi16(w, 1), _mm_set1_epi16(short(0xbfff)));
        return _mm256_mul_ps(_mm256_cvtph_ps(_mm_add_epi16(f16, nan)), _mm256_set1_ps(256.f));
    }
}

template <data_type_t dt>
constexpr int bytes_of = dt == mxdnn_f32                       ? 4
                         : dt == mxdnn_bf16 || dt == mxdnn_f16 ? 2
                                                               : 1;
template <data_type_t dt>
constexpr bool is_scaled = bytes_of<dt> == 1;

template <data_type_t dt>
MXDNN_INLINE __m256i values(const uint8_t *p, const float *scales) {
    __m256 v = load<dt>(p);
    if constexpr (is_scaled<dt>) v = _mm256_mul_ps(v, _mm256_loadu_ps(scales));
    return _mm256_castps_si256(v);
}

// Whatever has 8 bits of mantissa is exact in the upper half of its f32, except below the normal numbers.
template <data_type_t dt, bool pairs>
MXDNN_INLINE __m256i words_of(const uint8_t *first, const uint8_t *second, const float *scales) {
    const __m256i a = values<dt>(first, scales);
    if constexpr (!pairs) return a;
    const __m256i upper = _mm256_set1_epi32(int(0xffff0000));
    return _mm256_or_si256(_mm256_srli_epi32(a, 16), _mm256_and_si256(values<dt>(second, scales), upper));
}

template <data_type_t dt, bool pairs>
void make_words(
        const uint8_t *first, const uint8_t *second, const float *scales, uint32_t *words, int64_t n) {
    constexpr int size = bytes_of<dt>;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(words + i),
                words_of<dt, pairs>(first + i * size, pairs ? second + i * size : nullptr,
                        is_scaled<dt> ? scales + i : nullptr));
    if (i == n) return;
    // The last columns, in buffers of eight.
    uint8_t last[2][lanes * size] = {};
    float last_scales[lanes] = {};
    uint32_t last_words[lanes];
    const size_t rest = size_t(n - i);
    __builtin_memcpy(last[0], first + i * size, rest * size);
    if (pairs) __builtin_memcpy(last[1], second + i * size, rest * size);
    if (is_scaled<dt>) __builtin_memcpy(last_scales, scales + i, rest * 4);
    _mm256_storeu_si256(
            reinterpret_cast<__m256i *>(last_words), words_of<dt, pairs>(last[0], last[1], last_scales));
    __builtin_memcpy(words + i, last_words, rest * 4);
}

template <data_type_t dt>
void make_any(const uint8_t *first, const uint8_t *second, const float *scales, uint32_t *words, int64_t n) {
    if constexpr (dt != mxdnn_f32 && dt != mxdnn_f16)
        if (second) return make_words<dt, true>(first, second, scales, words, n);
    make_words<dt, false>(first, second, scales, words, n);
}

void make(data_type_t dt, const void *first, const void *second, const float *scales, uint32_t *words,
        int64_t n) {
    const uint8_t *a = static_cast<const uint8_t *>(first), *b = static_cast<const uint8_t *>(second);
    switch (dt) {
    case mxdnn_f32: return make_any<mxdnn_f32>(a, b, scales, words, n);
    case mxdnn_bf16: return make_any<mxdnn_bf16>(a, b, scales, words, n);
    case mxdnn_f16: return make_any<mxdnn_f16>(a, b, scales, words, n);
    case mxdnn_f8_e4m3: return make_any<mxdnn_f8_e4m3>(a, b, scales, words, n);
    default: return make_any<mxdnn_f8_e5m2>(a, b, scales, words, n);
    }
}

// The byte is the exponent field, except for 0 (2^-127, a subnormal) and 255 (NaN). Both get the top mantissa
// bit.
void make_scales(const uint8_t *codes, int64_t stride, float *scales, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const uint32_t c = codes[i * stride], bits = c << 23 | (c == 0 || c == 255 ? 0x400000u : 0u);
        __builtin_memcpy(scales + i, &bits, 4);
    }
}

} // namespace

const word_rows_t word_rows_avx2 = {make, make_scales};

} // namespace x64
} // namespace impl
} // namespace mxdnn
