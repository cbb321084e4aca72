// SPDX-License-Identifier: Apache-2.0
// Rows of 32 codes, a word each, to and from the vectors of n16_b4, n16_b6 and n16_b8 of two panels. What
// goes where is said by the maps in those headers.
#pragma once

#include "cpu/x64/reorder/body_words_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Quadwords of two vectors alternately: the low half of the result, and the high half.
MXDNN_INLINE __m512i low_quads_in_turn(__m512i a, __m512i b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b);
}
MXDNN_INLINE __m512i high_quads_in_turn(__m512i a, __m512i b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b);
}
// Lanes of two vectors alternately: the low half of the result, and the high half.
MXDNN_INLINE __m512i low_lanes_in_turn(__m512i a, __m512i b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), b);
}
MXDNN_INLINE __m512i high_lanes_in_turn(__m512i a, __m512i b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), b);
}

// Four rows, the vectors of n16_b8 for both panels. bytes(i, j) has rows i and j: each lane has eight codes
// of one row, then eight of the other.
struct pair_t {
    __m512i panel[2];
};
template <typename F>
MXDNN_INLINE pair_t pack_four(F &&bytes) {
    const __m512i even = bytes(0, 2), odd = bytes(1, 3);
    // Rows 0 and 1, and rows 2 and 3, in the bytes of a word for each column.
    const __m512i a = _mm512_unpacklo_epi8(even, odd), b = _mm512_unpackhi_epi8(even, odd);
    return {{low_quads_in_turn(a, b), high_quads_in_turn(a, b)}};
}
// Rows 0 and 1 (2 and 3) in the bytes of the words of the first (second).
struct two_t {
    __m512i rows[2];
};
MXDNN_INLINE two_t unpack_four(const pair_t &p) {
    return {{_mm512_permutex2var_epi64(p.panel[0], _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), p.panel[1]),
            _mm512_permutex2var_epi64(p.panel[0], _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), p.panel[1])}};
}

// Rows that are packed together. codes(i, j, place) gives rows i and j as pack_four() takes them: at bit
// `place` of each byte, with nothing else. They are unpacked in `parts`: if rows are on different pages,
// writing 16 of them in turn takes longer than four (1.3 times as long at distances of a power of two).
template <int bits>
struct n16_words_t;

template <>
struct n16_words_t<8> {
    static constexpr int rows = 4, parts = 1;
    template <typename F>
    MXDNN_INLINE void pack(uint8_t *const *out, int64_t at, bool around, F &&codes) {
        const pair_t p = pack_four([&](int i, int j) { return codes(i, j, 0); });
        for (int j = 0; j < 2; j++) write512(around, out[j] + at, p.panel[j]);
    }
    // row(i, words, place): a code is in the low (place 0) or the high byte of each word; the other byte may
    // have any value.
    template <typename F>
    MXDNN_INLINE void unpack(const uint8_t *const *in, int64_t at, int, F &&row) {
        const two_t t = unpack_four({{load512(in[0] + at), load512(in[1] + at)}});
        for (int i = 0; i < 4; i++) row(i, t.rows[i / 2], 8 * (i % 2));
    }
};

// Vector 3 is in the top two bits of vectors 0, 1 and 2, its lowest bits in the first.
template <>
struct n16_words_t<6> {
    static constexpr int rows = 16, parts = 4;
    template <typename F>
    MXDNN_INLINE void pack(uint8_t *const *out, int64_t at, bool around, F &&codes) {
        pair_t v[4];
        for (int q = 0; q < 4; q++)
            v[q] = pack_four([&](int i, int j) { return codes(4 * q + i, 4 * q + j, 0); });
        const __m512i top = _mm512_set1_epi8(char(0xc0));
        for (int j = 0; j < 2; j++)
            for (int q = 0; q < 3; q++)
                write512(around, out[j] + at + 64 * q,
                        or_and(v[q].panel[j], _mm512_slli_epi16(v[3].panel[j], 6 - 2 * q), top));
    }
    template <typename F>
    MXDNN_INLINE void unpack(const uint8_t *const *in, int64_t at, int part, F &&row) {
        const pair_t v = part < 3 ? pair_t{{load512(in[0] + at + 64 * part), load512(in[1] + at + 64 * part)}}
                                  : pair_t{{last(in[0] + at), last(in[1] + at)}};
        const two_t t = unpack_four(v);
        for (int i = 0; i < 4; i++) row(4 * part + i, t.rows[i / 2], 8 * (i % 2));
    }

private:
    MXDNN_INLINE __m512i last(const uint8_t *in) {
        const __m512i top = _mm512_set1_epi8(char(0xc0));
        __m512i v = _mm512_setzero_si512();
        for (int q = 0; q < 3; q++)
            v = _mm512_or_si512(v, _mm512_srli_epi16(_mm512_and_si512(load512(in + 64 * q), top), 6 - 2 * q));
        return v;
    }
};

// A dword is eight rows of a column: rows 0 2 4 6 in the low word, 1 3 5 7 in the high one.
template <>
struct n16_words_t<4> {
    static constexpr int rows = 8, parts = 1;
    template <typename F>
    MXDNN_INLINE void pack(uint8_t *const *out, int64_t at, bool around, F &&codes) {
        // Rows 0 and 2, and in the other half of a lane rows 1 and 3; then 4 and 6, and 5 and 7.
        const __m512i first = _mm512_or_si512(codes(0, 1, 0), codes(2, 3, 4)),
                      second = _mm512_or_si512(codes(4, 5, 0), codes(6, 7, 4));
        const __m512i even = _mm512_unpacklo_epi8(first, second), odd = _mm512_unpackhi_epi8(first, second);
        const __m512i a = _mm512_unpacklo_epi16(even, odd), b = _mm512_unpackhi_epi16(even, odd);
        write512(around, out[0] + at, low_lanes_in_turn(a, b));
        write512(around, out[1] + at, high_lanes_in_turn(a, b));
    }
    template <typename F>
    MXDNN_INLINE void unpack(const uint8_t *const *in, int64_t at, int, F &&row) {
        const __m512i a = load512(in[0] + at), b = load512(in[1] + at), low = dwords(0xffff);
        // Words in pairs of lanes: low words of both panels, and high ones.
        const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
        const __m512i even = _mm512_packus_epi32(_mm512_and_si512(a, low), _mm512_and_si512(b, low)),
                      odd = _mm512_packus_epi32(_mm512_srli_epi32(a, 16), _mm512_srli_epi32(b, 16));
        const __m512i w[2] = {_mm512_permutexvar_epi64(order, even), _mm512_permutexvar_epi64(order, odd)};
        for (int i = 0; i < 8; i++) row(i, w[i % 2], 4 * (i / 2));
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
