// SPDX-License-Identifier: Apache-2.0
// Moving codes and values without looking at what they mean: transposing, and rows of plain codes.
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- Transposing ----

template <typename T>
struct element_t;
template <>
struct element_t<uint8_t> {
    MXDNN_INLINE __m128i low(__m128i a, __m128i b) { return _mm_unpacklo_epi8(a, b); }
    MXDNN_INLINE __m128i high(__m128i a, __m128i b) { return _mm_unpackhi_epi8(a, b); }
};
template <>
struct element_t<uint16_t> {
    MXDNN_INLINE __m128i low(__m128i a, __m128i b) { return _mm_unpacklo_epi16(a, b); }
    MXDNN_INLINE __m128i high(__m128i a, __m128i b) { return _mm_unpackhi_epi16(a, b); }
};
template <>
struct element_t<uint32_t> {
    MXDNN_INLINE __m128i low(__m128i a, __m128i b) { return _mm_unpacklo_epi32(a, b); }
    MXDNN_INLINE __m128i high(__m128i a, __m128i b) { return _mm_unpackhi_epi32(a, b); }
};

// Transposes rows x cols elements, powers of two, that fill vectors. It interleaves the first half with the
// second half, once for each bit of the row number, which moves to the place of the column number.
template <typename T, int rows, int cols>
MXDNN_INLINE void transpose_part(const uint8_t *in, int64_t in_pitch, uint8_t *out, int64_t out_pitch) {
    constexpr int size = int(sizeof(T)), in_bytes = cols * size, out_bytes = rows * size;
    constexpr int n = rows * cols * size / 16;
    union {
        __m128i v[n];
        uint8_t bytes[16 * n];
    } x;
    for (int r = 0; r < rows; r++) __builtin_memcpy(x.bytes + r * in_bytes, in + r * in_pitch, in_bytes);
    for (int step = 1; cols > 1 && step < rows; step *= 2) {
        __m128i t[n];
        for (int i = 0; i < n / 2; i++) {
            t[2 * i] = element_t<T>::low(x.v[i], x.v[i + n / 2]);
            t[2 * i + 1] = element_t<T>::high(x.v[i], x.v[i + n / 2]);
        }
        for (int i = 0; i < n; i++) x.v[i] = t[i];
    }
    for (int c = 0; c < cols; c++) __builtin_memcpy(out + c * out_pitch, x.bytes + c * out_bytes, out_bytes);
}

struct transpose_t {
    const uint8_t *in;
    int64_t in_pitch;
    int rows, cols;
    uint8_t *out;
    int64_t out_pitch;

    template <typename T, int height, int width>
    int columns(int r, int c) const {
        constexpr int size = int(sizeof(T));
        for (; c + width <= cols; c += width)
            transpose_part<T, height, width>(
                    in + r * in_pitch + c * size, in_pitch, out + c * out_pitch + r * size, out_pitch);
        return c;
    }
    // Rows from r on, `height` at a time. A tile has few blocks, so the other side may be a part of an edge.
    template <typename T, int height>
    int strips(int r) const {
        constexpr int size = int(sizeof(T)), edge = 16 / size;
        for (; r + height <= rows; r += height) {
            int c = columns<T, height, edge>(r, 0);
            if (height == edge) c = columns<T, edge, edge / 4>(r, columns<T, edge, edge / 2>(r, c));
            one_by_one<T>(r, r + height, c);
        }
        return r;
    }
    template <typename T>
    void one_by_one(int r0, int r1, int c0) const {
        constexpr int size = int(sizeof(T));
        for (int c = c0; c < cols; c++)
            for (int r = r0; r < r1; r++)
                __builtin_memcpy(out + c * out_pitch + r * size, in + r * in_pitch + c * size, size);
    }
    template <typename T>
    void all() const {
        constexpr int edge = 16 / int(sizeof(T));
        one_by_one<T>(strips<T, edge / 4>(strips<T, edge / 2>(strips<T, edge>(0))), rows, 0);
    }
};

void transpose(
        int bytes, const void *in, int64_t in_pitch, int rows, int cols, void *out, int64_t out_pitch) {
    const transpose_t t = {
            static_cast<const uint8_t *>(in), in_pitch, rows, cols, static_cast<uint8_t *>(out), out_pitch};
    if (bytes == 1) return t.all<uint8_t>();
    if (bytes == 2) return t.all<uint16_t>();
    t.all<uint32_t>();
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
        // Three bytes become a dword, whose four codes become a byte each. 16 bytes are loaded for 12.
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
    case code_storage_t::low_6_bits: write_run(how, row, codes, n); return;
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
        // Pairs of codes become 12 bits, pairs of these 24, and then the three bytes of each dword are
        // joined.
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

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
