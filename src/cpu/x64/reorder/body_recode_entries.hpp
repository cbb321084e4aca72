// SPDX-License-Identifier: Apache-2.0
// Packed codes of 4 bits to packed codes of another format, what all ISAs share: entries of codes for pairs
// of scales, and where they are.
#pragma once

#include "cpu/x64/reorder/body_dequantise.hpp"
#include "cpu/x64/reorder/body_quantise.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Scales from which keys are made. Values are far from the ends of f32, so that their powers of two do not
// matter.
constexpr uint32_t least_key_scale = 27u << 23, most_key_scale = 227u << 23;

// Of a cell: what codes 0 to 7 and codes 8 to 15 of each column become. Where both formats have signs, codes
// from 8 on are those below with the sign.
struct cell_tables_t {
    alignas(64) uint8_t codes[2][8 * reorder_lines];
};

// What all codes become, under these codes of scales.
void fill_entry(const recode_t &r, uint32_t from, uint32_t to, uint8_t *codes) {
    constexpr int n = max_of(recode_t::most_block, encode_step), blocks = n / int(nvfp4_block);
    alignas(32) const uint8_t x[recode_t::codes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    alignas(32) float values[n] = {};
    alignas(32) uint8_t y[n];
    uint8_t scales[2][blocks * 2];
    for (int i = 0; i < blocks; i++) {
        __builtin_memcpy(scales[0] + i * r.from.scale_bytes, &from, size_t(r.from.scale_bytes));
        __builtin_memcpy(scales[1] + i * r.to.scale_bytes, &to, size_t(r.to.scale_bytes));
    }
    dequantise(r.from, x, recode_t::codes, 1, recode_t::codes, r.from_global, {scales[0], nullptr, 1},
            nullptr, mxdnn_f32, values, sizeof(values), {}, write_t::cached);
    quantise(r.to, true, {values, mxdnn_f32, sizeof(values), 1, max_of(r.to.block, encode_step), nullptr},
            r.to_global, {scales[1], nullptr, 1}, y, n, false, write_t::cached);
    __builtin_memcpy(codes, y, recode_t::codes);
}

constexpr uint32_t place_factors[2] = {0x9e3779b1, 0x85ebca6b};
MXDNN_INLINE uint32_t place_of(uint32_t key, int i) {
    return key * place_factors[i] >> (32 - recode_t::bits);
}

// Makes an entry, and room for it: the one that is there moves to its other place, and so on.
void add_entry(recode_t &r, uint32_t key, const uint8_t *added) {
    alignas(16) uint8_t codes[recode_t::codes], moved[recode_t::codes];
    __builtin_memcpy(codes, added, sizeof(codes));
    r.entries++;
    uint32_t place = place_of(key, 0);
    for (int tries = 0; tries < recode_t::bits * 4; tries++) {
        const uint32_t there = r.key[place];
        __builtin_memcpy(moved, r.entry[place], sizeof(moved));
        __builtin_memcpy(r.entry[place], codes, sizeof(codes));
        r.key[place] = key;
        if (there == recode_t::no_key) return;
        __builtin_memcpy(codes, moved, sizeof(codes));
        key = there;
        place = place_of(key, 0) == place ? place_of(key, 1) : place_of(key, 0);
    } // the last one is forgotten
}

// Cells of a tile: keys of the pairs of scales, both places of their entries, and the codes of the scales.
constexpr int most_cells = recode_t::most_rows / int(nvfp4_block);
struct cells_t {
    alignas(64) uint32_t key[most_cells * reorder_lines], place[2][most_cells * reorder_lines];
    const uint32_t *from[most_cells], *to[most_cells];
};

// The codes of a column whose entry is not in its first place.
__attribute__((noinline)) __m128i other_entry(recode_t &r, const cells_t &cells, int column) {
    const uint32_t key = cells.key[column], second = cells.place[1][column];
    if (r.key[second] == key) return load128(r.entry[second]);
    const int cell = column / reorder_lines, c = column % reorder_lines;
    alignas(16) uint8_t codes[recode_t::codes];
    fill_entry(r, cells.from[cell][c], cells.to[cell][c], codes);
    add_entry(r, key, codes);
    return load128(codes);
}
template <bool has_sign>
MXDNN_INLINE void collect_tables(recode_t &r, const cells_t &cells, int n, cell_tables_t *tables) {
    const auto entry = [&](int column) {
        const uint32_t first = cells.place[0][column];
        if (__builtin_expect(r.key[first] == cells.key[column], 1)) return load128(r.entry[first]);
        return other_entry(r, cells, column);
    };
    for (int i = 0; i < n; i++)
        for (int c = 0; c < reorder_lines; c += 2) {
            const __m128i a = entry(i * reorder_lines + c), b = entry(i * reorder_lines + c + 1);
            store128(tables[i].codes[0] + 8 * c, _mm_unpacklo_epi64(a, b));
            if (!has_sign) store128(tables[i].codes[1] + 8 * c, _mm_unpackhi_epi64(a, b));
        }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
