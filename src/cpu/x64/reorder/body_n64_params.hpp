// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of 64 columns to and from the tiles of the n64 layouts.
#pragma once

#include "cpu/x64/reorder/body_n64.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Interleaves units of 1, 2, 4 or 8 bytes of two arrays, and back.
template <int unit>
MXDNN_INLINE __m128i unpack_low(__m128i a, __m128i b) {
    return unit == 1   ? _mm_unpacklo_epi8(a, b)
           : unit == 2 ? _mm_unpacklo_epi16(a, b)
           : unit == 4 ? _mm_unpacklo_epi32(a, b)
                       : _mm_unpacklo_epi64(a, b);
}
template <int unit>
MXDNN_INLINE __m128i unpack_high(__m128i a, __m128i b) {
    return unit == 1   ? _mm_unpackhi_epi8(a, b)
           : unit == 2 ? _mm_unpackhi_epi16(a, b)
           : unit == 4 ? _mm_unpackhi_epi32(a, b)
                       : _mm_unpackhi_epi64(a, b);
}
// Even units in the low half, odd ones in the high half.
template <int unit>
MXDNN_INLINE __m128i even_then_odd(__m128i v) {
    if (unit == 1)
        return _mm_shuffle_epi8(v, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    if (unit == 2)
        return _mm_shuffle_epi8(v, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return unit == 4 ? _mm_shuffle_epi32(v, 0xd8) : v;
}
// Each array has `bytes` bytes: a multiple of 16, or 8.
template <int unit>
MXDNN_INLINE void interleave(const uint8_t *a, const uint8_t *b, int bytes, uint8_t *out) {
    for (int i = 0; i < bytes; i += 16, out += 32) {
        const __m128i x = bytes < 16 ? _mm_loadl_epi64(reinterpret_cast<const __m128i *>(a)) : load128(a + i),
                      y = bytes < 16 ? _mm_loadl_epi64(reinterpret_cast<const __m128i *>(b)) : load128(b + i);
        store128(out, unpack_low<unit>(x, y));
        if (bytes >= 16) store128(out + 16, unpack_high<unit>(x, y));
    }
}
template <int unit>
MXDNN_INLINE void separate(const uint8_t *in, int bytes, uint8_t *a, uint8_t *b) {
    for (int i = 0; i < bytes; i += 16, in += 32) {
        const __m128i x = even_then_odd<unit>(load128(in)),
                      y = bytes < 16 ? x : even_then_odd<unit>(load128(in + 16));
        const __m128i low = _mm_unpacklo_epi64(x, y), high = _mm_unpackhi_epi64(x, y);
        if (bytes < 16) {
            _mm_storel_epi64(reinterpret_cast<__m128i *>(a), low);
            _mm_storel_epi64(reinterpret_cast<__m128i *>(b), high);
        } else {
            store128(a + i, low);
            store128(b + i, high);
        }
    }
}

// Parameters of 16 columns: `blocks` rows become pairs of columns, one pair after the other, and for each
// pair one block after the other.
template <int size>
MXDNN_INLINE void pack_params_of(const uint8_t *rows, int64_t pitch, int blocks, uint8_t *out) {
    constexpr int half = 8 * size, row = 2 * half;
    alignas(16) uint8_t x[2][4 * row];
    if (blocks == 1) return interleave<size>(rows, rows + half, half, out);
    for (int b = 0; b < blocks; b++)
        interleave<size>(rows + b * pitch, rows + b * pitch + half, half, x[0] + b * row);
    if (blocks == 2) return interleave<2 * size>(x[0], x[0] + row, row, out);
    // Blocks 0 and 2, blocks 1 and 3, then all four.
    interleave<2 * size>(x[0], x[0] + 2 * row, row, x[1]);
    interleave<2 * size>(x[0] + row, x[0] + 3 * row, row, x[1] + 2 * row);
    interleave<2 * size>(x[1], x[1] + 2 * row, 2 * row, out);
}
template <int size>
MXDNN_INLINE void unpack_params_of(const uint8_t *in, int blocks, uint8_t *rows, int64_t pitch) {
    constexpr int half = 8 * size, row = 2 * half;
    alignas(16) uint8_t x[2][4 * row];
    if (blocks == 1) return separate<size>(in, half, rows, rows + half);
    if (blocks == 2) {
        separate<2 * size>(in, row, x[0], x[0] + row);
    } else {
        separate<2 * size>(in, 2 * row, x[1], x[1] + 2 * row);
        separate<2 * size>(x[1], row, x[0], x[0] + 2 * row);
        separate<2 * size>(x[1] + 2 * row, row, x[0] + row, x[0] + 3 * row);
    }
    for (int b = 0; b < blocks; b++)
        separate<size>(x[0] + b * row, half, rows + b * pitch, rows + b * pitch + half);
}

// [block][64 columns], 1, 2 or 4 bytes each, rows `pitch` bytes apart.
void n64_pack_params(int bytes, const uint8_t *rows, int64_t pitch, int blocks, uint8_t *out) {
    for (int g = 0; g < n64_columns / 16; g++, rows += 16 * bytes, out += 16 * bytes * blocks)
        if (bytes == 1)
            pack_params_of<1>(rows, pitch, blocks, out);
        else if (bytes == 2)
            pack_params_of<2>(rows, pitch, blocks, out);
        else
            pack_params_of<4>(rows, pitch, blocks, out);
}
void n64_unpack_params(int bytes, const uint8_t *in, int blocks, uint8_t *rows, int64_t pitch) {
    for (int g = 0; g < n64_columns / 16; g++, rows += 16 * bytes, in += 16 * bytes * blocks)
        if (bytes == 1)
            unpack_params_of<1>(in, blocks, rows, pitch);
        else if (bytes == 2)
            unpack_params_of<2>(in, blocks, rows, pitch);
        else
            unpack_params_of<4>(in, blocks, rows, pitch);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
