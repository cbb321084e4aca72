// SPDX-License-Identifier: Apache-2.0
// MXFP4 to NVFP4, and NVFP4 to elements of MX, eight columns in a vector of AVX2. The largest magnitude of a
// block, and the mantissas of scales, say which codes the eight magnitudes become.
#pragma once

#include "cpu/x64/reorder/body_recode_columns.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// 16 rows: codes of a column are looked up in the 8 bytes at its place of the table.
template <int bits, signs_t signs>
MXDNN_INLINE void look_up_rows(
        const uint8_t *table, const uint32_t *places, const uint8_t *from, uint8_t *to, bool around) {
    const auto entries = [&](int column) {
        const auto entry = [&](int c) {
            return reinterpret_cast<const double *>(table + 8 * places[column + c]);
        };
        return _mm_castpd_si128(_mm_loadh_pd(_mm_load_sd(entry(0)), entry(1)));
    };
    const auto tables = [&](int half, int upper) {
        const int column = half * recode_lanes + 2 * upper;
        return two_tables_t{
                {_mm256_inserti128_si256(_mm256_castsi128_si256(entries(column)), entries(column + 4), 1)}};
    };
    recode_rows<bits, signs>(tables, from, to, around);
}
// The largest magnitudes of eight columns of 16 rows, as codes.
MXDNN_INLINE __m256i largest_nibbles(const uint8_t *codes) {
    return greatest_nibbles256<3>(codes, 2, [](__m256i v) { return v; });
}
// Of eight bytes, those at these places.
MXDNN_INLINE __m256i look_up_of_8(const uint8_t *table, __m256i places) {
    return _mm256_permutevar8x32_epi32(load_scales(table), places);
}

// To NVFP4: the largest magnitude says everything.
struct mxfp4_to_nvfp4_t {
    static constexpr int rows = int(nvfp4_block), bits = 4, from_bits = 4, from_blocks = 1;

    MXDNN_INLINE __m256i recode(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
            uint8_t *to, uint8_t *to_scales, bool around) {
        alignas(32) uint32_t places[reorder_lines];
        __m256i bad = _mm256_setzero_si256();
        for (int h = 0; h < 2; h++) {
            const __m256i largest = largest_nibbles(from + h * half_bytes),
                          old = load_scales(from_scales + h * recode_lanes);
            const new_scales_t s = new_scales_t::of(r, largest, look_up_of_8(r.scale, largest), old);
            // The second table begins after so many entries.
            constexpr uint32_t second = 2 * recode_bytes_t::magnitudes / 8;
            const __m256i place = new_scales_t::place(old,
                    recode_bytes_t::first_nibble_scale - recode_bytes_t::scales_below,
                    recode_bytes_t::nibble_scales);
            store256(places + h * recode_lanes,
                    _mm256_blendv_epi8(largest, _mm256_add_epi32(place, dwords256(second)), s.below));
            store_scales(to_scales + h * recode_lanes, s.scales);
            bad = _mm256_or_si256(bad, s.bad);
        }
        look_up_rows<bits, signs_t::bit>(r.code[0], places, from, to, around);
        return bad;
    }
};

// Columns whose scale is negative or NaN, or subnormal unless all codes are 0: all ones.
MXDNN_INLINE __m256i without_rule_of_e4m3(__m256i largest, __m256i scales) {
    const __m256i is_zero = _mm256_cmpeq_epi32(largest, _mm256_setzero_si256()),
                  subnormal = _mm256_cmpgt_epi32(dwords256(1u << f8_e4m3_t::mantissa_bits), scales);
    return _mm256_or_si256(_mm256_cmpgt_epi32(scales, dwords256(f8_e4m3_t::max_code)),
            _mm256_andnot_si256(is_zero, subnormal));
}

// NVFP4 to elements of MX: by the mantissa of the old scale, and how far the exponents are apart.
template <int to_bits, signs_t signs>
struct nvfp4_to_mx_t {
    static constexpr int rows = from_rows, bits = to_bits, from_bits = 4, from_blocks = 2;

    MXDNN_INLINE __m256i recode(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
            uint8_t *to, uint8_t *to_scales, bool around) {
        constexpr int cell_codes = int(nvfp4_block) * reorder_lines;
        alignas(32) uint32_t places[2][reorder_lines];
        const __m256i zero = _mm256_setzero_si256();
        __m256i bad = zero;
        for (int h = 0; h < 2; h++) {
            __m256i mantissas[2], exponents[2], most = zero, any = zero;
            for (int b = 0; b < 2; b++) {
                const __m256i scale = load_scales(from_scales + b * reorder_lines + h * recode_lanes),
                              largest = largest_nibbles(from + b * cell_codes / 2 + h * half_bytes),
                              unused = _mm256_cmpeq_epi32(largest, zero);
                mantissas[b] = _mm256_and_si256(scale, dwords256(7));
                exponents[b] = _mm256_srli_epi32(scale, f8_e4m3_t::mantissa_bits);
                const __m256i at = _mm256_or_si256(_mm256_slli_epi32(mantissas[b], 3), largest),
                              order = _mm256_i32gather_epi32(reinterpret_cast<const int *>(r.amax), at, 1),
                              number = _mm256_add_epi32(_mm256_and_si256(order, dwords256(0xff)),
                                      _mm256_slli_epi32(exponents[b], 5));
                most = _mm256_max_epi32(most, _mm256_andnot_si256(unused, number));
                any = _mm256_or_si256(any, largest);
                bad = _mm256_or_si256(bad, without_rule_of_e4m3(largest, scale));
            }
            const __m256i scales =
                    _mm256_add_epi32(_mm256_srli_epi32(_mm256_add_epi32(most, dwords256(r.amax_added)), 5),
                            dwords256(uint32_t(r.amax_offset)));
            store_scales(
                    to_scales + h * recode_lanes, _mm256_andnot_si256(_mm256_cmpeq_epi32(any, zero), scales));
            for (int b = 0; b < 2; b++) {
                const __m256i apart = _mm256_sub_epi32(
                                      _mm256_sub_epi32(scales, dwords256(uint32_t(r.least_apart))),
                                      exponents[b]),
                              octave = _mm256_min_epi32(
                                      _mm256_max_epi32(apart, zero), dwords256(recode_bytes_t::octaves - 1));
                store256(places[b] + h * recode_lanes,
                        _mm256_or_si256(mantissas[b], _mm256_slli_epi32(octave, 3)));
            }
        }
        for (int b = 0; b < 2; b++)
            look_up_rows<bits, signs>(r.entries[0], places[b], from + b * cell_codes / 2,
                    to + b * cell_codes * bits / 8, around);
        return bad;
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
