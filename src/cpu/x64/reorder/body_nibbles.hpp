// SPDX-License-Identifier: Apache-2.0
// Codes of n16_b4 in vectors of AVX2, eight columns each: the greatest ones of columns, and looking them up
// in tables of 16 bytes. These are those of two columns, 8 codes of each. So two dwords of a column, 16 rows,
// meet in 8 bytes.
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int recode_lanes = 8; // columns of a vector
MXDNN_INLINE __m256i dwords256(uint32_t x) { return _mm256_set1_epi32(int(x)); }

// ---- from codes to the largest magnitudes of cells ----

// The greatest halves of the bytes of each column, of number(vector) for some vectors, 64 bytes apart.
template <int bits, typename F>
MXDNN_INLINE __m256i greatest_nibbles256(const uint8_t *codes, int vectors, F &&number) {
    constexpr int low_mask = (1 << bits) - 1;
    __m256i low = _mm256_setzero_si256(), high = low;
    for (int i = 0; i < vectors; i++) {
        const __m256i v = number(load256(codes + i * 64));
        low = _mm256_max_epu8(low, _mm256_and_si256(v, _mm256_set1_epi8(low_mask)));
        high = _mm256_max_epu8(high, _mm256_and_si256(v, _mm256_set1_epi8(char(low_mask << 4))));
    }
    __m256i v = _mm256_max_epu8(low, _mm256_srli_epi16(high, 4));
    v = _mm256_max_epu8(v, _mm256_srli_epi32(v, 16));
    v = _mm256_max_epu8(v, _mm256_srli_epi32(v, 8));
    return _mm256_and_si256(v, dwords256(15));
}

// Codes of four columns, 16 rows each: two columns in each half.
MXDNN_INLINE __m256i columns_together(__m256i first, __m256i second, bool upper) {
    return upper ? _mm256_unpackhi_epi32(first, second) : _mm256_unpacklo_epi32(first, second);
}
// The inverse: the first or the second eight rows of eight columns.
MXDNN_INLINE __m256i rows_together(__m256i lower, __m256i upper, bool second) {
    const __m256 a = _mm256_castsi256_ps(lower), b = _mm256_castsi256_ps(upper);
    return _mm256_castps_si256(second ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88));
}

// The new codes of the low halves of bytes, a byte each.
template <int bits, bool has_sign>
MXDNN_INLINE __m256i look_up_codes256(const __m256i *t, __m256i v) {
    const __m256i second = _mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808);
    const __m256i at = _mm256_or_si256(_mm256_and_si256(v, _mm256_set1_epi8(7)), second),
                  codes = _mm256_shuffle_epi8(t[0], at);
    if (has_sign) {
        const __m256i sign =
                _mm256_and_si256(_mm256_slli_epi16(v, bits - 4), _mm256_set1_epi8(char(1 << (bits - 1))));
        return _mm256_xor_si256(codes, sign);
    }
    return _mm256_blendv_epi8(codes, _mm256_shuffle_epi8(t[1], at), _mm256_slli_epi16(v, 4));
}

MXDNN_INLINE void write_two(bool around, uint8_t *to, __m256i a, __m256i b) {
    write256(around, to, a);
    write256(around, to + 32, b);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
