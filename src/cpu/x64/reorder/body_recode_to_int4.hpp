// SPDX-License-Identifier: Apache-2.0
// Codes of 8 and 4 bits to int4, eight columns in a vector of AVX2. New blocks are some old ones, and both
// scales have mantissas.
#pragma once

#include "cpu/x64/reorder/body_recode_f4.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// The scales of eight columns.
struct int4_scales_t {
    __m256i codes;
    __m256 values;
    __m256i bad; // all ones: there is no rule

    MXDNN_INLINE int4_scales_t of(const block_format_t &to, __m256 amax) {
        const __m256 any = _mm256_cmp_ps(amax, _mm256_setzero_ps(), _CMP_GT_OQ),
                     wanted = _mm256_div_ps(amax, _mm256_set1_ps(symmetric_range<s4_t>));
        const auto where_any = [&](__m256i codes, uint32_t one) {
            return _mm256_blendv_epi8(dwords256(one), codes, _mm256_castps_si256(any));
        };
        if (to.scale_dt == mxdnn_bf16) {
            const __m256i u = _mm256_castps_si256(wanted),
                          odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), dwords256(1)),
                          up = _mm256_add_epi32(_mm256_add_epi32(u, dwords256(0x7fff)), odd),
                          codes = where_any(_mm256_srli_epi32(up, 16), bf16_t::encode(1.f));
            return {codes, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 16)), _mm256_setzero_si256()};
        }
        const __m256 beyond =
                _mm256_or_ps(_mm256_cmp_ps(wanted, _mm256_set1_ps(f16_t::min_normal), _CMP_LT_OQ),
                        _mm256_cmp_ps(wanted, _mm256_set1_ps(f16_t::max), _CMP_GT_OQ));
        const __m128i halves = _mm256_cvtps_ph(wanted, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __m256i codes = where_any(_mm256_cvtepu16_epi32(halves), f16_t::encode(1.f));
        return {codes, _mm256_cvtph_ps(in_words(codes)), _mm256_castps_si256(_mm256_and_ps(any, beyond))};
    }
    MXDNN_INLINE __m128i in_words(__m256i v) {
        return _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    }
    MXDNN_INLINE void store(uint8_t *to, const int4_scales_t &s) { store128(to, in_words(s.codes)); }
};

// ---- of codes of 8 bits ----

// In every byte of eight columns: codes grow beyond these numbers, which are 128 below those of the tables.
// The last one is for negative codes.
struct int4_steps_t {
    static constexpr int steps = 8;
    __m256i of[steps];

    // Of numbers, or magnitudes, in units of which the scales are. A code of `i` begins at `i` - 1/2, and at
    // its bound if it is even.
    template <bool is_integer>
    MXDNN_INLINE int4_steps_t find(const recode_bytes_t &r, __m256 scales) {
        const __m128i shift = _mm_cvtsi32_si128(r.bits_below);
        __m256i v[steps];
        for (int i = 0; i < steps; i++) {
            const bool is_even = i % 2 != 0; // the code of step i is i + 1
            const __m256 bound = _mm256_mul_ps(scales, _mm256_set1_ps(float(i) + 0.5f));
            if (is_integer) {
                const __m256 whole = is_even ? _mm256_ceil_ps(bound) : _mm256_floor_ps(bound);
                v[i] = _mm256_sub_epi32(_mm256_cvttps_epi32(whole), dwords256(128 + is_even));
            } else {
                const __m256i u = _mm256_castps_si256(bound),
                              below = is_even ? _mm256_sub_epi32(u, dwords256(1)) : u;
                v[i] = _mm256_sub_epi32(_mm256_srl_epi32(below, shift), dwords256(uint32_t(r.base + 128)));
            }
        }
        int4_steps_t s;
        for (int i = 0; i < steps; i++) {
            const __m256i *const four = v + i / 4 * 4;
            const __m256i bytes = _mm256_packs_epi16(
                    _mm256_packs_epi32(four[0], four[1]), _mm256_packs_epi32(four[2], four[3]));
            s.of[i] = _mm256_shuffle_epi8(bytes,
                    _mm256_add_epi8(_mm256_set1_epi8(char(4 * (i % 4))),
                            in_both_lanes(_mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3))));
        }
        return s;
    }
    template <bool is_integer>
    MXDNN_INLINE __m256i codes(const int4_steps_t &s, __m256i added, __m256i v) {
        const __m256i m = is_integer ? _mm256_abs_epi8(v) : number_of(added, v),
                      number = _mm256_xor_si256(m, _mm256_set1_epi8(char(0x80))),
                      positive = _mm256_cmpgt_epi8(v, _mm256_set1_epi8(-1));
        const auto beyond = [&](int i) { return _mm256_cmpgt_epi8(number, s.of[i]); };
        __m256i less = _mm256_andnot_si256(positive, beyond(steps - 1)); // each is -1
        for (int i = 0; i < steps - 1; i++) less = _mm256_add_epi8(less, beyond(i));
        const __m256i codes = _mm256_sub_epi8(_mm256_xor_si256(less, positive), positive);
        return _mm256_and_si256(codes, _mm256_set1_epi8(15));
    }
};

template <bool is_integer>
bool recode_tile_to_int4(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around) {
    constexpr int most_blocks_of_group = recode_t::most_block / from_rows,
                  block_bytes = from_rows * reorder_lines, vectors = from_rows / vector_rows;
    const int blocks = r.to.block / from_rows, header_bytes = recode_t::header_bytes(r.to, tile_rows);
    const __m256i added = in_both_lanes(load128(r.halves.added));
    alignas(64) uint8_t header[most_header_bytes] = {};
    const uint8_t *codes = from + recode_t::header_bytes(r.from, tile_rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __m256i bad = _mm256_setzero_si256();
    for (int row = 0; row < tile_rows; row += r.to.block, scales += 2 * reorder_lines) {
        __m256 per_unit[2][most_blocks_of_group], values[2];
        for (int h = 0; h < 2; h++) {
            __m256 amax = _mm256_setzero_ps();
            for (int b = 0; b < blocks; b++) {
                const __m256i old = load_scales(from + b * reorder_lines + h * recode_lanes),
                              largest = largest_of_columns<is_integer, from_rows>(
                                      codes + b * block_bytes + h * half_bytes);
                bad = _mm256_or_si256(bad, without_rule(r, largest, old));
                const __m256 value = is_integer ? _mm256_cvtepi32_ps(largest)
                                                : _mm256_castsi256_ps(_mm256_sll_epi32(
                                                        _mm256_add_epi32(number_of(added, largest),
                                                                dwords256(uint32_t(r.base))),
                                                        _mm_cvtsi32_si128(r.bits_below)));
                // In units of the old scale: that of integers is the value of 1.
                const uint32_t unit = is_integer ? 6 : 0;
                const __m256 scale =
                        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(old, dwords256(unit)), 23));
                per_unit[h][b] = _mm256_castsi256_ps(
                        _mm256_slli_epi32(_mm256_sub_epi32(dwords256(2 * 127 + unit), old), 23));
                const __m256i is_zero = _mm256_cmpeq_epi32(largest, _mm256_setzero_si256());
                amax = _mm256_max_ps(
                        amax, _mm256_andnot_ps(_mm256_castsi256_ps(is_zero), _mm256_mul_ps(value, scale)));
            }
            const int4_scales_t s = int4_scales_t::of(r.to, amax);
            int4_scales_t::store(scales + 2 * h * recode_lanes, s);
            bad = _mm256_or_si256(bad, s.bad);
            values[h] = s.values;
        }
        for (int b = 0; b < blocks; b++, codes += block_bytes, out += block_bytes / 2) {
            __m256i nibbles_of[2][vectors / 2];
            for (int h = 0; h < 2; h++) {
                // Beyond the limit no magnitude has another code than 0.
                const int4_steps_t s = int4_steps_t::find<is_integer>(
                        r, _mm256_min_ps(_mm256_mul_ps(values[h], per_unit[h][b]), _mm256_set1_ps(0x1p20f)));
                const auto codes_of = [&](int i) {
                    return int4_steps_t::codes<is_integer>(
                            s, added, load256(codes + 64 * i + half_bytes * h));
                };
                for (int i = 0; i < vectors / 2; i++)
                    nibbles_of[h][i] = nibbles(codes_of(2 * i), codes_of(2 * i + 1));
            }
            for (int i = 0; i < vectors / 2; i++)
                write_two(around, out + 64 * i, nibbles_of[0][i], nibbles_of[1][i]);
        }
        from += blocks * reorder_lines;
    }
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);
    return _mm256_testz_si256(bad, bad);
}

// ---- of f4_e2m1 ----

// MXFP4 and NVFP4: what the quotient of the scales makes of all magnitudes is in a table. Quotients where a
// code changes are multiples of 1 / parts. Others are apart from these by more than 2^-15.
template <bool is_mx>
bool recode_tile_f4_to_int4(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around) {
    constexpr int cell_rows = is_mx ? from_rows : int(nvfp4_block),
                  most_cells = recode_t::most_block / cell_rows, cell_bytes = cell_rows * reorder_lines / 2;
    const int cells = r.to.block / cell_rows, header_bytes = recode_t::header_bytes(r.to, tile_rows);
    const __m256 magnitudes = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    alignas(64) uint8_t header[most_header_bytes] = {};
    const uint8_t *codes = from + recode_t::header_bytes(r.from, tile_rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __m256i bad = _mm256_setzero_si256();
    for (int row = 0; row < tile_rows; row += r.to.block, scales += 2 * reorder_lines) {
        alignas(32) uint32_t places[most_cells][reorder_lines];
        for (int h = 0; h < 2; h++) {
            __m256 old[most_cells], amax = _mm256_setzero_ps();
            for (int c = 0; c < cells; c++) {
                const __m256i scale = load_scales(from + c * reorder_lines + h * recode_lanes);
                __m256i largest = largest_nibbles(codes + c * cell_bytes + h * half_bytes);
                if (is_mx)
                    largest = _mm256_max_epi32(largest,
                            largest_nibbles(codes + c * cell_bytes + cell_bytes / 2 + h * half_bytes));
                bad = _mm256_or_si256(
                        bad, is_mx ? without_rule(r, largest, scale) : without_rule_of_e4m3(largest, scale));
                old[c] = _mm256_castsi256_ps(is_mx ? _mm256_slli_epi32(scale, 23)
                                                   : _mm256_add_epi32(_mm256_slli_epi32(scale, 20),
                                                           dwords256((127 - f8_e4m3_t::bias) << 23)));
                amax = _mm256_max_ps(
                        amax, _mm256_mul_ps(_mm256_permutevar8x32_ps(magnitudes, largest), old[c]));
            }
            const int4_scales_t s = int4_scales_t::of(r.to, amax);
            int4_scales_t::store(scales + 2 * h * recode_lanes, s);
            bad = _mm256_or_si256(bad, s.bad);
            const __m256 factor = _mm256_div_ps(_mm256_set1_ps(recode_bytes_t::parts), s.values);
            for (int c = 0; c < cells; c++) {
                // The whole parts twice, from just above and from just below.
                const __m256 parts = _mm256_min_ps(
                        _mm256_mul_ps(old[c], factor), _mm256_set1_ps(recode_bytes_t::most_parts));
                const auto whole = [&](float near_1) {
                    return _mm256_cvttps_epi32(_mm256_mul_ps(parts, _mm256_set1_ps(near_1)));
                };
                store256(places[c] + h * recode_lanes,
                        _mm256_add_epi32(whole(1 + 0x1p-18f), whole(1 - 0x1p-18f)));
            }
        }
        for (int c = 0; c < cells; c++)
            for (int i = 0; i < cell_bytes; i += cell_bytes / (is_mx ? 2 : 1), codes += 128, out += 128)
                look_up_rows<4, signs_t::number>(r.quotients[0], places[c], codes, out, around);
        from += cells * reorder_lines;
    }
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);
    return _mm256_testz_si256(bad, bad);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
