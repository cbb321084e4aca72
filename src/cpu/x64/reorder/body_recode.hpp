// SPDX-License-Identifier: Apache-2.0
// Packed codes of 4 bits to packed codes of another format, as body_recode_avx512.hpp, by tables of 16 bytes:
// those of two columns, 8 codes of each. So two dwords of a column, 16 rows, meet in 8 bytes.
#pragma once

#include "cpu/x64/reorder/body_nibbles.hpp"
#include "cpu/x64/reorder/body_recode_entries.hpp"
#include "cpu/x64/reorder/body_recode_panels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// The bits of the largest magnitude of each of eight columns of a cell. They are NaN or Inf if the scale is.
template <bool is_integer>
MXDNN_INLINE __m256i cell_amax256(const uint8_t *codes, int vectors, __m256 factor) {
    const auto magnitude = [&](__m256 value) {
        return _mm256_and_si256(_mm256_castps_si256(_mm256_mul_ps(value, factor)), dwords256(magnitude_mask));
    };
    if constexpr (!is_integer) {
        const __m256i most = greatest_nibbles256<3>(codes, vectors, [](__m256i v) { return v; });
        return magnitude(_mm256_permutevar8x32_ps(_mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6), most));
    } else {
        // -8 becomes 0, and for the least code 15.
        const auto reach = [&](int flip, int less) {
            const __m256i most = greatest_nibbles256<4>(codes, vectors,
                    [&](__m256i v) { return _mm256_xor_si256(v, _mm256_set1_epi8(char(flip))); });
            return magnitude(_mm256_cvtepi32_ps(_mm256_sub_epi32(most, dwords256(uint32_t(less)))));
        };
        return _mm256_max_epu32(reach(0x88, 8), reach(0x77, 7));
    }
}

// ---- scales ----

// Codes of scales as the bits of f32. Zero and infinity of e8m0 stand for its ends.
MXDNN_INLINE void scale_bits(const block_format_t &f, const uint32_t *codes, int n, uint32_t *bits) {
    switch (f.scale_dt) {
    case mxdnn_e8m0: return for_blocks(n, [&](int i) { bits[i] = codes[i] << 23; });
    case mxdnn_bf16: return for_blocks(n, [&](int i) { bits[i] = codes[i] << 16; });
    case mxdnn_f16:
        for (int i = 0; i < n; i += recode_lanes) {
            const __m256i c = load256(codes + i);
            const __m128i halves =
                    _mm_packus_epi32(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1));
            _mm256_storeu_ps(reinterpret_cast<float *>(bits + i), _mm256_cvtph_ps(halves));
        }
        return;
    default: return for_blocks(n, [&](int i) { bits[i] = f32_bits(decode_e4m3(codes[i])); });
    }
}

// Scales of 10 bits of mantissa: both mantissas, the sign, and how far their exponents are apart.
MXDNN_INLINE void find_places(cells_t &cells, int cell, const uint32_t *from, const uint32_t *to) {
    uint32_t *const key = cells.key + cell * reorder_lines;
    for (int c = 0; c < reorder_lines; c++) {
        const uint32_t apart = (from[c] >> 23) - (to[c] >> 23);
        key[c] = (from[c] >> 13 & 0x3ff) | (to[c] >> 3 & 0x3ff << 10) | apart << 20;
        for (int i = 0; i < 2; i++) cells.place[i][cell * reorder_lines + c] = place_of(key[c], i);
    }
}

// ---- codes to codes ----

// A cell: `rows` rows of a panel, a multiple of 16.
template <int bits, signs_t signs>
void recode_cell256(const cell_tables_t &tables, const uint8_t *from, int rows, uint8_t *to, bool around) {
    const auto tables_of = [&](int half, int upper) {
        const auto table = [&](int i) {
            const uint8_t *codes = tables.codes[i] + 64 * half + 16 * upper;
            return load_halves(codes, codes + 32);
        };
        return two_tables_t{{table(0), signs == signs_t::table ? table(1) : _mm256_setzero_si256()}};
    };
    for (int r = 0; r < rows; r += 16, from += 128, to += 2 * bits * reorder_lines)
        recode_rows<bits, signs>(tables_of, from, to, around);
}

// ---- a tile of one panel ----

// False if there are scales without keys, or NaN, which has rules of its own. Nothing has been written then.
template <bool is_integer, int bits, signs_t signs>
bool recode_tile256(recode_t &r, const uint8_t *from, uint8_t *to, int rows, bool around) {
    const int from_blocks = rows / r.from.block, to_blocks = rows / r.to.block;
    const int cell_rows = min_of(r.from.block, r.to.block), cells = rows / cell_rows;
    const int cells_of_from = r.from.block / cell_rows, cells_of_to = r.to.block / cell_rows;
    const int from_scales = from_blocks * reorder_lines, to_scales = to_blocks * reorder_lines;
    alignas(64) uint32_t from_bits[most_blocks], to_bits[most_blocks], outside[most_blocks];
    blocks_t a, b;
    clear_blocks(a, from_scales);
    load_line_codes(r.from.scale_bytes, a.scale, from, from_scales);
    scale_bits(r.from, a.scale, from_scales, from_bits);
    for_blocks(from_scales, [&](int i) {
        const uint32_t beyond = (from_bits[i] & magnitude_mask) - least_key_scale;
        outside[i] = beyond > most_key_scale - least_key_scale ? ~0u : 0u;
    });
    decode_params(a, from_scales, r.from, r.from_global, 1.f);

    const uint8_t *const codes = from + recode_t::header_bytes(r.from, rows);
    const bool is_e8m0 = r.from.scale_dt == mxdnn_e8m0; // blocks of zeros have the least one
    const __m256i zeros_count = is_e8m0 ? _mm256_setzero_si256() : dwords256(~0u);
    __m256i bad = _mm256_setzero_si256();
    for (int c = 0; c < reorder_lines; c += recode_lanes) {
        __m256i of_block = _mm256_setzero_si256();
        for (int i = 0; i < cells; i++) {
            const int f = i / cells_of_from * reorder_lines + c, t = i / cells_of_to * reorder_lines + c;
            const __m256i amax = cell_amax256<is_integer>(
                    codes + i * cell_rows * 8 + c * 4, cell_rows / 8, _mm256_loadu_ps(a.factor + f));
            const __m256i is_zero = _mm256_cmpeq_epi32(amax, _mm256_setzero_si256()),
                          counts = _mm256_or_si256(zeros_count, _mm256_xor_si256(is_zero, dwords256(~0u)));
            bad = _mm256_or_si256(bad, _mm256_and_si256(load256(outside + f), counts));
            bad = _mm256_or_si256(bad, _mm256_cmpgt_epi32(amax, dwords256(inf_bits - 1)));
            of_block = i % cells_of_to == 0 ? amax : _mm256_max_epu32(of_block, amax);
            store256(b.amax + t, of_block);
        }
    }
    if (!_mm256_testz_si256(bad, bad)) return false;
    b.global = r.to.has_global ? r.to_global : 1.f;
    make_scales(b, to_scales, r.to);

    alignas(64) uint8_t header[most_blocks * 2] = {};
    const int header_bytes = recode_t::header_bytes(r.to, rows);
    store_line_codes(r.to.scale_bytes, b.scale, header, to_scales);
    scale_bits(r.to, b.scale, to_scales, to_bits);
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);

    cells_t of_cells;
    for (int i = 0; i < cells; i++) {
        const int f = i / cells_of_from * reorder_lines, t = i / cells_of_to * reorder_lines;
        of_cells.from[i] = a.scale + f;
        of_cells.to[i] = b.scale + t;
        find_places(of_cells, i, from_bits + f, to_bits + t);
    }
    cell_tables_t tables[most_cells];
    collect_tables<signs != signs_t::table>(r, of_cells, cells, tables);
    for (int i = 0; i < cells; i++)
        recode_cell256<bits, signs>(tables[i], codes + i * cell_rows * 8, cell_rows,
                to + header_bytes + i * cell_rows * reorder_lines * bits / 8, around);
    return true;
}

using recode_tile_t = bool (*)(recode_t &r, const uint8_t *from, uint8_t *to, int rows, bool around);
template <int bits>
recode_tile_t recode_tile_to(const recode_t &r) {
    if (r.from.elem == mxdnn_s4) return recode_tile256<true, bits, signs_t::table>;
    if (r.to.elem == mxdnn_s4) return recode_tile256<false, bits, signs_t::table>;
    return r.to.elem == mxdnn_s8 ? recode_tile256<false, bits, signs_t::number>
                                 : recode_tile256<false, bits, signs_t::bit>;
}

bool recode_panels(recode_t &r, const uint8_t *from, int64_t from_panel, uint8_t *to, int64_t to_panel,
        int panels, int rows, int64_t ahead, write_t how) {
    const bool around = goes_around(how, to, to_panel);
    const int bits = data_type_info(r.to.elem)->bits;
    const recode_tile_t tile = bits == 4   ? recode_tile_to<4>(r)
                               : bits == 6 ? recode_tile_to<6>(r)
                                           : recode_tile_to<8>(r);
    return recode_each_panel(
            r, tile, prefetch_line, from, from_panel, to, to_panel, panels, rows, ahead, around);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
