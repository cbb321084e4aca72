// SPDX-License-Identifier: Apache-2.0
// Rows of 16 codes, a byte each, to and from the vectors of n16_b4, n16_b6 and n16_b8: two vectors at a time,
// one in the low and one in the high halves of four registers, four columns in each half.
#pragma once

#include "cpu/x64/reorder/body_n16.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Four bytes of each column. Plane j has byte j of all 16.
using byte_order_t = const uint8_t[16];
constexpr byte_order_t b8_to_planes = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
constexpr byte_order_t b8_from_planes = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
constexpr byte_order_t b4_planes = {
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}; // in both directions

MXDNN_INLINE four_t shuffle_all(const four_t &a, byte_order_t &order) {
    const __m256i o = _mm256_broadcastsi128_si256(load128(order));
    four_t b;
    for (int k = 0; k < 4; k++) b.v[k] = _mm256_shuffle_epi8(a.v[k], o);
    return b;
}
MXDNN_INLINE four_t to_planes(const four_t &v, byte_order_t &order) {
    return transpose32(shuffle_all(v, order));
}
MXDNN_INLINE four_t from_planes(const four_t &p, byte_order_t &order) {
    return shuffle_all(transpose32(p), order);
}

MXDNN_INLINE four_t load_two(const uint8_t *in) {
    four_t x;
    for (int k = 0; k < 4; k++) x.v[k] = load_halves(in + 16 * k, in + 64 + 16 * k);
    return x;
}
MXDNN_INLINE void store_two(const four_t &x, uint8_t *out, bool around) {
    for (int k = 0; k < 4; k += 2)
        write256(around, out + 16 * k, _mm256_permute2x128_si256(x.v[k], x.v[k + 1], 0x20));
    for (int k = 0; k < 4; k += 2)
        write256(around, out + 64 + 16 * k, _mm256_permute2x128_si256(x.v[k], x.v[k + 1], 0x31));
}
// Rows at distance `apart`: the low half is row r, the high half row r + apart.
MXDNN_INLINE __m256i load_rows(const uint8_t *codes, int64_t pitch, int r, int apart) {
    return load_halves(codes + r * pitch, codes + (r + apart) * pitch);
}
MXDNN_INLINE void store_rows(__m256i v, uint8_t *codes, int64_t pitch, int r, int apart) {
    store128(codes + r * pitch, _mm256_castsi256_si128(v));
    store128(codes + (r + apart) * pitch, _mm256_extracti128_si256(v, 1));
}

// 8 rows, two vectors of n16_b8.
MXDNN_INLINE four_t load_rows_b8(const uint8_t *codes, int64_t pitch) {
    four_t p;
    for (int j = 0; j < 4; j++) p.v[j] = load_rows(codes, pitch, j, 4);
    return from_planes(p, b8_from_planes);
}
MXDNN_INLINE void store_rows_b8(const four_t &x, uint8_t *codes, int64_t pitch) {
    const four_t p = to_planes(x, b8_to_planes);
    for (int j = 0; j < 4; j++) store_rows(p.v[j], codes, pitch, j, 4);
}

void pack_rows_b8(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, bool around) {
    for (int r = 0; r < rows; r += 8, out += 128)
        store_two(load_rows_b8(codes + r * pitch, pitch), out, around);
}
void unpack_rows_b8(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    for (int r = 0; r < rows; r += 8, in += 128) store_rows_b8(load_two(in), codes + r * pitch, pitch);
}

// Vector 3 is in the top two bits of vectors 0, 1 and 2, its lowest bits in the first.
void pack_rows_b6(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, bool around) {
    const __m256i low = _mm256_set1_epi8(63), high = _mm256_set1_epi8(char(0xc0));
    for (int r = 0; r < rows; r += 16, out += 192) {
        const four_t a = load_rows_b8(codes + r * pitch, pitch),
                     b = load_rows_b8(codes + (r + 8) * pitch, pitch);
        for (int k = 0; k < 4; k += 2) {
            const __m256i last = _mm256_permute2x128_si256(b.v[k], b.v[k + 1], 0x31);
            const __m256i v[3] = {_mm256_permute2x128_si256(a.v[k], a.v[k + 1], 0x20),
                    _mm256_permute2x128_si256(a.v[k], a.v[k + 1], 0x31),
                    _mm256_permute2x128_si256(b.v[k], b.v[k + 1], 0x20)};
            for (int i = 0; i < 3; i++) {
                const __m256i top = _mm256_and_si256(_mm256_slli_epi16(last, 6 - 2 * i), high);
                write256(around, out + 64 * i + 16 * k, _mm256_or_si256(_mm256_and_si256(v[i], low), top));
            }
        }
    }
}
void unpack_rows_b6(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    const __m256i low = _mm256_set1_epi8(63), high = _mm256_set1_epi8(char(0xc0));
    for (int r = 0; r < rows; r += 16, in += 192) {
        four_t a, b;
        for (int k = 0; k < 4; k += 2) {
            __m256i v[3], last = _mm256_setzero_si256();
            for (int i = 0; i < 3; i++) {
                const __m256i x = load256(in + 64 * i + 16 * k);
                v[i] = _mm256_and_si256(x, low);
                last = _mm256_or_si256(last, _mm256_srli_epi16(_mm256_and_si256(x, high), 6 - 2 * i));
            }
            for (int h = 0; h < 2; h++) {
                a.v[k + h] = h ? _mm256_permute2x128_si256(v[0], v[1], 0x31)
                               : _mm256_permute2x128_si256(v[0], v[1], 0x20);
                b.v[k + h] = h ? _mm256_permute2x128_si256(v[2], last, 0x31)
                               : _mm256_permute2x128_si256(v[2], last, 0x20);
            }
        }
        store_rows_b8(a, codes + r * pitch, pitch);
        store_rows_b8(b, codes + (r + 8) * pitch, pitch);
    }
}

// The rows of the low and the high nibbles of plane j.
constexpr int b4_low_row[4] = {0, 4, 1, 5}, b4_high_row[4] = {2, 6, 3, 7};

void pack_rows_b4(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, bool around) {
    for (int r = 0; r < rows; r += 16, codes += 16 * pitch, out += 128) {
        four_t p;
        for (int j = 0; j < 4; j++)
            p.v[j] = _mm256_or_si256(load_rows(codes, pitch, b4_low_row[j], 8),
                    _mm256_slli_epi16(load_rows(codes, pitch, b4_high_row[j], 8), 4));
        store_two(from_planes(p, b4_planes), out, around);
    }
}
void unpack_rows_b4(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    const __m256i mask = _mm256_set1_epi8(15);
    for (int r = 0; r < rows; r += 16, codes += 16 * pitch, in += 128) {
        const four_t p = to_planes(load_two(in), b4_planes);
        for (int j = 0; j < 4; j++) {
            store_rows(_mm256_and_si256(p.v[j], mask), codes, pitch, b4_low_row[j], 8);
            store_rows(_mm256_and_si256(_mm256_srli_epi16(p.v[j], 4), mask), codes, pitch, b4_high_row[j], 8);
        }
    }
}

void n16_pack_rows(int bits, const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, write_t how) {
    const bool around = goes_around(how, out);
    if (bits == 4) return pack_rows_b4(codes, pitch, rows, out, around);
    if (bits == 6) return pack_rows_b6(codes, pitch, rows, out, around);
    pack_rows_b8(codes, pitch, rows, out, around);
}
void n16_unpack_rows(int bits, const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    if (bits == 4) return unpack_rows_b4(in, rows, codes, pitch);
    if (bits == 6) return unpack_rows_b6(in, rows, codes, pitch);
    unpack_rows_b8(in, rows, codes, pitch);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
