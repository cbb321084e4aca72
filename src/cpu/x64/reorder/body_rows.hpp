// SPDX-License-Identifier: Apache-2.0
// Moving codes and values without looking at what they mean: transposing, and rows of plain codes.
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- transposing ----

// Blocks of edge x edge elements, each row in one 16-byte vector.
template <typename T>
struct square_t;

template <>
struct square_t<uint8_t> {
    static constexpr int edge = 16;
    MXDNN_INLINE void transpose(const uint8_t *in, int64_t in_pitch, uint8_t *out, int64_t out_pitch) {
        __m128i a[16], b[16];
        for (int i = 0; i < 16; i++) a[i] = load128(in + i * in_pitch);
        // Rows 8 apart interleaved, four times over: each step moves one bit of the row into the column.
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < 8; i++) {
                b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
                b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
            }
            for (int i = 0; i < 16; i++) a[i] = b[i];
        }
        for (int i = 0; i < 16; i++) store128(out + i * out_pitch, a[i]);
    }
};

template <>
struct square_t<uint16_t> {
    static constexpr int edge = 8;
    MXDNN_INLINE void transpose(const uint8_t *in, int64_t in_pitch, uint8_t *out, int64_t out_pitch) {
        __m128i a[8], b[8];
        for (int i = 0; i < 8; i++) a[i] = load128(in + i * in_pitch);
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < 4; i++) {
                b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
                b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
            }
            for (int i = 0; i < 8; i++) a[i] = b[i];
        }
        for (int i = 0; i < 8; i++) store128(out + i * out_pitch, a[i]);
    }
};

template <>
struct square_t<uint32_t> {
    static constexpr int edge = 4;
    MXDNN_INLINE void transpose(const uint8_t *in, int64_t in_pitch, uint8_t *out, int64_t out_pitch) {
        __m128i a[4], b[4];
        for (int i = 0; i < 4; i++) a[i] = load128(in + i * in_pitch);
        for (int step = 0; step < 2; step++) {
            for (int i = 0; i < 2; i++) {
                b[2 * i] = _mm_unpacklo_epi32(a[i], a[i + 2]);
                b[2 * i + 1] = _mm_unpackhi_epi32(a[i], a[i + 2]);
            }
            for (int i = 0; i < 4; i++) a[i] = b[i];
        }
        for (int i = 0; i < 4; i++) store128(out + i * out_pitch, a[i]);
    }
};

template <typename T>
void transpose_of(const uint8_t *in, int64_t in_pitch, int rows, int cols, uint8_t *out, int64_t out_pitch) {
    constexpr int edge = square_t<T>::edge, size = int(sizeof(T));
    const int whole_rows = rows / edge * edge, whole_cols = cols / edge * edge;
    const auto one_by_one = [=](int r0, int r1, int c0, int c1) {
        for (int c = c0; c < c1; c++)
            for (int r = r0; r < r1; r++)
                __builtin_memcpy(out + c * out_pitch + r * size, in + r * in_pitch + c * size, size);
    };
    for (int r = 0; r < whole_rows; r += edge)
        for (int c = 0; c < whole_cols; c += edge)
            square_t<T>::transpose(
                    in + r * in_pitch + c * size, in_pitch, out + c * out_pitch + r * size, out_pitch);
    one_by_one(0, whole_rows, whole_cols, cols);
    one_by_one(whole_rows, rows, 0, cols);
}

void transpose(
        int bytes, const void *in, int64_t in_pitch, int rows, int cols, void *out, int64_t out_pitch) {
    const auto *i = static_cast<const uint8_t *>(in);
    auto *o = static_cast<uint8_t *>(out);
    if (bytes == 1) return transpose_of<uint8_t>(i, in_pitch, rows, cols, o, out_pitch);
    if (bytes == 2) return transpose_of<uint16_t>(i, in_pitch, rows, cols, o, out_pitch);
    transpose_of<uint32_t>(i, in_pitch, rows, cols, o, out_pitch);
}

// ---- rows of plain codes ----

// 16 bytes hold 32 codes, the even ones in the low halves.
MXDNN_INLINE __m256i unpack_nibbles(__m128i v) {
    const __m128i low = _mm_and_si128(v, _mm_set1_epi8(15)),
                  high = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
    return _mm256_set_m128i(_mm_unpackhi_epi8(low, high), _mm_unpacklo_epi8(low, high));
}

void unpack_row(code_storage_t storage, const uint8_t *row, int n, uint8_t *codes) {
    int i = 0;
    switch (storage) {
    case code_storage_t::bytes: __builtin_memcpy(codes, row, size_t(n)); return;
    case code_storage_t::low_6_bits:
        for (; i < n; i++) codes[i] = row[i] & 63;
        return;
    case code_storage_t::nibbles:
        for (; i + 32 <= n; i += 32) store256(codes + i, unpack_nibbles(load128(row + i / 2)));
        for (; i < n; i++) codes[i] = i % 2 ? row[i / 2] >> 4 : row[i / 2] & 15;
        return;
    case code_storage_t::dense_6: {
        // Three bytes to a dword, four codes in it to a byte each. 16 bytes are loaded for 12.
        const __m128i spread = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
        for (; i + 24 <= n; i += 16) {
            const __m128i v = _mm_shuffle_epi8(load128(row + i / 4 * 3), spread);
            const __m128i c0 = _mm_and_si128(v, _mm_set1_epi32(0x3f));
            const __m128i c1 = _mm_and_si128(_mm_slli_epi32(v, 2), _mm_set1_epi32(0x3f00));
            const __m128i c2 = _mm_and_si128(_mm_slli_epi32(v, 4), _mm_set1_epi32(0x3f0000));
            const __m128i c3 = _mm_and_si128(_mm_slli_epi32(v, 6), _mm_set1_epi32(0x3f000000));
            store128(codes + i, _mm_or_si128(_mm_or_si128(c0, c1), _mm_or_si128(c2, c3)));
        }
        for (; i < n; i++) {
            const uint8_t *p = row + i * 6 / 8;
            const int shift = i * 6 % 8;
            const uint32_t window = p[0] | (shift > 2 ? uint32_t(p[1]) << 8 : 0);
            codes[i] = uint8_t(window >> shift & 63);
        }
        return;
    }
    }
}

void pack_row(code_storage_t storage, const uint8_t *codes, int n, uint8_t *row, write_t how) {
    const bool around = goes_around(how, row);
    int i = 0;
    switch (storage) {
    case code_storage_t::bytes:
    case code_storage_t::low_6_bits:
        for (; i + 32 <= n; i += 32) write256(around, row + i, load256(codes + i));
        __builtin_memcpy(row + i, codes + i, size_t(n - i));
        return;
    case code_storage_t::nibbles:
        for (; i + 64 <= n; i += 64) {
            const __m256i v = _mm256_packus_epi16(
                    join_nibbles(load256(codes + i)), join_nibbles(load256(codes + i + 32)));
            write256(around, row + i / 2, _mm256_permute4x64_epi64(v, 0xd8));
        }
        for (; i + 2 <= n; i += 2) row[i / 2] = uint8_t(codes[i] | codes[i + 1] << 4);
        if (i < n) row[i / 2] = uint8_t((row[i / 2] & 0xf0) | codes[i]);
        return;
    case code_storage_t::dense_6: {
        // Pairs to 12 bits, pairs of those to 24, and the three bytes of each dword together.
        const __m128i gather = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        for (; i + 16 <= n; i += 16) {
            const __m128i pairs = _mm_maddubs_epi16(load128(codes + i), _mm_set1_epi16(0x4001));
            const __m128i v = _mm_shuffle_epi8(_mm_madd_epi16(pairs, _mm_set1_epi32(0x10000001)), gather);
            uint8_t *p = row + i / 4 * 3;
            _mm_storel_epi64(reinterpret_cast<__m128i *>(p), v);
            const int last = _mm_extract_epi32(v, 2);
            __builtin_memcpy(p + 8, &last, 4);
        }
        for (; i < n; i++) {
            uint8_t *p = row + i * 6 / 8;
            const int shift = i * 6 % 8;
            const uint32_t mask = 63u << shift, value = uint32_t(codes[i]) << shift;
            p[0] = uint8_t((p[0] & ~mask) | value);
            if (shift > 2) p[1] = uint8_t((p[1] & ~(mask >> 8)) | value >> 8);
        }
        return;
    }
    }
}

void fence() { _mm_sfence(); }

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
