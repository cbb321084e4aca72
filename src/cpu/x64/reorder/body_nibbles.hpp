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

// How codes from 8 on become others: as those below with the sign bit, as their negative numbers (of 4 bits,
// 8 is only there for these), or by a table of their own. `of_number`: codes are numbers, tables begin with
// what 1 becomes, and become codes with the sign bit.
enum class signs_t { bit, number, table, of_number, number_of_number };

// The new codes of the low halves of bytes, a byte each.
template <int bits, signs_t signs>
MXDNN_INLINE __m256i look_up_codes256(const __m256i *t, __m256i v) {
    const __m256i second = _mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808);
    constexpr bool of_numbers = signs == signs_t::of_number || signs == signs_t::number_of_number;
    const __m256i less = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(-1, 0, 1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1, 0)); // than the magnitude, by 1
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi8(of_numbers ? 15 : 7)),
                  at = _mm256_or_si256(of_numbers ? _mm256_shuffle_epi8(less, low) : low, second),
                  codes = _mm256_shuffle_epi8(t[0], at);
    if (signs == signs_t::bit || signs == signs_t::of_number) {
        const __m256i sign =
                _mm256_and_si256(_mm256_slli_epi16(v, bits - 4), _mm256_set1_epi8(char(1 << (bits - 1))));
        return _mm256_xor_si256(codes, sign);
    }
    if (signs == signs_t::number || signs == signs_t::number_of_number) { // code 0 becomes 0
        const __m256i numbers = _mm256_sign_epi8(codes, _mm256_slli_epi16(v, 4));
        if (bits != 4) return numbers;
        return _mm256_and_si256(
                _mm256_min_epi8(numbers, _mm256_set1_epi8(7)), _mm256_set1_epi8(15)); // 8 is -8
    }
    return _mm256_blendv_epi8(codes, _mm256_shuffle_epi8(t[1], at), _mm256_slli_epi16(v, 4));
}

// n16_b6: the first, second or third vector of four, with its share of the last one's bits.
MXDNN_INLINE __m256i with_top_bits(__m256i v, __m256i last, int i) {
    return _mm256_or_si256(
            v, _mm256_and_si256(_mm256_slli_epi16(last, 6 - 2 * i), _mm256_set1_epi8(char(0xc0))));
}
MXDNN_INLINE void write_two(bool around, uint8_t *to, __m256i a, __m256i b) {
    write256(around, to, a);
    write256(around, to + 32, b);
}

// 16 rows of 16 columns become codes of another format. tables(half, upper): those of four columns.
struct two_tables_t {
    __m256i of[2];
};
template <int bits, signs_t signs, typename F>
MXDNN_INLINE void recode_rows(F &&tables, const uint8_t *from, uint8_t *to, bool around) {
    __m256i low[2][2], high[2][2]; // of each eight rows of each half of the columns
    for (int h = 0; h < 2; h++) {
        const __m256i first = load256(from + 32 * h), second = load256(from + 64 + 32 * h);
        __m256i l[2], u[2];
        for (int upper = 0; upper < 2; upper++) {
            const two_tables_t t = tables(h, upper);
            const __m256i v = columns_together(first, second, upper);
            l[upper] = look_up_codes256<bits, signs>(t.of, v);
            u[upper] = look_up_codes256<bits, signs>(t.of, _mm256_srli_epi16(v, 4));
            if (bits == 4) l[upper] = _mm256_or_si256(l[upper], _mm256_slli_epi16(u[upper], 4));
        }
        for (int second_rows = 0; second_rows < 2; second_rows++) {
            low[second_rows][h] = rows_together(l[0], l[1], second_rows);
            if (bits != 4) high[second_rows][h] = rows_together(u[0], u[1], second_rows);
        }
    }
    if constexpr (bits == 4) {
        for (int i = 0; i < 2; i++) write_two(around, to + 64 * i, low[i][0], low[i][1]);
        return;
    }
    // In the order of n16_b8.
    const __m256i order =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    __m256i v[4][2];
    for (int i = 0; i < 2; i++)
        for (int h = 0; h < 2; h++) {
            const __m256i a = _mm256_shuffle_epi8(low[i][h], order),
                          b = _mm256_shuffle_epi8(high[i][h], order);
            v[2 * i][h] = _mm256_unpacklo_epi64(a, b);
            v[2 * i + 1][h] = _mm256_unpackhi_epi64(a, b);
        }
    for (int i = 0; i < (bits == 6 ? 3 : 4); i++) {
        for (int h = 0; h < 2 && bits == 6; h++) v[i][h] = with_top_bits(v[i][h], v[3][h], i);
        write_two(around, to + 64 * i, v[i][0], v[i][1]);
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
