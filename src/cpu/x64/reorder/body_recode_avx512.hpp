// SPDX-License-Identifier: Apache-2.0
// Packed codes of 4 bits to packed codes of another format. What a code becomes depends on its scale and on
// the new scale of its block alone. So codes are looked up in a table of 16 codes for each pair of scales,
// which is computed when the pair is met first; from NVFP4 to int4, where pairs are many, it is calculated
// each time. A cell is what has one scale on either side: rows of a column. A vector has the tables of all 16
// columns, 8 codes of each.
#pragma once

#include "cpu/x64/reorder/body_dequantise.hpp"
#include "cpu/x64/reorder/body_dequantise_panels_avx512.hpp"
#include "cpu/x64/reorder/body_quantise_panels_avx512.hpp"
#include "cpu/x64/reorder/body_recode_entries.hpp"
#include "cpu/x64/reorder/body_recode_panels.hpp"

// Bytes are looked up in 128 by one instruction. Whoever calls these functions has made sure that it is
// there.
#define MXDNN_WITH_VBMI __attribute__((target("avx512vbmi")))

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- from codes to the largest magnitudes of cells ----

// The greatest halves of the bytes of each column, of number(vector) for some vectors.
template <typename F>
MXDNN_INLINE __m512i greatest_nibbles(const uint8_t *codes, int vectors, F &&number) {
    __m512i low = _mm512_setzero_si512(), high = low;
    for (int i = 0; i < vectors; i++) {
        const __m512i v = number(load512(codes + i * 64));
        low = _mm512_max_epu8(low, _mm512_and_si512(v, _mm512_set1_epi8(0x0f)));
        high = _mm512_max_epu8(high, _mm512_and_si512(v, _mm512_set1_epi8(char(0xf0))));
    }
    __m512i v = _mm512_max_epu8(low, _mm512_srli_epi16(high, 4));
    v = _mm512_max_epu8(v, _mm512_srli_epi32(v, 16));
    v = _mm512_max_epu8(v, _mm512_srli_epi32(v, 8));
    return _mm512_and_si512(v, dwords(15));
}

// The bits of the largest magnitude of each column of a cell. They are NaN or Inf if the scale is.
template <bool is_integer>
MXDNN_INLINE __m512i cell_amax(const uint8_t *codes, int vectors, __m512 factor) {
    const auto magnitude = [&](__m512 value) {
        return _mm512_and_si512(_mm512_castps_si512(_mm512_mul_ps(value, factor)), dwords(magnitude_mask));
    };
    if (!is_integer) {
        // Signs are shifted out: magnitudes are even numbers.
        const __m512i most = greatest_nibbles(codes, vectors, [](__m512i v) {
            return _mm512_and_si512(_mm512_add_epi8(v, v), _mm512_set1_epi8(char(0xee)));
        });
        return magnitude(_mm512_permutexvar_ps(
                most, _mm512_setr_ps(0, 0, 0.5f, 0, 1, 0, 1.5f, 0, 2, 0, 3, 0, 4, 0, 6, 0)));
    }
    // -8 becomes 0, and for the least code 15.
    const auto reach = [&](int flip, int less) {
        const __m512i most = greatest_nibbles(
                codes, vectors, [&](__m512i v) { return _mm512_xor_si512(v, _mm512_set1_epi8(char(flip))); });
        return magnitude(_mm512_cvtepi32_ps(_mm512_sub_epi32(most, dwords(uint32_t(less)))));
    };
    return _mm512_max_epu32(reach(0x88, 8), reach(0x77, 7));
}

// ---- tables ----

MXDNN_INLINE __m512i e4m3_bits(__m512i c) {
    const __m512i v = _mm512_and_si512(c, dwords(0x7f)),
                  sign = _mm512_slli_epi32(_mm512_and_si512(c, dwords(0x80)), 24);
    const __mmask16 subnormal = _mm512_cmplt_epu32_mask(v, dwords(8));
    const __m512i normal = _mm512_add_epi32(_mm512_slli_epi32(v, 20), dwords(120u << 23));
    const __m512 next = _mm512_castsi512_ps(_mm512_add_epi32(normal, dwords(1u << 23)));
    const __m512 x = _mm512_mask_sub_ps(
            _mm512_castsi512_ps(normal), subnormal, next, _mm512_set1_ps(f8_e4m3_t::min_normal));
    return _mm512_or_si512(_mm512_castps_si512(x), sign);
}
// Codes of scales as the bits of f32. Zero and infinity of e8m0 stand for its ends.
MXDNN_INLINE __m512i scale_bits(const block_format_t &f, __m512i c) {
    switch (f.scale_dt) {
    case mxdnn_e8m0: return _mm512_slli_epi32(c, 23);
    case mxdnn_bf16: return _mm512_slli_epi32(c, 16);
    case mxdnn_f16: return _mm512_castps_si512(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(c)));
    default: return e4m3_bits(c);
    }
}

// Scales of 10 bits of mantissa: both mantissas, the sign, and how far their exponents are apart.
MXDNN_INLINE __m512i keys_of(__m512i from, __m512i to) {
    const __m512i apart = _mm512_sub_epi32(_mm512_srli_epi32(from, 23), _mm512_srli_epi32(to, 23));
    const __m512i mantissas = and_or(_mm512_srli_epi32(from, 13), dwords(0x3ff),
            _mm512_and_si512(_mm512_srli_epi32(to, 3), dwords(0x3ff << 10)));
    return or_and(mantissas, _mm512_slli_epi32(apart, 20), dwords(0x7ff00000));
}

MXDNN_INLINE void find_places(cells_t &cells, int cell, __m512i from_bits, __m512i to_bits) {
    const __m512i keys = keys_of(from_bits, to_bits);
    store512(cells.key + cell * reorder_lines, keys);
    for (int i = 0; i < 2; i++)
        store512(cells.place[i] + cell * reorder_lines,
                _mm512_srli_epi32(_mm512_mullo_epi32(keys, dwords(place_factors[i])), 32 - recode_t::bits));
}

// ---- tables of int4 ----

// The tables of a cell: of values of f4_e2m1 under `from`, times the reciprocals of new scales. A quotient is
// half of an odd number, or is apart from it by more than 2^-13; so the first rounding only removes the error
// of the product.
MXDNN_INLINE void calculate_tables(__m512 from, __m512 reciprocal, cell_tables_t &tables) {
    const __m512 values = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, 0.5f, 1, 1.5f, 2, 3, 4, 6),
                 grid = _mm512_set1_ps(1536.f), ratio = _mm512_mul_ps(from, reciprocal);
    __m512i columns = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    for (int c = 0; c < reorder_lines; c += 2) {
        const __m512 x = _mm512_mul_ps(_mm512_permutexvar_ps(columns, ratio), values);
        const __m512 quotients = _mm512_sub_ps(_mm512_add_ps(x, grid), grid);
        store128(tables.codes[0] + 8 * c, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(quotients)));
        columns = _mm512_add_epi32(columns, dwords(2));
    }
    for (int i = 0; i < 128; i += 64) {
        const __m512i codes = load512(tables.codes[0] + i);
        store512(tables.codes[0] + i, _mm512_min_epu8(codes, _mm512_set1_epi8(s4_t::highest)));
        store512(tables.codes[1] + i,
                _mm512_and_si512(_mm512_sub_epi8(_mm512_setzero_si512(), codes), _mm512_set1_epi8(15)));
    }
}

// ---- codes to codes ----

// The new codes of the low and the high halves of bytes, a byte each.
struct planes_t {
    __m512i low, high;
};
// Where the table of each byte's column begins.
struct column_places_t {
    alignas(64) uint8_t of[64];
    constexpr column_places_t() : of() {
        for (int i = 0; i < 64; i++) of[i] = uint8_t(i / 4 * 8);
    }
};
constexpr column_places_t column_places;

template <int bits, bool has_sign>
MXDNN_WITH_VBMI MXDNN_INLINE __m512i look_up_codes(const __m512i *t, __m512i v) {
    const __m512i at = and_or(v, _mm512_set1_epi8(7), load512(column_places.of)),
                  codes = _mm512_permutex2var_epi8(t[0], at, t[1]);
    if (has_sign)
        return xor_and(codes, _mm512_slli_epi16(v, bits - 4), _mm512_set1_epi8(char(1 << (bits - 1))));
    return _mm512_mask_blend_epi8(
            _mm512_test_epi8_mask(v, _mm512_set1_epi8(8)), codes, _mm512_permutex2var_epi8(t[2], at, t[3]));
}
template <int bits, bool has_sign>
MXDNN_WITH_VBMI MXDNN_INLINE planes_t recode(const __m512i *t, const uint8_t *codes) {
    const __m512i v = load512(codes);
    return {look_up_codes<bits, has_sign>(t, v), look_up_codes<bits, has_sign>(t, _mm512_srli_epi16(v, 4))};
}

// Eight rows, as n16_b4 has them, in the order of n16_b8: four rows each.
struct two_vectors_t {
    __m512i v[2];
};
MXDNN_INLINE two_vectors_t in_order_of_bytes(const planes_t &p) {
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i low = shuffle512(p.low, order), high = shuffle512(p.high, order);
    return {{_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high)}};
}

// A cell: `rows` rows of a panel, a multiple of 16.
template <int bits, bool has_sign>
MXDNN_WITH_VBMI void recode_cell(
        const cell_tables_t &tables, const uint8_t *from, int rows, uint8_t *to, bool around) {
    const __m512i t[4] = {load512(tables.codes[0]), load512(tables.codes[0] + 64), load512(tables.codes[1]),
            load512(tables.codes[1] + 64)};
    for (int r = 0; r < rows; r += 16, from += 128, to += 2 * bits * reorder_lines) {
        const planes_t a = recode<bits, has_sign>(t, from), b = recode<bits, has_sign>(t, from + 64);
        if (bits == 4) {
            write512(around, to, _mm512_or_si512(a.low, _mm512_slli_epi16(a.high, 4)));
            write512(around, to + 64, _mm512_or_si512(b.low, _mm512_slli_epi16(b.high, 4)));
            continue;
        }
        const two_vectors_t first = in_order_of_bytes(a), second = in_order_of_bytes(b);
        const __m512i v[4] = {first.v[0], first.v[1], second.v[0], second.v[1]};
        const __m512i top = _mm512_set1_epi8(char(0xc0));
        for (int i = 0; i < (bits == 6 ? 3 : 4); i++)
            write512(around, to + 64 * i,
                    bits == 6 ? or_and(v[i], _mm512_slli_epi16(v[3], unsigned(6 - 2 * i)), top) : v[i]);
    }
}

// ---- a tile of one panel ----

// False if there are other scales, or NaN, which has rules of its own. Nothing has been written then.
// `calculates`: the tables, each time, for new codes of 4 bits. recode: recode_cell() for codes of so many
// bits.
using recode_cell_t = void (*)(
        const cell_tables_t &tables, const uint8_t *from, int rows, uint8_t *to, bool around);
template <bool is_integer, bool has_sign, bool calculates>
bool recode_tile(recode_t &r, recode_cell_t recode, int bits, const uint8_t *from, uint8_t *to, int rows,
        bool around) {
    const bool is_e8m0 = r.from.scale_dt == mxdnn_e8m0;
    const int from_blocks = rows / r.from.block, to_blocks = rows / r.to.block;
    const int cell_rows = min_of(r.from.block, r.to.block), cells = rows / cell_rows;
    const int cells_of_from = r.from.block / cell_rows, cells_of_to = r.to.block / cell_rows;
    const int from_line = reorder_lines * r.from.scale_bytes, to_line = reorder_lines * r.to.scale_bytes;
    alignas(64) uint32_t from_bits[most_blocks], to_bits[most_blocks];
    __mmask16 others[most_blocks / reorder_lines];
    blocks_t a, b;
    clear_blocks(a, from_blocks * reorder_lines);
    for (int i = 0; i < from_blocks; i++) {
        const __m512i c = load_panel_codes(r.from.scale_bytes, from + i * from_line);
        store512(a.scale + i * reorder_lines, c);
        const __m512i v = scale_bits(r.from, c), magnitude = _mm512_and_si512(v, dwords(magnitude_mask));
        store512(from_bits + i * reorder_lines, v);
        others[i] = _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(magnitude, dwords(least_key_scale)),
                dwords(most_key_scale - least_key_scale));
        if (calculates) others[i] |= _mm512_movepi32_mask(v); // which nothing that was quantised has
    }
    decode_params(a, from_blocks * reorder_lines, r.from, r.from_global, 1.f);

    const uint8_t *const codes = from + recode_t::header_bytes(r.from, rows);
    __m512i most = _mm512_setzero_si512(), of_block = most;
    __mmask16 other = 0;
    for (int i = 0, f = 0, t = 0, of_from = 0, of_to = 0; i < cells; i++) {
        const __m512i amax = cell_amax<is_integer>(
                codes + i * cell_rows * 8, cell_rows / 8, _mm512_loadu_ps(a.factor + f * reorder_lines));
        if (others[f]) // blocks of zeros have the least e8m0
            other |= others[f] & (is_e8m0 ? _mm512_test_epi32_mask(amax, amax) : __mmask16(~0));
        of_block = _mm512_max_epu32(of_block, amax);
        most = _mm512_max_epu32(most, amax);
        if (++of_from == cells_of_from) f++, of_from = 0;
        if (++of_to < cells_of_to) continue;
        store512(b.amax + t++ * reorder_lines, of_block);
        of_block = _mm512_setzero_si512();
        of_to = 0;
    }
    if (other || _mm512_cmpge_epu32_mask(most, dwords(inf_bits)) != 0) return false;
    b.global = r.to.has_global ? r.to_global : 1.f;
    make_scales(b, to_blocks * reorder_lines, r.to);

    alignas(64) uint8_t header[most_header_bytes] = {};
    const int header_bytes = recode_t::header_bytes(r.to, rows);
    for (int i = 0; i < to_blocks; i++) {
        const uint32_t *const c = b.scale + i * reorder_lines;
        store512(to_bits + i * reorder_lines, scale_bits(r.to, load512(c)));
        store_panel_codes(r.to.scale_bytes, c, header + i * to_line);
    }
    for (int i = 0; i < header_bytes; i += 64) write512(around, to + i, load512(header + i));

    if (calculates) {
        if (make_factors(b, to_blocks * reorder_lines, r.to, true, nullptr)) return false;
        cell_tables_t tables;
        for (int i = 0; i < cells; i++) {
            calculate_tables(_mm512_loadu_ps(a.factor + i / cells_of_from * reorder_lines),
                    _mm512_loadu_ps(b.factor + i / cells_of_to * reorder_lines), tables);
            recode_cell<4, has_sign>(tables, codes + i * cell_rows * 8, cell_rows,
                    to + header_bytes + i * cell_rows * reorder_lines / 2, around);
        }
        return true;
    }
    cells_t of_cells;
    for (int i = 0, f = 0, t = 0, of_from = 0, of_to = 0; i < cells; i++) {
        of_cells.from[i] = a.scale + f * reorder_lines;
        of_cells.to[i] = b.scale + t * reorder_lines;
        find_places(
                of_cells, i, load512(from_bits + f * reorder_lines), load512(to_bits + t * reorder_lines));
        if (++of_from == cells_of_from) f++, of_from = 0;
        if (++of_to == cells_of_to) t++, of_to = 0;
    }
    cell_tables_t tables[most_cells];
    collect_tables<has_sign>(r, of_cells, cells, tables);
    for (int i = 0; i < cells; i++)
        recode(tables[i], codes + i * cell_rows * 8, cell_rows,
                to + header_bytes + i * cell_rows * reorder_lines * bits / 8, around);
    return true;
}

bool recode_panels(recode_t &r, const uint8_t *from, int64_t from_panel, uint8_t *to, int64_t to_panel,
        int panels, int rows, int64_t ahead, write_t how) {
    const bool around = goes_around512(how, to, to_panel);
    const int bits = data_type_info(r.to.elem)->bits;
    const bool has_sign = r.to.elem != mxdnn_s4 && r.to.elem != mxdnn_s8;
    // Under a global scale quotients may be anything.
    const bool calculates = bits == 4 && r.from.scale_dt == mxdnn_f8_e4m3 && !r.from.has_global;
    const auto tile = r.from.elem == mxdnn_s4 ? recode_tile<true, false, false>
                      : has_sign              ? recode_tile<false, true, false>
                      : calculates            ? recode_tile<false, false, true>
                                              : recode_tile<false, false, false>;
    const bool keeps_sign = has_sign && r.from.elem != mxdnn_s4;
    const int nth = (bits - 4) / 2 * 2 + keeps_sign;
    constexpr recode_cell_t cells[] = {recode_cell<4, false>, recode_cell<4, true>, recode_cell<6, false>,
            recode_cell<6, true>, recode_cell<8, false>, recode_cell<8, true>};
    const auto tile_of_panel = [&](recode_t &r, const uint8_t *from, uint8_t *to, int rows, bool around) {
        return tile(r, cells[nth], bits, from, to, rows, around);
    };
    return recode_each_panel(
            r, tile_of_panel, fetch, from, from_panel, to, to_panel, panels, rows, ahead, around);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
