// SPDX-License-Identifier: Apache-2.0
// Codes of 16 columns to and from the vectors of n16_b4, n16_b6 and n16_b8, 16 vectors at a time: a cache
// line of each column. A column has a dword in every vector, so it is 16 x 16 dwords that are transposed.
#pragma once

#include "cpu/x64/reorder/body_n16.hpp"
#include "cpu/x64/reorder/body_words_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int tile_vectors = 16, tile_vector_bytes = 64 * tile_vectors;

struct four_lines512_t {
    __m512i v[4];
};
// 4 x 4 dwords in every lane.
MXDNN_INLINE four_lines512_t transpose_dwords(const four_lines512_t &a) {
    const __m512i l01 = _mm512_unpacklo_epi32(a.v[0], a.v[1]), h01 = _mm512_unpackhi_epi32(a.v[0], a.v[1]);
    const __m512i l23 = _mm512_unpacklo_epi32(a.v[2], a.v[3]), h23 = _mm512_unpackhi_epi32(a.v[2], a.v[3]);
    return {{_mm512_unpacklo_epi64(l01, l23), _mm512_unpackhi_epi64(l01, l23),
            _mm512_unpacklo_epi64(h01, h23), _mm512_unpackhi_epi64(h01, h23)}};
}
// 4 x 4 lanes.
MXDNN_INLINE four_lines512_t transpose_lanes(const four_lines512_t &a) {
    const __m512i l01 = _mm512_shuffle_i32x4(a.v[0], a.v[1], 0x44),
                  h01 = _mm512_shuffle_i32x4(a.v[0], a.v[1], 0xee);
    const __m512i l23 = _mm512_shuffle_i32x4(a.v[2], a.v[3], 0x44),
                  h23 = _mm512_shuffle_i32x4(a.v[2], a.v[3], 0xee);
    return {{_mm512_shuffle_i32x4(l01, l23, 0x88), _mm512_shuffle_i32x4(l01, l23, 0xdd),
            _mm512_shuffle_i32x4(h01, h23, 0x88), _mm512_shuffle_i32x4(h01, h23, 0xdd)}};
}

// The vectors of a panel are one stream. Hardware prefetches it too late while lines are written past the
// caches.
MXDNN_INLINE void fetch_ahead(const uint8_t *in, int bytes) {
    constexpr int ahead = 4096, header = 128;
    for (int i = 0; i < bytes + header; i += 64) fetch(in + ahead + i);
}

// 16 vectors become 64 bytes of each column. dword(x) converts the dwords of a vector to those of columns.
template <typename F>
MXDNN_INLINE void split_tile(const uint8_t *in, uint8_t *columns, int64_t pitch, bool around, F &&dword) {
    for (int q = 0; q < 4; q++) {
        four_lines512_t x;
        for (int i = 0; i < 4; i++) x.v[i] = dword(load_lanes(in + 64 * i + 16 * q, 4 * 64));
        x = transpose_dwords(x);
        for (int c = 0; c < 4; c++) write512(around, columns + (4 * q + c) * pitch, x.v[c]);
    }
}
// The inverse: write(i, vector).
template <typename F, typename G>
MXDNN_INLINE void join_tile(const uint8_t *columns, int64_t pitch, F &&dword, G &&write) {
    four_lines512_t x[4];
    for (int q = 0; q < 4; q++) {
        for (int c = 0; c < 4; c++) x[q].v[c] = dword(load512(columns + (4 * q + c) * pitch));
        x[q] = transpose_dwords(x[q]);
    }
    for (int i = 0; i < 4; i++) {
        const four_lines512_t v = transpose_lanes({{x[0].v[i], x[1].v[i], x[2].v[i], x[3].v[i]}});
        for (int j = 0; j < 4; j++) write(i + 4 * j, v.v[j]);
    }
}

// ---- Dwords of a column in the layouts and in plain memory ----

// Four rows of a column: words of two rows each, for four columns, become dwords, and back.
MXDNN_INLINE __m512i dwords_of_b8(__m512i v) {
    return shuffle512(v, _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
}
MXDNN_INLINE __m512i b8_of_dwords(__m512i v) {
    return shuffle512(v, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
}
// Rows (0 1) (2 3) (4 5) (6 7) become (0 2) (4 6) (1 3) (5 7): see swap_inner_halves().
MXDNN_INLINE __m512i swap_halves512(__m512i v) {
    // (v ^ v >> 4) & mask, and v ^ t ^ t << 4
    const __m512i t = _mm512_ternarylogic_epi32(v, _mm512_srli_epi16(v, 4), words(0x00f0), 0x28);
    return _mm512_ternarylogic_epi32(v, t, _mm512_slli_epi16(t, 4), 0x96);
}
MXDNN_INLINE __m512i swap_bytes512(__m512i v) {
    return shuffle512(v, _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
}

// ---- Replaces functions of body_n16.hpp, which still process less than 16 vectors ----

void n16_pack_nibbles_tiles(const uint8_t *nibbles, int64_t pitch, int rows, uint8_t *out, write_t how) {
    const bool around = goes_around512(how, out);
    for (; rows >= 128; rows -= 128, nibbles += 64, out += tile_vector_bytes)
        join_tile(
                nibbles, pitch, [](__m512i v) { return swap_bytes512(swap_halves512(v)); },
                [&](int i, __m512i v) { write512(around, out + 64 * i, v); });
    n16_pack_nibbles(nibbles, pitch, rows, out, how);
}
void n16_unpack_nibbles_tiles(const uint8_t *in, int rows, uint8_t *nibbles, int64_t pitch, write_t how) {
    const bool around = goes_around512(how, nibbles, pitch);
    for (; rows >= 128; rows -= 128, nibbles += 64, in += tile_vector_bytes) {
        fetch_ahead(in, tile_vector_bytes);
        split_tile(in, nibbles, pitch, around, [](__m512i v) { return swap_halves512(swap_bytes512(v)); });
    }
    n16_unpack_nibbles(in, rows, nibbles, pitch, how);
}

// Vector 3 of four is in the top two bits of the others: see pack_b6().
MXDNN_INLINE void fold_four(const __m512i *v, uint8_t *out, bool around) {
    const __m512i top = _mm512_set1_epi8(char(0xc0));
    for (int k = 0; k < 3; k++)
        write512(around, out + 64 * k,
                or_and(_mm512_andnot_si512(top, v[k]), _mm512_slli_epi16(v[3], unsigned(6 - 2 * k)), top));
}
MXDNN_INLINE void unfold_four(const uint8_t *in, uint8_t *out) {
    const __m512i top = _mm512_set1_epi8(char(0xc0));
    __m512i last = _mm512_setzero_si512();
    for (int k = 0; k < 3; k++) {
        const __m512i v = load512(in + 64 * k);
        store512(out + 64 * k, _mm512_andnot_si512(top, v));
        last = _mm512_or_si512(last, _mm512_srli_epi16(_mm512_and_si512(v, top), unsigned(6 - 2 * k)));
    }
    store512(out + 192, last);
}

void n16_pack_tiles(int bits, const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, write_t how) {
    const bool around = goes_around512(how, out);
    for (; bits > 4 && rows >= 64; rows -= 64, codes += 64) {
        __m512i v[tile_vectors];
        join_tile(
                codes, pitch, [](__m512i x) { return x; }, [&](int i, __m512i x) { v[i] = b8_of_dwords(x); });
        if (bits == 8)
            for (int i = 0; i < tile_vectors; i++, out += 64) write512(around, out, v[i]);
        else
            for (int i = 0; i < tile_vectors; i += 4, out += 192) fold_four(v + i, out, around);
    }
    n16_pack(bits, codes, pitch, rows, out, how);
}
void n16_unpack_tiles(int bits, const uint8_t *in, int rows, uint8_t *codes, int64_t pitch, write_t how) {
    const bool around = goes_around512(how, codes, pitch);
    alignas(64) uint8_t unfolded[tile_vector_bytes];
    const int bytes = tile_vector_bytes * bits / 8;
    for (; bits > 4 && rows >= 64; rows -= 64, codes += 64, in += bytes) {
        fetch_ahead(in, bytes);
        for (int i = 0; bits == 6 && i < 4; i++) unfold_four(in + 192 * i, unfolded + 256 * i);
        split_tile(bits == 6 ? unfolded : in, codes, pitch, around, dwords_of_b8);
    }
    n16_unpack(bits, in, rows, codes, pitch, how);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
