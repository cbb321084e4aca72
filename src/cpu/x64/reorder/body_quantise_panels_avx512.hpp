// SPDX-License-Identifier: Apache-2.0
// bf16 to packed tiles, a pair of panels at a time, as the source has them. Of rows a vector holds an element
// of 32 blocks: they are measured, scaled and encoded without a step across a vector. Of lines it holds 32
// elements of a block, or of two: their parameters are the same, and only what is left of them after
// measuring, and their codes, change places. Codes are packed as words.
#pragma once

#include "cpu/x64/reorder/body_n16_lines_avx512.hpp"
#include "cpu/x64/reorder/body_n16_rows.hpp"
#include "cpu/x64/reorder/body_n16_words_avx512.hpp"
#include "cpu/x64/reorder/body_quantise.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- what encodes: a code in each word. of(b, i): rows, each word under the parameters of a block of its
// own, from number i on. of_line(b, i, j): a line, its first half of block i and the other of j ----

// bf16 to minifloats under powers of two: mx_bf16_encoder_t on words.
template <typename E>
struct mx_words_t {
    static constexpr int bits = E::bits, m = E::mantissa_bits;
    __m512i least;
    MXDNN_INLINE mx_words_t of(const blocks_t &b, int i) { return {load_words_of(b.shift + i)}; }
    MXDNN_INLINE mx_words_t of_line(const blocks_t &b, int i, int) {
        return {load_words_of_line(b.shift + i)};
    }

    __m512i code(__m512i x) const {
        const __m512i e = _mm512_max_epu16(_mm512_and_si512(x, words(0x7f80)), least);
        const __m512i power = _mm512_add_epi16(e, words((23 - m) << 7));
        const __m512i upper = dwords(0xffff0000);
        const __m512i even =
                sum(_mm512_slli_epi32(_mm512_and_si512(x, words(0x7fff)), 16), _mm512_slli_epi32(power, 16));
        const __m512i odd = sum(_mm512_and_si512(x, dwords(0x7fff0000)), _mm512_and_si512(power, upper));
        const __m512i c =
                _mm512_add_epi16(join_low(even, odd), _mm512_srli_epi16(_mm512_sub_epi16(e, least), 7 - m));
        return or_and(_mm512_min_epu16(c, words(E::max_code)), _mm512_srli_epi16(x, 16 - bits),
                words(E::sign_code));
    }

private:
    MXDNN_INLINE __m512i sum(__m512i a, __m512i b) {
        return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
    }
};

struct e2m1_interval_words_t {
    uint16_t code[32];
    constexpr e2m1_interval_words_t() : code() {
        for (int i = 0; i < 32; i++) code[i] = mx_bf16_encoder_t<f4_e2m1_t>::table.code[i];
    }
};

template <>
struct mx_words_t<f4_e2m1_t> {
    using E = f4_e2m1_t;
    static constexpr int bits = 4;
    static constexpr e2m1_interval_words_t table{};
    __m512i off, codes;
    MXDNN_INLINE mx_words_t of(const blocks_t &b, int i) {
        return {load_words_of(b.shift + i), load512(table.code)};
    }
    MXDNN_INLINE mx_words_t of_line(const blocks_t &b, int i, int) {
        return {load_words_of_line(b.shift + i), load512(table.code)};
    }

    __m512i code(__m512i x) const {
        const __m512i magnitude = _mm512_and_si512(x, words(0x7fff));
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(x, 6), words(1));
        const __m512i v = _mm512_srli_epi16(_mm512_add_epi16(_mm512_subs_epu16(magnitude, off), odd), 5);
        return or_and(look_up(codes, _mm512_min_epu16(v, words(31))), _mm512_srli_epi16(x, 12),
                words(E::sign_code));
    }
};

struct mxint8_words_t {
    static constexpr int bits = 8;
    halves_t factor;
    MXDNN_INLINE mxint8_words_t of(const blocks_t &b, int i) { return {load_halves_of(b.factor + i)}; }
    MXDNN_INLINE mxint8_words_t of_line(const blocks_t &b, int i, int j) {
        return {load_halves_of(b.factor, i, j)};
    }

    __m512i code(__m512i x) const {
        const __m512 to_steps = _mm512_set1_ps(1 / s8_t::step);
        const halves_t y = multiply(multiply(bf16_halves(x), factor), {to_steps, to_steps});
        const __m512i c = join_low(_mm512_cvtps_epi32(y.even), _mm512_cvtps_epi32(y.odd));
        const __m512i most = words(s8_t::highest), least = words(-s8_t::highest);
        return _mm512_and_si512(_mm512_max_epi16(_mm512_min_epi16(c, most), least), words(0xff));
    }
};

// As minifloat_encoder_t has it.
struct nvfp4_words_t {
    using E = f4_e2m1_t;
    using encoder_t = minifloat_encoder_t<E>;
    static constexpr int bits = 4, m = E::mantissa_bits;
    halves_t factor;
    MXDNN_INLINE nvfp4_words_t of(const blocks_t &b, int i) { return {load_halves_of(b.factor + i)}; }
    MXDNN_INLINE nvfp4_words_t of_line(const blocks_t &b, int i, int j) {
        return {load_halves_of(b.factor, i, j)};
    }

    __m512i code(__m512i x) const {
        const halves_t y = multiply(bf16_halves(_mm512_and_si512(x, words(0x7fff))), factor);
        const __m512i v = _mm512_srli_epi16(join_low(steps(y.even), steps(y.odd)), 7 - m);
        const __m512i c = _mm512_min_epu16(_mm512_sub_epi16(v, words(encoder_t::base)), words(E::max_code));
        return or_and(c, _mm512_srli_epi16(x, 16 - bits), words(E::sign_code));
    }

private:
    MXDNN_INLINE __m512i steps(__m512 y) {
        const __m512 exponent = _mm512_castsi512_ps(dwords(inf_bits));
        const __m512 e = _mm512_and_ps(_mm512_max_ps(y, _mm512_set1_ps(encoder_t::least_normal)), exponent);
        const __m512 sum = _mm512_fmadd_ps(e, _mm512_set1_ps(encoder_t::shift), y);
        return _mm512_madd_epi16(_mm512_castps_si512(sum), dwords((1 << 16) | (1 << (7 - m))));
    }
};

// As encode_affine_by_reciprocal() has it; the second rounding, to integers, is by an addition, too.
template <typename E>
struct affine_words_t {
    static constexpr int bits = E::bits;
    halves_t factor;
    __m512i zero_point;
    MXDNN_INLINE affine_words_t of(const blocks_t &b, int i) {
        return {load_halves_of(b.factor + i), load_words_of(b.zp + i)};
    }
    MXDNN_INLINE affine_words_t of_line(const blocks_t &b, int i, int j) {
        return {load_halves_of(b.factor, i, j), load_words_of_line(b.zp + i)};
    }

    __m512i code(__m512i x) const {
        const halves_t y = bf16_halves(x);
        const __m512i c =
                _mm512_add_epi16(join_low(steps(y.even, factor.even), steps(y.odd, factor.odd)), zero_point);
        const __m512i v = _mm512_max_epi16(_mm512_min_epi16(c, words(E::highest)), words(E::lowest));
        return E::is_signed ? _mm512_and_si512(v, words(E::code_mask)) : v;
    }

private:
    MXDNN_INLINE __m512i steps(__m512 y, __m512 f) {
        constexpr float grid = 768.f, integers = 0x1.8p23f; // whose low 16 bits are zero
        return _mm512_castps_si512(
                _mm512_add_ps(_mm512_fmadd_ps(y, f, _mm512_set1_ps(grid)), _mm512_set1_ps(integers - grid)));
    }
};

// ---- blocks of a pair of panels in cache, some at a time ----

struct group_t {
    const uint8_t *x;                               // the first row, or the first 32 positions of all lines
    uint8_t *codes[2], *scales[2], *zero_points[2]; // of both panels
};

struct unit_t {
    const block_format_t *format;
    float global;
    int64_t pitch; // bytes from row to row, or from line to line
    bool around;
    runs_to_fetch_t ahead; // as many cache lines as there are rows of pairs
    int groups;
    group_t group[most_groups];
};

MXDNN_INLINE void store_f32_bits(uint32_t *out, __m512i bf16) {
    const __m512i a = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(bf16)),
                  b = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(bf16, 1));
    store512(out, _mm512_slli_epi32(a, 16));
    store512(out + 16, _mm512_slli_epi32(b, 16));
}

// What all words of rows, or of lines, of a block are at most: magnitudes, or of u4 how far it reaches on
// both sides of 0. most_of(i, number) of group i gives the largest number(words).
template <typename F>
MXDNN_INLINE void measure_groups(blocks_t &b, const unit_t &u, int step, F &&most_of) {
    const bool reach = u.format->elem == mxdnn_u4;
    for (int i = 0; i < u.groups; i += step) {
        if (!reach) {
            most_of(i, b.amax, [](__m512i v) { return _mm512_and_si512(v, words(0x7fff)); });
            continue;
        }
        // As numbers: those of the other sign stand below all others.
        most_of(i, reinterpret_cast<uint32_t *>(b.above), [](__m512i v) { return v; });
        most_of(i, reinterpret_cast<uint32_t *>(b.below),
                [](__m512i v) { return _mm512_xor_si512(v, words(0x8000)); });
    }
    if (reach) reach_to_amax(b, u.groups * pair_lines);
}

void measure_rows_of_unit(blocks_t &b, const unit_t &u) {
    measure_groups(b, u, 1, [&](int i, uint32_t *to, auto number) {
        __m512i most = _mm512_setzero_si512();
        const uint8_t *x = u.group[i].x;
        for (int r = 0; r < u.format->block; r++, x += u.pitch)
            most = _mm512_max_epi16(most, number(load512(x)));
        store_f32_bits(to + i * pair_lines, most);
    });
}

MXDNN_INLINE __m512i zero_at_least(__m512i v) { return _mm512_max_epi16(v, _mm512_setzero_si512()); }

// Blocks in 32 positions of a line, and 32 positions of a pair of panels in bytes.
MXDNN_INLINE int blocks_in_line(const unit_t &u) { return u.format->block < pair_lines ? 2 : 1; }
constexpr int positions_bytes = pair_lines * row_bytes;

void measure_lines_of_unit(blocks_t &b, const unit_t &u) {
    measure_groups(b, u, blocks_in_line(u), [&](int i, uint32_t *to, auto number) {
        const auto largest = [&](int k) {
            const uint8_t *x = u.group[i].x + k / pair_lines * positions_bytes;
            return largest_of_lines([&](int l) { return number(load512(x + l * row_bytes)); });
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

template <typename W>
void encode_rows_of_unit(unit_t &u, blocks_t &b) {
    using pack_t = n16_words_t<W::bits>;
    constexpr int bytes = reorder_lines * W::bits / 8; // of a row of a panel
    for (int i = 0; i < u.groups; i++) {
        const group_t &g = u.group[i];
        const W w = W::of(b, i * pair_lines);
        for (int r = 0; r < u.format->block; r += pack_t::rows) {
            const uint8_t *x = g.x + r * u.pitch;
            u.ahead.fetch_some(pack_t::rows);
            pack_t::pack(
                    g.codes, r * bytes, u.around, [&](int k) { return w.code(load512(x + k * u.pitch)); });
        }
    }
}

template <typename W>
void encode_lines(unit_t &u, blocks_t &b) {
    using pack_t = n16_lines_t<W::bits>;
    constexpr int bytes = pair_lines * reorder_lines * W::bits / 8; // of 32 positions of a panel
    const int blocks = blocks_in_line(u), other = (blocks - 1) * pair_lines;
    double_words(b.shift, u.groups * pair_lines);
    double_words(b.zp, u.groups * pair_lines);
    for (int i = 0; i < u.groups; i += blocks)
        for (int k = 0; k < max_of(u.format->block / pair_lines, 1); k++) {
            const uint8_t *x = u.group[i].x + k * positions_bytes, *next = u.ahead.run;
            u.ahead.run += row_bytes;
            for (int j = 0; j < 2; j++, x += reorder_lines * row_bytes) {
                const int first = i * pair_lines + j * reorder_lines;
                pack_t::pack(u.group[i].codes[j] + k * bytes, u.around, [&](int l) {
                    fetch(next);
                    next += u.ahead.apart;
                    return W::of_line(b, first + l, first + l + other).code(load512(x + l * row_bytes));
                });
            }
        }
}

// Any block: through a byte for each code.
void quantise_group(const unit_t &u, const group_t &g) {
    const block_format_t &f = *u.format;
    alignas(64) uint8_t codes[reorder_max_block][pair_lines];
    alignas(64) uint8_t scales[pair_lines * sizeof(float)], zero_points[pair_lines * sizeof(float)];
    const rows_t q = {g.x, u.pitch, f.block, pair_lines, codes[0], pair_lines};
    quantise_block_rows<source_bf16_t>(
            f, false, q, pair_lines, u.global, {scales, f.zp_bytes ? zero_points : nullptr, pair_lines});
    const int bits = data_type_info(f.elem)->bits;
    for (int j = 0; j < 2; j++) {
        __builtin_memcpy(g.scales[j], scales + j * reorder_lines * f.scale_bytes,
                size_t(reorder_lines * f.scale_bytes));
        __builtin_memcpy(g.zero_points[j], zero_points + j * reorder_lines * f.zp_bytes,
                size_t(reorder_lines * f.zp_bytes));
        n16_pack_rows(bits, codes[0] + j * reorder_lines, pair_lines, f.block, g.codes[j], write_t::cached);
    }
}

// Lines become rows.
void quantise_lines_group(const unit_t &u, const group_t &g) {
    const int block = u.format->block;
    alignas(64) row_words_t rows[reorder_max_block];
    // Positions of a block that begins inside 32 of them are words of the middle of each line.
    for (int k = 0; k < block; k += pair_lines) {
        alignas(64) row_words_t turned[pair_lines];
        turn32(g.x + k / pair_lines * positions_bytes, row_bytes, turned[0], row_bytes);
        __builtin_memcpy(rows[k], turned[0], sizeof(turned[0]) * size_t(min_of(block, pair_lines)));
    }
    unit_t of_rows = u;
    of_rows.pitch = row_bytes;
    group_t group = g;
    group.x = rows[0];
    quantise_group(of_rows, group);
}

// Codes of a panel's columns, in the bytes that their type has.
MXDNN_INLINE void store_panel_codes(int bytes, const uint32_t *codes, uint8_t *out) {
    const __m512i c = load512(codes);
    if (bytes == 1)
        store128(out, _mm512_cvtepi32_epi8(c));
    else
        store256(out, _mm512_cvtepi32_epi16(c));
}

// What is done to a unit, of rows or of lines.
struct unit_steps_t {
    void (*measure)(blocks_t &b, const unit_t &u);
    void (*encode)(unit_t &u, blocks_t &b);
    void (*quantise_group)(const unit_t &u, const group_t &g);
    const mx_shift_t *shift; // of this format
};

void quantise_unit(unit_t &u, const unit_steps_t &steps) {
    const block_format_t &f = *u.format;
    const int n = u.groups * pair_lines;
    bool special = f.has_global && !(u.global > 0);
    if (!special) {
        blocks_t b;
        b.global = f.has_global ? u.global : 1.f;
        steps.measure(b, u);
        make_scales(b, n, f);
        special = make_factors(b, n, f, false, steps.shift);
        for (int i = 0; !special && i < 2 * u.groups; i++) {
            store_panel_codes(f.scale_bytes, b.scale + i * reorder_lines, u.group[i / 2].scales[i % 2]);
            if (f.zp_bytes)
                store_panel_codes(f.zp_bytes, b.zp + i * reorder_lines, u.group[i / 2].zero_points[i % 2]);
        }
        if (!special) steps.encode(u, b);
    }
    for (int i = 0; special && i < u.groups; i++) steps.quantise_group(u, u.group[i]);
}

template <typename W>
constexpr unit_steps_t steps_of(bool lines, const mx_shift_t *shift) {
    if (lines) return {measure_lines_of_unit, encode_lines<W>, quantise_lines_group, shift};
    return {measure_rows_of_unit, encode_rows_of_unit<W>, quantise_group, shift};
}
unit_steps_t unit_steps_of(const block_format_t &f, bool lines) {
    const mx_shift_t *shift = codec_of<source_bf16_t, false>(f).shift;
    unit_steps_t steps = steps_of<nvfp4_words_t>(lines, shift);
    if (f.family == quant_family_t::mx)
        visit_type(mx_element_types(), f.elem, [&](auto e) {
            using E = decltype(e);
            if constexpr (E::is_float)
                steps = steps_of<mx_words_t<E>>(lines, shift);
            else
                steps = steps_of<mxint8_words_t>(lines, shift);
        });
    else if (f.family == quant_family_t::affine)
        visit_type(affine_element_types(), f.elem,
                [&](auto e) { steps = steps_of<affine_words_t<decltype(e)>>(lines, shift); });
    return steps;
}

// ---- a tile ----

constexpr int most_header_bytes = 256;
static_assert(most_header_bytes >= 4 * reorder_lines * (2 + 1) && most_header_bytes >= 8 * reorder_lines,
        "four blocks of an affine format, and eight of NVFP4");

// 32 positions of all lines, then the next ones: lines of the source may compete for a place in the
// first-level cache.
MXDNN_INLINE void gather_lines(const uint8_t *src, int64_t line_bytes, int rows, values_rows_t &x) {
    for (int r = 0; r < rows; r += pair_lines)
        for (int l = 0; l < pair_lines; l++)
            store512(x + r * row_bytes + l * row_bytes, load512(src + l * line_bytes + 2 * r));
}
MXDNN_INLINE void gather_rows(const uint8_t *src, int64_t pos_bytes, int bytes, int rows, values_rows_t &x) {
    for (int r = 0; r < rows; r++)
        for (int b = 0; b < bytes; b += 64) store512(x + r * bytes + b, load512(src + r * pos_bytes + b));
}

void quantise_panels(const block_format_t &f, const panels_values_t &src, float global, uint8_t *tile,
        int64_t panel_bytes, int header_bytes, write_t how) {
    const bool lines_apart = src.pos_bytes == 2;
    const unit_steps_t steps = unit_steps_of(f, lines_apart);
    const int panels = src.lines / reorder_lines, pitch = 2 * src.lines, step = panel_step(f, src);
    const int scale_line = reorder_lines * f.scale_bytes, zp_line = reorder_lines * f.zp_bytes;
    const int zps_at = src.rows / f.block * scale_line,
              row_codes = reorder_lines * data_type_info(f.elem)->bits / 8;
    alignas(64) values_rows_t x;
    alignas(64) uint8_t headers[most_panels][most_header_bytes];
    const int used = src.rows / f.block * (scale_line + zp_line);
    for (int p = 0; p < panels; p++) __builtin_memset(headers[p] + used, 0, size_t(header_bytes - used));

    unit_t u;
    u.format = &f;
    u.global = global;
    u.pitch = pitch;
    u.around = goes_around512(how, tile, panel_bytes);
    u.groups = 0;
    // Position `first` of those in x, panel p.
    const auto at = [&](int first, int p) {
        if (!lines_apart) return x + first * pitch + p * reorder_lines * 2;
        return x + first / pair_lines * positions_bytes + first % pair_lines * 2;
    };
    for (int r = 0; r < src.rows; r += step) {
        const int rows = min_of(step, src.rows - r);
        const uint8_t *from = static_cast<const uint8_t *>(src.data) + r * src.pos_bytes;
        if (lines_apart)
            gather_lines(from, src.line_bytes, rows, x);
        else
            gather_rows(from, src.pos_bytes, pitch, rows, x);
        u.ahead = {r + step < src.rows ? from + rows * src.pos_bytes : static_cast<const uint8_t *>(src.next),
                lines_apart ? src.line_bytes : src.pos_bytes, lines_apart ? 2 * rows : pitch, 0};
        for (int first = 0; first < rows; first += f.block)
            for (int p = 0; p < panels; p += 2) {
                const int block = (r + first) / f.block;
                uint8_t *codes = tile + p * panel_bytes + header_bytes + (r + first) * row_codes;
                uint8_t *scales = headers[p] + block * scale_line,
                        *zps = headers[p] + zps_at + block * zp_line;
                u.group[u.groups++] = {at(first, p), {codes, codes + panel_bytes},
                        {scales, scales + most_header_bytes}, {zps, zps + most_header_bytes}};
                if (u.groups < most_groups && (p + 2 < panels || first + f.block < rows)) continue;
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
