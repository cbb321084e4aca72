// SPDX-License-Identifier: Apache-2.0
// Codes of 16 columns to and from the vectors of n16_b4, n16_b6 and n16_b8. What goes where is said by the
// maps in those headers; here are the shuffles that carry it out, two columns of four at a time.
#pragma once

#include "cpu/x64/reorder/body_rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Lane 0 has 16 rows of column c, lane 1 those of column c + 4.
MXDNN_INLINE __m256i load_columns(const uint8_t *codes, int64_t pitch, int c) {
    return load_halves(codes + c * pitch, codes + (c + 4) * pitch);
}
MXDNN_INLINE void store_columns(__m256i v, uint8_t *codes, int64_t pitch, int c) {
    store128(codes + c * pitch, _mm256_castsi256_si128(v));
    store128(codes + (c + 4) * pitch, _mm256_extracti128_si256(v, 1));
}

// Interleaves units of 16 or 32 bits of four vectors: in every lane, out[k] has units 4k .. 4k + 3 of the
// sequence that takes one unit of each vector in turn.
struct four_t {
    __m256i v[4];
};
MXDNN_INLINE four_t interleave16(const four_t &a) {
    const __m256i l01 = _mm256_unpacklo_epi16(a.v[0], a.v[1]), h01 = _mm256_unpackhi_epi16(a.v[0], a.v[1]);
    const __m256i l23 = _mm256_unpacklo_epi16(a.v[2], a.v[3]), h23 = _mm256_unpackhi_epi16(a.v[2], a.v[3]);
    return {{_mm256_unpacklo_epi32(l01, l23), _mm256_unpackhi_epi32(l01, l23),
            _mm256_unpacklo_epi32(h01, h23), _mm256_unpackhi_epi32(h01, h23)}};
}
MXDNN_INLINE four_t transpose32(const four_t &a) {
    const __m256i l01 = _mm256_unpacklo_epi32(a.v[0], a.v[1]), h01 = _mm256_unpackhi_epi32(a.v[0], a.v[1]);
    const __m256i l23 = _mm256_unpacklo_epi32(a.v[2], a.v[3]), h23 = _mm256_unpackhi_epi32(a.v[2], a.v[3]);
    return {{_mm256_unpacklo_epi64(l01, l23), _mm256_unpackhi_epi64(l01, l23),
            _mm256_unpacklo_epi64(h01, h23), _mm256_unpackhi_epi64(h01, h23)}};
}
// The inverse of interleave16(): v[k] has words 2k and 2k + 1 of each of four columns; out[c] is column c.
MXDNN_INLINE four_t separate16(const four_t &a) {
    const __m256i order =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    four_t b;
    for (int k = 0; k < 4; k++)
        b.v[k] = _mm256_shuffle_epi8(a.v[k], order); // dword c: both words of column c
    return transpose32(b);
}

// ---- 16 rows of 8 columns: the four vectors of n16_b8 ----

MXDNN_INLINE four_t gather_rows(const uint8_t *codes, int64_t pitch) {
    return interleave16({{load_columns(codes, pitch, 0), load_columns(codes, pitch, 1),
            load_columns(codes, pitch, 2), load_columns(codes, pitch, 3)}});
}
MXDNN_INLINE void scatter_rows(const four_t &v, uint8_t *codes, int64_t pitch) {
    const four_t columns = separate16(v);
    for (int c = 0; c < 4; c++) store_columns(columns.v[c], codes, pitch, c);
}

// Stores both halves of four vectors together: stores that bypass the caches write a cache line without a
// pause.
MXDNN_INLINE void write_four(bool around, uint8_t *out, const four_t &low, const four_t &high) {
    for (int k = 0; k < 4; k++) {
        write256(around, out + k * 64, low.v[k]);
        write256(around, out + k * 64 + 32, high.v[k]);
    }
}

void pack_b8(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, bool around) {
    for (int r = 0; r < rows; r += 16, out += 256)
        write_four(around, out, gather_rows(codes + r, pitch), gather_rows(codes + 8 * pitch + r, pitch));
}
void unpack_b8(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    for (int r = 0; r < rows; r += 16, in += 256)
        for (int c = 0; c < 16; c += 8) {
            four_t x;
            for (int k = 0; k < 4; k++) x.v[k] = load256(in + k * 64 + c * 4);
            scatter_rows(x, codes + c * pitch + r, pitch);
        }
}

// Vector 3 is in the top two bits of vectors 0, 1 and 2, its lowest bits in the first.
void pack_b6(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, bool around) {
    const __m256i low = _mm256_set1_epi8(63), high = _mm256_set1_epi8(char(0xc0));
    for (int r = 0; r < rows; r += 16, out += 192)
        for (int c = 0; c < 16; c += 8) {
            const four_t x = gather_rows(codes + c * pitch + r, pitch);
            for (int k = 0; k < 3; k++) {
                const __m256i top = _mm256_and_si256(_mm256_slli_epi16(x.v[3], 6 - 2 * k), high);
                write256(around, out + k * 64 + c * 4, _mm256_or_si256(_mm256_and_si256(x.v[k], low), top));
            }
        }
}
void unpack_b6(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    const __m256i low = _mm256_set1_epi8(63), high = _mm256_set1_epi8(char(0xc0));
    for (int r = 0; r < rows; r += 16, in += 192)
        for (int c = 0; c < 16; c += 8) {
            four_t x;
            x.v[3] = _mm256_setzero_si256();
            for (int k = 0; k < 3; k++) {
                const __m256i v = load256(in + k * 64 + c * 4);
                x.v[k] = _mm256_and_si256(v, low);
                x.v[3] = _mm256_or_si256(x.v[3], _mm256_srli_epi16(_mm256_and_si256(v, high), 6 - 2 * k));
            }
            scatter_rows(x, codes + c * pitch + r, pitch);
        }
}

// ---- 4-bit codes: a dword has eight rows of a column, rows 0 2 4 6 before 1 3 5 7 ----

// 32 rows of columns c and c + 4, four dwords each, from 32 rows of 8 columns.
MXDNN_INLINE four_t load_dwords(const uint8_t *in) {
    return transpose32({{load256(in), load256(in + 64), load256(in + 128), load256(in + 192)}});
}

void pack_b4(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, bool around) {
    const __m256i order =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    const auto dwords = [&](const uint8_t *in) {
        four_t x;
        for (int k = 0; k < 4; k++)
            x.v[k] = _mm256_packus_epi16(join_nibbles(_mm256_shuffle_epi8(load_columns(in, pitch, k), order)),
                    join_nibbles(_mm256_shuffle_epi8(load_columns(in + 16, pitch, k), order)));
        return transpose32(x);
    };
    for (int r = 0; r < rows; r += 32, out += 256)
        write_four(around, out, dwords(codes + r), dwords(codes + 8 * pitch + r));
}
void unpack_b4(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    const __m256i order =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
    const __m256i mask = _mm256_set1_epi8(15);
    for (int r = 0; r < rows; r += 32, in += 256)
        for (int c = 0; c < 16; c += 8) {
            const four_t x = load_dwords(in + c * 4);
            for (int k = 0; k < 4; k++) {
                const __m256i low = _mm256_and_si256(x.v[k], mask);
                const __m256i high = _mm256_and_si256(_mm256_srli_epi16(x.v[k], 4), mask);
                uint8_t *out = codes + c * pitch + r;
                store_columns(_mm256_shuffle_epi8(_mm256_unpacklo_epi8(low, high), order), out, pitch, k);
                store_columns(
                        _mm256_shuffle_epi8(_mm256_unpackhi_epi8(low, high), order), out + 16, pitch, k);
            }
        }
}

// Plain pairs (0 1) (2 3) (4 5) (6 7) become (0 2) (4 6) (1 3) (5 7): first halves of bytes are exchanged
// within words, then bytes within dwords. Each step is its own inverse.
MXDNN_INLINE __m256i swap_inner_halves(__m256i v) {
    const __m256i t =
            _mm256_and_si256(_mm256_xor_si256(v, _mm256_srli_epi16(v, 4)), _mm256_set1_epi16(0x00f0));
    return _mm256_xor_si256(v, _mm256_xor_si256(t, _mm256_slli_epi16(t, 4)));
}
MXDNN_INLINE __m256i swap_inner_bytes(__m256i v) {
    return _mm256_shuffle_epi8(v,
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15)));
}

void n16_pack_nibbles(const uint8_t *nibbles, int64_t pitch, int rows, uint8_t *out, write_t how) {
    const bool around = goes_around(how, out);
    const auto dwords = [&](const uint8_t *in) {
        four_t x;
        for (int k = 0; k < 4; k++) x.v[k] = swap_inner_bytes(swap_inner_halves(load_columns(in, pitch, k)));
        return transpose32(x);
    };
    for (int r = 0; r < rows; r += 32, out += 256)
        write_four(around, out, dwords(nibbles + r / 2), dwords(nibbles + 8 * pitch + r / 2));
}
void n16_unpack_nibbles(const uint8_t *in, int rows, uint8_t *nibbles, int64_t pitch, write_t) {
    for (int r = 0; r < rows; r += 32, in += 256)
        for (int c = 0; c < 16; c += 8) {
            const four_t x = load_dwords(in + c * 4);
            for (int k = 0; k < 4; k++)
                store_columns(
                        swap_inner_halves(swap_inner_bytes(x.v[k])), nibbles + c * pitch + r / 2, pitch, k);
        }
}

void n16_pack(int bits, const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, write_t how) {
    const bool around = goes_around(how, out);
    if (bits == 4) return pack_b4(codes, pitch, rows, out, around);
    if (bits == 6) return pack_b6(codes, pitch, rows, out, around);
    pack_b8(codes, pitch, rows, out, around);
}
void n16_unpack(int bits, const uint8_t *in, int rows, uint8_t *codes, int64_t pitch, write_t) {
    if (bits == 4) return unpack_b4(in, rows, codes, pitch);
    if (bits == 6) return unpack_b6(in, rows, codes, pitch);
    unpack_b8(in, rows, codes, pitch);
}

// Scales and zero points of a tile are rows.
MXDNN_INLINE void copy_param_rows(
        int row, const uint8_t *from, int64_t from_pitch, int rows, uint8_t *to, int64_t to_pitch) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < row; i += 16) store128(to + r * to_pitch + i, load128(from + r * from_pitch + i));
}
void n16_pack_params(int bytes, const uint8_t *rows, int64_t pitch, int blocks, uint8_t *params) {
    copy_param_rows(reorder_lines * bytes, rows, pitch, blocks, params, reorder_lines * bytes);
}
void n16_unpack_params(int bytes, const uint8_t *params, int blocks, uint8_t *rows, int64_t pitch) {
    copy_param_rows(reorder_lines * bytes, params, reorder_lines * bytes, blocks, rows, pitch);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
