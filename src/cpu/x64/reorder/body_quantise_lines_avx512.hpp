// SPDX-License-Identifier: Apache-2.0
// Lines of values to lines of plain codes, as many at a time as a pair of panels has: units of
// body_quantise_panels_avx512.hpp whose codes stay in the order of their lines.
#pragma once

#include "cpu/x64/reorder/body_quantise_panels_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Positions of a line that are encoded at a time.
constexpr int run_positions = 2 * pair_lines;

// 64 codes in order, from two vectors of 32 as encoders return them.
template <int bits>
MXDNN_INLINE void store_codes_in_line(uint8_t *to, __m512i codes) {
    if (bits > 4) {
        store512(to, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), codes));
        return;
    }
    const __m512i pairs = _mm512_maddubs_epi16(codes, words(0x1001)),
                  bytes = _mm512_packus_epi16(pairs, pairs);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    store256(to, _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, bytes)));
}

// Encodes positions from p on, of all lines. Returns whether W cannot encode them.
template <typename W>
MXDNN_INLINE bool encode_run_with(const unit_t &u, const blocks_t &b, int p) {
    const int block = u.format->block, other = (blocks_in_line(u) - 1) * pair_lines;
    const int first = p / block * pair_lines, second = (p + pair_lines) / block * pair_lines;
    const uint8_t *x = u.group[0].x + p * row_bytes;
    // The other half of the lines has been fetched meanwhile.
    const uint8_t *next = u.ahead.run + reorder_lines * u.ahead.apart + u.size * p;
    uint8_t *to = u.group[0].codes[0] + p * W::bits / (W::bits > 4 ? W::bits : 8);
    typename W::seen_t seen = W::unseen();
    for (int l = 0; l < pair_lines; l++, x += row_bytes, to += u.codes_pitch) {
        fetch(next + l % 2 * pair_lines * u.size);
        next += l % 2 * u.ahead.apart;
        const __m512i codes = W::codes(seen, W::of_line(b, first + l, first + l + other), load512(x),
                W::of_line(b, second + l, second + l + other), load512(x + positions_bytes), 0);
        store_codes_in_line<W::bits>(to, codes);
    }
    return W::rare(seen);
}
template <typename W>
__attribute__((noinline)) void encode_any_run(const unit_t &u, const blocks_t &b, int p) {
    encode_run_with<W>(u, b, p);
}

template <typename W>
void encode_to_lines(unit_t &u, blocks_t &b) {
    W::prepare(b, u.groups * pair_lines);
    double_words(b.shift, u.groups * pair_lines);
    double_words(b.zp, u.groups * pair_lines);
    const int positions = u.groups * u.format->block;
    for (int p = 0; p < positions; p += run_positions) {
        if (u.later) write_some(*u.later, run_positions * pair_lines * W::bits / (W::bits > 4 ? W::bits : 8));
        if (encode_run_with<W>(u, b, p)) encode_any_run<any_of_t<W>>(u, b, p);
    }
    u.ahead.run += u.size * positions;
}

// Any block.
void quantise_group_of_lines(const unit_t &u, const group_t &g) {
    const block_format_t &f = *u.format;
    const bool nibbles = data_type_info(f.elem)->bits == 4;
    alignas(64) uint8_t codes[pair_lines][reorder_max_block];
    quantise(f, false, {g.from, u.dt, u.pitch, pair_lines, f.block, nullptr}, u.global,
            {g.scales[0], f.zp_bytes ? g.zero_points[0] : nullptr, pair_lines}, codes[0], reorder_max_block,
            false, write_t::cached);
    for (int l = 0; l < pair_lines; l++)
        pack_row(nibbles ? code_storage_t::nibbles : code_storage_t::bytes, codes[l], f.block,
                g.codes[0] + l * u.codes_pitch, write_t::cached);
}

struct lines_to_lines_t {
    template <typename S>
    static constexpr auto measure = measure_lines_of_unit<S>;
    template <typename W>
    static constexpr unit_steps_t steps = {nullptr, encode_to_lines<W>, quantise_group_of_lines, W::shift};
};

void quantise_code_lines(const block_format_t &f, const panels_values_t &src, float global,
        const line_params_t &params, uint8_t *codes, int64_t line_bytes, write_t how,
        written_later_t *later) {
    const unit_steps_t steps = unit_steps_of<lines_to_lines_t>(f, src.dt);
    const int halves = data_type_info(f.elem)->bits == 4 ? 1 : 2, step = panel_step(f, src);
    alignas(64) uint8_t x[most_panel_bytes];
    uint8_t *const buffer = later ? later->buffer() : codes;
    unit_t u;
    u.format = &f;
    u.global = global;
    u.dt = src.dt;
    u.size = src.size();
    u.pitch = src.line_bytes;
    u.around = false;
    u.codes_pitch = later ? src.rows * halves / 2 : int(line_bytes);
    u.later = later;
    for (int r = 0; r < src.rows; r += step) {
        const int rows = min_of(step, src.rows - r);
        const uint8_t *from = static_cast<const uint8_t *>(src.data) + u.size * r;
        u.ahead = {r + step < src.rows ? from + u.size * rows : static_cast<const uint8_t *>(src.next),
                u.pitch, u.size * rows, 0};
        u.groups = rows / f.block;
        for (int i = 0; i < u.groups; i++) {
            const int first = i * f.block, params_at = (r + first) / f.block * params.pitch;
            uint8_t *const scales = params.scales + params_at * f.scale_bytes,
                           *zps = params.zero_points ? params.zero_points + params_at * f.zp_bytes : nullptr;
            uint8_t *const to = buffer + (r + first) * halves / 2;
            u.group[i] = {from + u.size * first,
                    x + first / pair_lines * positions_bytes + first % pair_lines * 2, {to, nullptr},
                    {scales, scales + reorder_lines * f.scale_bytes},
                    {zps, zps ? zps + reorder_lines * f.zp_bytes : nullptr}};
        }
        quantise_unit(u, steps);
    }
    if (later) write_later(*later, how, codes, line_bytes, u.codes_pitch, pair_lines);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
