// SPDX-License-Identifier: Apache-2.0
// int4 under scales of bf16 to NVFP4 and elements of MX, eight columns in a vector of AVX2. The largest
// magnitude of a column and the mantissa of its scale say which codes all magnitudes become.
#pragma once

#include "cpu/x64/reorder/body_recode_f4.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// The largest magnitudes of eight columns of 16 rows.
MXDNN_INLINE __m256i largest_integers(const uint8_t *codes) {
    const __m256i magnitude = in_both_lanes(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2, 1)),
                  low = _mm256_set1_epi8(15);
    __m256i m = _mm256_setzero_si256();
    for (int i = 0; i < 128; i += 64) {
        const __m256i v = load256(codes + i);
        const auto magnitudes_of = [&](__m256i half) {
            return _mm256_shuffle_epi8(magnitude, _mm256_and_si256(half, low));
        };
        m = _mm256_max_epu8(m, magnitudes_of(v));
        m = _mm256_max_epu8(m, magnitudes_of(_mm256_srli_epi16(v, 4)));
    }
    m = _mm256_max_epu8(m, _mm256_srli_epi32(m, 16));
    m = _mm256_max_epu8(m, _mm256_srli_epi32(m, 8));
    return _mm256_and_si256(m, dwords256(15));
}

template <int bits, signs_t signs, int cell_rows>
bool recode_tile_of_int4(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around) {
    constexpr int cell_bytes = cell_rows * reorder_lines / 2, mantissas = recode_bytes_t::mantissas;
    const int cells = r.from.block / cell_rows, header_bytes = recode_t::header_bytes(r.to, tile_rows);
    const __m256i zero = _mm256_setzero_si256();
    alignas(64) uint8_t header[most_header_bytes] = {};
    const uint8_t *codes = from + recode_t::header_bytes(r.from, tile_rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __m256i bad = zero;
    for (int row = 0; row < tile_rows; row += r.from.block, from += 2 * reorder_lines)
        for (int c = 0; c < cells; c++, scales += reorder_lines) {
            alignas(32) uint32_t places[reorder_lines];
            for (int h = 0; h < 2; h++) {
                __m256i largest = largest_integers(codes + h * half_bytes);
                if (cell_rows > 16)
                    largest = _mm256_max_epi32(
                            largest, largest_integers(codes + cell_bytes / 2 + h * half_bytes));
                const __m256i old = _mm256_cvtepu16_epi32(load128(from + 2 * h * recode_lanes)),
                              is_zero = _mm256_cmpeq_epi32(largest, zero),
                              mantissa = _mm256_and_si256(old, dwords256(mantissas - 1)),
                              place = _mm256_add_epi32(
                                      mantissa, _mm256_mullo_epi32(largest, dwords256(mantissas))),
                              code = _mm256_and_si256(
                                      _mm256_i32gather_epi32(
                                              reinterpret_cast<const int *>(r.scale_of_int4[0]), place, 1),
                                      dwords256(0xff)),
                              octaves = _mm256_sub_epi32(
                                      _mm256_srli_epi32(old, bf16_t::mantissa_bits), dwords256(127)),
                              v = _mm256_add_epi32(
                                      code, _mm256_mullo_epi32(octaves, dwords256(uint32_t(r.unit)))),
                              least = dwords256(uint32_t(r.least)),
                              below = _mm256_or_si256(is_zero, _mm256_cmpgt_epi32(least, v));
                // Scales that are negative or not finite, or far from those of the others.
                const __m256i beyond = _mm256_or_si256(_mm256_cmpgt_epi32(v, dwords256(uint32_t(r.greatest))),
                        _mm256_cmpgt_epi32(dwords256(27 << bf16_t::mantissa_bits), old));
                bad = _mm256_or_si256(bad, _mm256_andnot_si256(is_zero, beyond));
                bad = _mm256_or_si256(
                        bad, _mm256_cmpgt_epi32(old, dwords256((227 << bf16_t::mantissa_bits) - 1)));
                store_scales(scales + h * recode_lanes, _mm256_blendv_epi8(v, least, below));
                const __m256i of_least = _mm256_max_epi32(
                        _mm256_sub_epi32(old, dwords256(recode_bytes_t::first_scale_of_int4)), zero);
                store256(places + h * recode_lanes,
                        _mm256_blendv_epi8(place,
                                _mm256_add_epi32(dwords256(9 * mantissas),
                                        _mm256_min_epi32(of_least,
                                                dwords256(recode_bytes_t::octaves_of_int4 * mantissas - 1))),
                                below));
            }
            for (int k = 0; k < cell_rows; k += 16, codes += 128, out += 2 * reorder_lines * bits)
                look_up_rows<bits, signs>(r.codes_of_int4[0], places, codes, out, around);
        }
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);
    return _mm256_testz_si256(bad, bad);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
