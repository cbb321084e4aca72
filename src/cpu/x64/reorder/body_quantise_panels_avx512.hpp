// SPDX-License-Identifier: Apache-2.0
// Values to packed tiles, a pair of panels at a time, as the source has them. Of rows a vector holds an
// element of 32 blocks: they are measured, scaled and encoded without a step across a vector. Of lines it
// holds 32 elements of a block, or of two: their parameters are the same, and only what is left of them after
// measuring, and their codes, change places. Codes are packed as words.
#pragma once

#include "cpu/x64/reorder/body_encode_words_avx512.hpp"
#include "cpu/x64/reorder/body_n16_lines_avx512.hpp"
#include "cpu/x64/reorder/body_n16_rows.hpp"
#include "cpu/x64/reorder/body_n16_words_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- Blocks of a pair of panels in cache, some at a time ----

struct group_t {
    const uint8_t *from; // the first row, or the first 32 positions of all lines
    uint8_t *x;          // the same in cache: rows, or 32 positions of each line in turn
    uint8_t *codes[2], *scales[2], *zero_points[2]; // of both panels
};

struct unit_t {
    const block_format_t *format;
    float global;
    data_type_t dt;
    int size;      // of an element of the source
    int64_t pitch; // bytes from row to row, or from line to line, of the source
    bool around;
    runs_to_fetch_t ahead;  // as many cache lines as there are rows of pairs
    written_later_t *later; // as many bytes as codes are produced
    int codes_pitch;        // of lines of codes in cache
    int groups;
    group_t group[most_groups];
};

MXDNN_INLINE void store_f32_bits(uint32_t *out, __m512i bf16) {
    const __m512i a = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(bf16)),
                  b = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(bf16, 1));
    store512(out, _mm512_slli_epi32(a, 16));
    store512(out + 16, _mm512_slli_epi32(b, 16));
}

// The largest values of all words of rows, or of lines, of a block: magnitudes, or for u4 how far it reaches
// on both sides of 0. most_of(i, take, number) of group i gives the largest number(words). take(from, to) has
// the words that are at `from` in the source, and copies them to `to`.
template <typename S, typename F>
MXDNN_INLINE void measure_groups(blocks_t &b, const unit_t &u, int step, F &&most_of) {
    const auto move = [](const uint8_t *from, uint8_t *to) {
        const __m512i v = words_from_t<S>::load(from);
        store512(to, v);
        return v;
    };
    const bool reach = u.format->elem == mxdnn_u4;
    for (int i = 0; i < u.groups; i += step) {
        if (!reach) {
            most_of(i, b.amax, move, [](__m512i v) { return _mm512_and_si512(v, words(0x7fff)); });
            continue;
        }
        // As numbers: those of the other sign are below all others.
        most_of(i, reinterpret_cast<uint32_t *>(b.above), move, [](__m512i v) { return v; });
        most_of(
                i, reinterpret_cast<uint32_t *>(b.below),
                [](const uint8_t *, uint8_t *to) { return load512(to); },
                [](__m512i v) { return _mm512_xor_si512(v, words(0x8000)); });
    }
    if (reach) reach_to_amax(b, u.groups * pair_lines);
}

template <typename S>
void measure_rows_of_unit(blocks_t &b, unit_t &u) {
    constexpr int fetches = int(sizeof(typename S::raw_t)) - 1; // the encoding fetches the others
    measure_groups<S>(b, u, 1, [&](int i, uint32_t *to, auto take, auto number) {
        __m512i most = _mm512_setzero_si512();
        const uint8_t *from = u.group[i].from;
        uint8_t *x = u.group[i].x, *const end = x + u.format->block * row_bytes;
        for (; x < end; x += 2 * row_bytes, from += 2 * u.pitch) {
            u.ahead.fetch_some(fetches);
            most = _mm512_max_epi16(most, number(take(from, x)));
            most = _mm512_max_epi16(most, number(take(from + u.pitch, x + row_bytes)));
        }
        store_f32_bits(to + i * pair_lines, most);
    });
}

MXDNN_INLINE __m512i zero_at_least(__m512i v) { return _mm512_max_epi16(v, _mm512_setzero_si512()); }

// Blocks in 32 positions of a line, and 32 positions of a pair of panels in bytes.
MXDNN_INLINE int blocks_in_line(const unit_t &u) { return u.format->block < pair_lines ? 2 : 1; }
constexpr int positions_bytes = pair_lines * row_bytes;

template <typename S>
void measure_lines_of_unit(blocks_t &b, unit_t &u) {
    constexpr int size = int(sizeof(typename S::raw_t));
    measure_groups<S>(b, u, blocks_in_line(u), [&](int i, uint32_t *to, auto take, auto number) {
        const auto largest = [&](int k) {
            const uint8_t *from = u.group[i].from + k * size,
                          *next = u.ahead.run + (i * u.format->block + k) * size, *second = next + 64;
            uint8_t *x = u.group[i].x + k / pair_lines * positions_bytes;
            return largest_of_lines([&](int l) {
                if (size > 2) {
                    fetch(second);
                    second += u.ahead.apart;
                }
                if (l % 2 == 0) {
                    fetch(next);
                    next += u.ahead.apart;
                }
                return number(take(from + l * u.pitch, x + l * row_bytes));
            });
        };
        const largest_t most = largest(0);
        if (blocks_in_line(u) == 2) {
            store_f32_bits(to + i * pair_lines, zero_at_least(most.first));
            store_f32_bits(to + (i + 1) * pair_lines, zero_at_least(most.second));
            return;
        }
        __m512i all = zero_at_least(most.of_all());
        for (int k = pair_lines; k < u.format->block; k += pair_lines)
            all = _mm512_max_epi16(all, largest(k).of_all());
        store_f32_bits(to + i * pair_lines, all);
    });
}

// Encodes one block of a pair. Returns whether W cannot encode it.
template <typename W>
MXDNN_INLINE bool encode_rows_with(unit_t &u, const blocks_t &b, int i, int fetches) {
    using pack_t = n16_words_t<W::bits>;
    constexpr int bytes = reorder_lines * W::bits / 8; // of a row of a panel
    const group_t &g = u.group[i];
    const W w = W::of(b, i * pair_lines);
    typename W::seen_t seen = W::unseen();
    for (int r = 0; r < u.format->block; r += pack_t::rows) {
        const uint8_t *x = g.x + r * row_bytes;
        u.ahead.fetch_some(fetches);
        pack_t::pack(g.codes, r * bytes, u.around, [&](int k, int l, int place) {
            return W::codes(seen, w, load512(x + k * row_bytes), w, load512(x + l * row_bytes), place);
        });
    }
    return W::rare(seen);
}
template <typename W>
__attribute__((noinline)) void encode_any_rows(unit_t &u, const blocks_t &b, int i) {
    encode_rows_with<W>(u, b, i, 0);
}

template <typename W>
void encode_rows_of_unit(unit_t &u, blocks_t &b) {
    W::prepare(b, u.groups * pair_lines);
    for (int i = 0; i < u.groups; i++) {
        write_some(*u.later, u.format->block * pair_lines * W::bits / 8);
        if (encode_rows_with<W>(u, b, i, n16_words_t<W::bits>::rows / 2))
            encode_any_rows<any_of_t<W>>(u, b, i);
    }
}

// Encodes 32 positions of the lines of a panel, from block number `first` on. Returns whether W cannot encode
// them.
template <typename W>
MXDNN_INLINE bool encode_lines_with(const unit_t &u, const blocks_t &b, int first, int other,
        const uint8_t *x, uint8_t *to, const uint8_t *next) {
    typename W::seen_t seen = W::unseen();
    const auto of_line = [&](int l) { return W::of_line(b, first + l, first + l + other); };
    n16_lines_t<W::bits>::pack(to, u.around, [&](int l, int k) {
        fetch(next);
        next += u.ahead.apart;
        return W::codes(
                seen, of_line(l), load512(x + l * row_bytes), of_line(k), load512(x + k * row_bytes), 0);
    });
    return W::rare(seen);
}
template <typename W>
__attribute__((noinline)) void encode_any_lines(const unit_t &u, const blocks_t &b, int first, int other,
        const uint8_t *x, uint8_t *to, const uint8_t *next) {
    encode_lines_with<W>(u, b, first, other, x, to, next);
}

template <typename W>
void encode_lines(unit_t &u, blocks_t &b) {
    constexpr int bytes = pair_lines * reorder_lines * W::bits / 8; // of 32 positions of a panel
    const int blocks = blocks_in_line(u), other = (blocks - 1) * pair_lines;
    W::prepare(b, u.groups * pair_lines);
    double_words(b.shift, u.groups * pair_lines);
    double_words(b.zp, u.groups * pair_lines);
    for (int i = 0; i < u.groups; i += blocks)
        for (int k = 0; k < max_of(u.format->block / pair_lines, 1); k++) {
            // The other half of the lines has been fetched meanwhile.
            const uint8_t *x = u.group[i].x + k * positions_bytes,
                          *next = u.ahead.run + reorder_lines * u.ahead.apart;
            u.ahead.run += pair_lines * u.size;
            for (int j = 0; j < 2;
                    j++, x += reorder_lines * row_bytes, next += reorder_lines / 2 * u.ahead.apart) {
                const int first = i * pair_lines + j * reorder_lines;
                uint8_t *const to = u.group[i].codes[j] + k * bytes;
                if (encode_lines_with<W>(u, b, first, other, x, to, next))
                    encode_any_lines<any_of_t<W>>(u, b, first, other, x, to, next);
            }
        }
}

// Encodes any block, from rows of its own elements, through one byte for each code.
void quantise_rows_of_group(const unit_t &u, const group_t &g, const uint8_t *rows, int64_t pitch) {
    const block_format_t &f = *u.format;
    alignas(64) uint8_t codes[reorder_max_block][pair_lines];
    alignas(64) uint8_t scales[pair_lines * sizeof(float)], zero_points[pair_lines * sizeof(float)];
    const rows_t q = {rows, pitch, f.block, pair_lines, codes[0], pair_lines, rows};
    with_source(u.dt, [&](auto s) {
        quantise_block_rows<decltype(s)>(
                f, false, q, pair_lines, u.global, {scales, f.zp_bytes ? zero_points : nullptr, pair_lines});
    });
    const int bits = data_type_info(f.elem)->bits;
    for (int j = 0; j < 2; j++) {
        __builtin_memcpy(g.scales[j], scales + j * reorder_lines * f.scale_bytes,
                size_t(reorder_lines) * size_t(f.scale_bytes));
        __builtin_memcpy(g.zero_points[j], zero_points + j * reorder_lines * f.zp_bytes,
                size_t(reorder_lines) * size_t(f.zp_bytes));
        n16_pack_rows(bits, codes[0] + j * reorder_lines, pair_lines, f.block, g.codes[j], write_t::cached);
    }
}

void quantise_group(const unit_t &u, const group_t &g) { quantise_rows_of_group(u, g, g.from, u.pitch); }
// Transposes lines to rows, where the elements of all groups were: nothing else needs these any more.
void quantise_lines_group(const unit_t &u, const group_t &g) {
    constexpr int pitch = pair_lines * int(sizeof(float));
    static_assert(reorder_max_block * pitch <= most_panel_bytes, "there is room");
    uint8_t *const rows = u.group[0].x;
    transpose(u.size, g.from, u.pitch, pair_lines, u.format->block, rows, pitch);
    quantise_rows_of_group(u, g, rows, pitch);
}

// Codes of a panel's columns, in bytes as their type has them.
MXDNN_INLINE void store_panel_codes(int bytes, const uint32_t *codes, uint8_t *out) {
    const __m512i c = load512(codes);
    if (bytes == 1)
        store128(out, _mm512_cvtepi32_epi8(c));
    else
        store256(out, _mm512_cvtepi32_epi16(c));
}

// The operations on a unit of rows or of lines.
struct unit_steps_t {
    void (*measure)(blocks_t &b, unit_t &u); // also copies the elements from the source
    void (*encode)(unit_t &u, blocks_t &b);
    void (*quantise_group)(const unit_t &u, const group_t &g);
    const mx_shift_t *shift; // of this format
};

void quantise_unit(unit_t &u, const unit_steps_t &steps) {
    const block_format_t &f = *u.format;
    const int n = u.groups * pair_lines;
    blocks_t b;
    b.global = f.has_global ? u.global : 1.f;
    steps.measure(b, u);
    bool special = f.has_global && !(u.global > 0);
    if (!special) {
        make_scales(b, n, f);
        special = make_factors(b, n, f, false, steps.shift);
    }
    if (special) {
        for (int i = 0; i < u.groups; i++) steps.quantise_group(u, u.group[i]);
        return;
    }
    for (int i = 0; i < 2 * u.groups; i++) {
        store_panel_codes(f.scale_bytes, b.scale + i * reorder_lines, u.group[i / 2].scales[i % 2]);
        if (f.zp_bytes)
            store_panel_codes(f.zp_bytes, b.zp + i * reorder_lines, u.group[i / 2].zero_points[i % 2]);
    }
    steps.encode(u, b);
}

// From rows to packed tiles, from lines to packed tiles, or from lines to lines.
struct rows_to_tiles_t {
    template <typename S>
    static constexpr auto measure = measure_rows_of_unit<S>;
    template <typename W>
    static constexpr unit_steps_t steps = {nullptr, encode_rows_of_unit<W>, quantise_group, W::shift};
};
struct lines_to_tiles_t {
    template <typename S>
    static constexpr auto measure = measure_lines_of_unit<S>;
    template <typename W>
    static constexpr unit_steps_t steps = {nullptr, encode_lines<W>, quantise_lines_group, W::shift};
};
template <typename T>
unit_steps_t unit_steps_of(const block_format_t &f, data_type_t dt) {
    unit_steps_t steps = {};
    if (f.family == quant_family_t::nvfp4 && f.has_global)
        steps = T::template steps<nvfp4_words_t>;
    else if (f.family == quant_family_t::nvfp4)
        steps = T::template steps<nvfp4_cut_words_t>;
    else if (f.family == quant_family_t::mx)
        visit_type(decoded_mx_types(), f.elem,
                [&](auto e) { steps = T::template steps<typename mx_words_of_t<decltype(e)>::type>; });
    else
        visit_type(affine_element_types(), f.elem,
                [&](auto e) { steps = T::template steps<affine_words_t<decltype(e)>>; });
    with_source(dt, [&](auto s) { steps.measure = T::template measure<decltype(s)>; });
    return steps;
}

// ---- a tile ----

constexpr int most_header_bytes = 256;
static_assert(most_header_bytes >= 4 * reorder_lines * (2 + 1) && most_header_bytes >= 8 * reorder_lines,
        "four blocks of an affine format, and eight of NVFP4");

void quantise_panels(const block_format_t &f, const panels_values_t &src, float global, uint8_t *tile,
        int64_t panel_bytes, int header_bytes, write_t how, written_later_t &later) {
    const bool lines_apart = src.lines_apart();
    const unit_steps_t steps = lines_apart ? unit_steps_of<lines_to_tiles_t>(f, src.dt)
                                           : unit_steps_of<rows_to_tiles_t>(f, src.dt);
    const int panels = src.lines / reorder_lines, step = panel_step(f, src);
    const int scale_line = reorder_lines * f.scale_bytes, zp_line = reorder_lines * f.zp_bytes;
    const int zps_at = src.rows / f.block * scale_line,
              row_codes = reorder_lines * data_type_info(f.elem)->bits / 8;
    alignas(64) uint8_t
            x[most_panel_bytes]; // because lines of the source may use the same sets of the first-level cache
    alignas(64) uint8_t headers[most_panels][most_header_bytes];
    const int used = src.rows / f.block * (scale_line + zp_line);
    for (int p = 0; p < panels; p++) __builtin_memset(headers[p] + used, 0, size_t(header_bytes - used));

    unit_t u;
    u.format = &f;
    u.global = global;
    u.dt = src.dt;
    u.size = src.size();
    u.pitch = lines_apart ? src.line_bytes : src.pos_bytes;
    u.around = goes_around512(how, tile, panel_bytes);
    u.later = &later;
    u.groups = 0;
    // For group i. Two blocks of 16 share 32 positions of lines.
    const auto place = [&](int i) {
        if (!lines_apart || f.block >= pair_lines) return x + i * f.block * row_bytes;
        return x + i / 2 * positions_bytes + i % 2 * f.block * 2;
    };
    for (int r = 0; r < src.rows; r += step) {
        const int rows = min_of(step, src.rows - r);
        const uint8_t *from = static_cast<const uint8_t *>(src.data) + r * src.pos_bytes;
        u.ahead = {r + step < src.rows ? from + rows * src.pos_bytes : static_cast<const uint8_t *>(src.next),
                u.pitch, u.size * (lines_apart ? rows : src.lines), 0};
        for (int first = 0; first < rows; first += f.block)
            for (int p = 0; p < panels; p += 2) {
                const int block = (r + first) / f.block;
                uint8_t *codes = tile + p * panel_bytes + header_bytes + (r + first) * row_codes;
                uint8_t *scales = headers[p] + block * scale_line,
                        *zps = headers[p] + zps_at + block * zp_line;
                u.group[u.groups] = {from + first * src.pos_bytes + p * reorder_lines * src.line_bytes,
                        place(u.groups), {codes, codes + panel_bytes}, {scales, scales + most_header_bytes},
                        {zps, zps + most_header_bytes}};
                if (++u.groups < most_groups && (p + 2 < panels || first + f.block < rows)) continue;
                quantise_unit(u, steps);
                u.groups = 0;
            }
    }
    for (int p = 0; p < panels; p++)
        for (int b = 0; b < header_bytes; b += 64)
            write512(u.around, tile + p * panel_bytes + b, load512(headers[p] + b));
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
