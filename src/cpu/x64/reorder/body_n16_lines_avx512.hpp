// SPDX-License-Identifier: Apache-2.0
// 32 positions of a line as the words of a vector: their largest, many lines at a time, and the codes of 16
// lines to and from the vectors of n16_b4, n16_b6 and n16_b8. Nothing as wide as values is transposed: codes
// are, once they stand together in dwords.
#pragma once

#include "cpu/x64/reorder/body_words_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// The lanes of four vectors transposed: lane i of all becomes vector i.
struct lanes_t {
    __m512i v[4];
};
MXDNN_INLINE lanes_t turn_lanes(const __m512i *g) {
    const __m512i a = _mm512_shuffle_i32x4(g[0], g[1], 0x44), b = _mm512_shuffle_i32x4(g[0], g[1], 0xee),
                  c = _mm512_shuffle_i32x4(g[2], g[3], 0x44), d = _mm512_shuffle_i32x4(g[2], g[3], 0xee);
    return {{_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
            _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)}};
}

// ---- the largest of each line ----

// For 16 positions of 32 lines each, in the order of the lines.
struct largest_t {
    __m512i first, second;
    __m512i of_all() const { return _mm512_max_epi16(first, second); }
};

// line(l) is line l, as numbers that compare like signed words. Interleaving two vectors leaves half as many
// candidates for each of twice as many lines.
template <typename F>
MXDNN_INLINE largest_t largest_of_lines(F &&line) {
    __m512i p[4]; // of eight lines, one candidate for each in every lane
    for (int i = 0; i < 4; i++) {
        __m512i q[2];
        for (int j = 0; j < 2; j++) {
            const int l = 8 * i + 4 * j;
            const __m512i a = line(l), b = line(l + 1), c = line(l + 2), d = line(l + 3);
            const __m512i ab = _mm512_max_epi16(_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)),
                          cd = _mm512_max_epi16(_mm512_unpacklo_epi16(c, d), _mm512_unpackhi_epi16(c, d));
            q[j] = _mm512_max_epi16(_mm512_unpacklo_epi32(ab, cd), _mm512_unpackhi_epi32(ab, cd));
        }
        p[i] = _mm512_max_epi16(_mm512_unpacklo_epi64(q[0], q[1]), _mm512_unpackhi_epi64(q[0], q[1]));
    }
    const auto halves = [&](int i) {
        return _mm512_max_epi16(
                _mm512_shuffle_i32x4(p[i], p[i + 1], 0x88), _mm512_shuffle_i32x4(p[i], p[i + 1], 0xdd));
    };
    const __m512i a = halves(0), b = halves(2);
    return {_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd)};
}

// ---- codes of a panel ----

// pack(out, around, codes): codes(i, j) has lines i and j, one code and nothing else in each byte. Each lane
// has eight codes of one line, then eight of the other. unpack(in, line): line(l, words, place) has a code at
// bit `place` of each word; other bits may have any value.
template <int bits>
struct n16_lines_t;

// A dword is eight positions of a line: 0 2 4 6 in the low word, 1 3 5 7 in the high one.
template <>
struct n16_lines_t<4> {
    template <typename F>
    MXDNN_INLINE void pack(uint8_t *out, bool around, F &&codes) {
        __m512i g[4];
        for (int i = 0; i < 4; i++)
            g[i] = _mm512_unpacklo_epi64(
                    dwords_of(codes(4 * i, 4 * i + 1)), dwords_of(codes(4 * i + 2, 4 * i + 3)));
        const lanes_t t = turn_lanes(g);
        for (int i = 0; i < 4; i++) write512(around, out + 64 * i, t.v[i]);
    }
    template <typename F>
    MXDNN_INLINE void unpack(const uint8_t *in, F &&line) {
        const __m512i v[4] = {load512(in), load512(in + 64), load512(in + 128), load512(in + 192)};
        const lanes_t t = turn_lanes(v);
        for (int i = 0; i < 4; i++) {
            const auto word = [&](__m512i four) { return _mm512_srlv_epi32(four, places()); };
            line(4 * i, word(_mm512_shuffle_epi32(t.v[i], _MM_PERM_AAAA)), 0);
            line(4 * i + 1, word(_mm512_shuffle_epi32(t.v[i], _MM_PERM_BBBB)), 0);
            line(4 * i + 2, word(_mm512_shuffle_epi32(t.v[i], _MM_PERM_CCCC)), 0);
            line(4 * i + 3, word(_mm512_shuffle_epi32(t.v[i], _MM_PERM_DDDD)), 0);
        }
    }

private:
    MXDNN_INLINE __m512i places() { return _mm512_set4_epi32(12, 8, 4, 0); }
    // Both lines of a lane, in its first quadword.
    MXDNN_INLINE __m512i dwords_of(__m512i bytes) {
        // Positions at distance two share a byte.
        const __m512i v = _mm512_or_si512(bytes, _mm512_srli_epi64(bytes, 12));
        return shuffle512(v, _mm_setr_epi8(0, 4, 1, 5, 8, 12, 9, 13, -1, -1, -1, -1, -1, -1, -1, -1));
    }
};

// Vectors of n16_b8, each with four positions of all columns: for four columns positions 0 and 1, then 2 and
// 3.
struct quads_t {
    __m512i v[8];
};
template <typename F>
MXDNN_INLINE quads_t pack_lines(F &&codes) {
    __m512i even[4], odd[4];
    for (int i = 0; i < 4; i++) {
        const __m512i ac = codes(4 * i, 4 * i + 2), bd = codes(4 * i + 1, 4 * i + 3);
        const __m512i ab = _mm512_unpacklo_epi16(ac, bd), cd = _mm512_unpackhi_epi16(ac, bd);
        even[i] = _mm512_unpacklo_epi32(ab, cd);
        odd[i] = _mm512_unpackhi_epi32(ab, cd);
    }
    const lanes_t e = turn_lanes(even), o = turn_lanes(odd);
    return {{e.v[0], o.v[0], e.v[1], o.v[1], e.v[2], o.v[2], e.v[3], o.v[3]}};
}
template <typename F>
MXDNN_INLINE void unpack_lines(const quads_t &t, F &&line) {
    const __m512i even[4] = {t.v[0], t.v[2], t.v[4], t.v[6]}, odd[4] = {t.v[1], t.v[3], t.v[5], t.v[7]};
    const lanes_t e = turn_lanes(even), o = turn_lanes(odd);
    for (int i = 0; i < 4; i++) {
        const __m512i low = _mm512_unpacklo_epi16(e.v[i], o.v[i]),
                      high = _mm512_unpackhi_epi16(e.v[i], o.v[i]);
        const __m512i ab = _mm512_unpacklo_epi16(low, high), cd = _mm512_unpackhi_epi16(low, high);
        line(4 * i, _mm512_unpacklo_epi8(ab, ab), 8);
        line(4 * i + 1, _mm512_unpackhi_epi8(ab, ab), 8);
        line(4 * i + 2, _mm512_unpacklo_epi8(cd, cd), 8);
        line(4 * i + 3, _mm512_unpackhi_epi8(cd, cd), 8);
    }
}

template <>
struct n16_lines_t<8> {
    template <typename F>
    MXDNN_INLINE void pack(uint8_t *out, bool around, F &&codes) {
        const quads_t t = pack_lines(codes);
        for (int i = 0; i < 8; i++) write512(around, out + 64 * i, t.v[i]);
    }
    template <typename F>
    MXDNN_INLINE void unpack(const uint8_t *in, F &&line) {
        quads_t t;
        for (int i = 0; i < 8; i++) t.v[i] = load512(in + 64 * i);
        unpack_lines(t, line);
    }
};

// The last of four vectors is in the top two bits of the others, its lowest bits in the first.
template <>
struct n16_lines_t<6> {
    template <typename F>
    MXDNN_INLINE void pack(uint8_t *out, bool around, F &&codes) {
        const quads_t t = pack_lines(codes);
        for (int i = 0; i < 2; i++)
            for (int q = 0; q < 3; q++)
                write512(around, out + 192 * i + 64 * q,
                        or_and(t.v[4 * i + q], _mm512_slli_epi16(t.v[4 * i + 3], unsigned(6 - 2 * q)),
                                top()));
    }
    template <typename F>
    MXDNN_INLINE void unpack(const uint8_t *in, F &&line) {
        quads_t t;
        for (int i = 0; i < 2; i++) {
            __m512i last = _mm512_setzero_si512();
            for (int q = 0; q < 3; q++) {
                const __m512i v = t.v[4 * i + q] = load512(in + 192 * i + 64 * q);
                last = _mm512_or_si512(
                        last, _mm512_srli_epi16(_mm512_and_si512(v, top()), unsigned(6 - 2 * q)));
            }
            t.v[4 * i + 3] = last;
        }
        unpack_lines(t, line);
    }

private:
    MXDNN_INLINE __m512i top() { return _mm512_set1_epi8(char(0xc0)); }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
