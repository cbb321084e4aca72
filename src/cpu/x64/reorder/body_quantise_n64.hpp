// SPDX-License-Identifier: Apache-2.0
// Lines of f32, bf16 or f16 to the n64 layouts. Both columns of a pair are encoded together, so that their
// codes meet in registers.
#pragma once

#include "cpu/x64/reorder/body_n64.hpp"
#include "cpu/x64/reorder/body_quantise.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Whether the low lane has rows 0..7 and 16..23 of 32, the high lane the others.
template <typename S, typename F>
constexpr bool has_rows_apart = S::dt == mxdnn_bf16 &&std::is_base_of<source_order_t, F>::value;

// 64 rows of both columns, 32 in a vector as F::encode() returns them, to the words of a pair. The 32 bytes
// of the top bits of 6-bit codes are stored apart.
template <typename L, typename S, typename F>
MXDNN_INLINE void write_pair(const __m256i *a, const __m256i *b, uint8_t *words, uint8_t *tops, bool around) {
    const auto both = [&](int i) {
        return L::bits == 4 ? _mm256_or_si256(a[i], _mm256_slli_epi16(b[i], 4))
                            : joined_rows<L, first_lane>(a[i], b[i]);
    };
    // The low lanes of x and y, and the high lanes.
    const auto lanes = [](__m256i x, __m256i y) -> two_rows_t {
        return {{_mm256_permute2x128_si256(x, y, 0x20), _mm256_permute2x128_si256(x, y, 0x31)}};
    };
    if constexpr (has_rows_apart<S, F> && !n64_neighbours<L>) {
        const two_rows_t v = lanes(both(0), both(1));
        store_words_of<L>(words_from<L>(_mm256_unpacklo_epi8(v.v[0], v.v[1])),
                words_from<L>(_mm256_unpackhi_epi8(v.v[0], v.v[1])), words, around);
        if constexpr (L::bits == 6) {
            const two_rows_t t = lanes(joined_tops(a[0], b[0]), joined_tops(a[1], b[1]));
            store_tops(t.v[0], t.v[1], tops, false);
        }
        return;
    }
    const auto rows = [&](__m256i x, __m256i y) {
        return lanes(F::template in_order<S>(x), F::template in_order<S>(y));
    };
    const auto in_order = [&](const __m256i *c, int i) { return F::template in_order<S>(c[i]); };
    if constexpr (L::bits == 4) return store_words<L>(rows(both(0), both(1)), words, around);
    const two_rows_t x = lanes(in_order(a, 0), in_order(a, 1)), y = lanes(in_order(b, 0), in_order(b, 1));
    const auto joined_both = [&](int i) { return joined_rows<L, first_in_lane>(x.v[i], y.v[i]); };
    store_words<L>({{joined_both(0), joined_both(1)}}, words, around);
    if constexpr (L::bits == 6)
        store_tops({{joined_tops(x.v[0], y.v[0]), joined_tops(x.v[1], y.v[1])}}, tops, false);
}

// Whether a layout is the usual one of an element type.
template <typename L, typename E>
constexpr bool takes_codes_of = L::bits == E::bits &&E::is_float == (L::id != n64_i4_t::id);
// Whether the codes of a family meet in registers. Those of 8 bits gain nothing, and some cases are rare.
template <typename L, typename F>
constexpr bool meets_in_registers = L::bits < 8 && takes_codes_of<L, typename F::elem_t>;
template <typename L, typename E>
constexpr bool meets_in_registers<L, affine_family_t<E>> = false;

// Two pairs of columns: lines 0 and 2, 1 and 3. Blocks have `block` elements, or, if that is 0, f.block,
// which is a multiple of encode_step.
template <typename L, typename S, typename F, int block>
void encode_pairs(
        const four_lines_t &q, const block_format_t &f, const blocks_t &b, const code_tiles_t &to, int pair) {
    using raw_t = typename S::raw_t;
    constexpr int bytes = encode_step * int(sizeof(raw_t));
    constexpr int64_t blocks = block ? encode_step / max_of(block, 1) * 4 : 0; // in a line of blocks_t
    const bool around = goes_around(q.how, to.codes);
    const int shift = block ? 0 : bits_of_block(f.block);
    const int64_t ahead = q.next - q.src;
    alignas(64) uint8_t tops[reorder_max_length / n64_rows(L::bits)][64]; // of both pairs, a cache line
    for (int i = 0; i < 2; i++) {
        const uint8_t *x = q.src + q.offset(i), *y = q.src + q.offset(i + 2);
        int64_t at = i;
        for_n64_steps<L>(to, [&](int r, uint8_t *step) {
            const auto codes = [&](const uint8_t *line, int l, int part) {
                line += part * bytes;
                if (l + i < fetched_by_encoders) prefetch<size_t(bytes)>(line + ahead);
                const int64_t first =
                        (block ? at + part * blocks : ((r + part * encode_step) >> shift) * 4 + i) + l;
                __m256i c = F::template encode<S, false>(reinterpret_cast<const raw_t *>(line),
                        line_params_of_t{b, first, block && block < encode_step ? first + 4 : first});
                // One after the other: registers do not suffice for more.
                __asm__ volatile("" : "+x"(c) : : "memory");
                return c;
            };
            const __m256i a[2] = {codes(x, 0, 0), codes(x, 0, 1)}, c[2] = {codes(y, 2, 0), codes(y, 2, 1)};
            write_pair<L, S, F>(a, c, step + 64 * (pair + i), tops[r / n64_rows(L::bits)] + 32 * i, around);
            x += 2 * bytes;
            y += 2 * bytes;
            at += 2 * blocks;
        });
    }
    if constexpr (L::bits == 6)
        for_n64_steps<L>(to, [&](int r, uint8_t *step) {
            write_line(around, step + n64_step_bytes + 32 * pair, tops[r / n64_rows(L::bits)]);
        });
}

template <typename L, typename S, typename F>
MXDNN_INLINE void encode_pairs(
        const four_lines_t &q, const block_format_t &f, const blocks_t &b, const code_tiles_t &to, int pair) {
    constexpr int usual = F::block ? int(F::block) : encode_step;
    if (f.block == usual) return encode_pairs<L, S, F, usual>(q, f, b, to, pair);
    if constexpr (F::block == 0) encode_pairs<L, S, F, 0>(q, f, b, to, pair);
}

// The same through a byte for each code.
template <typename L>
void pack_pairs_of(const codec_t &codec, const four_lines_t &q, const block_format_t &f, const blocks_t &b,
        bool special, const code_tiles_t &to, int pair) {
    alignas(64) uint8_t codes[4][reorder_max_length];
    four_lines_t lines = q;
    lines.codes = codes[0];
    lines.pitch = reorder_max_length;
    lines.how = write_t::cached;
    codec.encode(lines, f, b, special);
    const bool around = goes_around(q.how, to.codes);
    for_n64_steps<L>(to, [&](int r, uint8_t *step) {
        for (int i = 0; i < 2; i++) pack_pair<L>(codes[i] + r, codes[i + 2] + r, step, pair + i, around);
    });
}

// Tiles from a position on, the first of a tile.
MXDNN_INLINE code_tiles_t tiles_from(const code_tiles_t &t, int pos, int rows) {
    return {t.codes + pos / t.tile_rows * t.tile_bytes, rows, t.tile_rows, t.tile_bytes};
}

// 16 lines of whole blocks and steps. Four of them go through all positions, so that lines are read in long
// runs.
template <typename L, typename S>
void n64_quantise_lines(const block_format_t &f, const source_lines_t &src, float global,
        const line_params_t &params, const code_tiles_t &to, int pair, write_t how) {
    constexpr int size = int(sizeof(typename S::raw_t));
    const codec_t codec = codec_of<S, false>(f);
    blocks_t b;
    b.global = f.has_global ? global : 1.f;
    four_lines_t q = {};
    q.line_bytes = src.line_bytes;
    q.apart = 8;
    q.lines = 4;
    q.params_pitch = params.pitch;
    q.how = how;
    for (int i = 0; i < 8; i += 2) {
        const uint8_t *const lines = static_cast<const uint8_t *>(src.data) + i * src.line_bytes;
        const uint8_t *then = i + 2 < 8 ? lines + 2 * src.line_bytes : static_cast<const uint8_t *>(src.next);
        if (!then) then = lines;
        for (int k = 0; k < src.n; k += reorder_max_length) {
            const int64_t skip = int64_t(k / f.block) * params.pitch + i;
            q.src = lines + k * size;
            q.n = min_of(reorder_max_length, src.n - k);
            q.next = k + q.n < src.n ? q.src + q.n * size : then;
            q.stored_blocks = q.n / f.block;
            q.scales = params.scales + skip * f.scale_bytes;
            q.zero_points = params.zero_points ? params.zero_points + skip * f.zp_bytes : nullptr;
            const bool special = make_params(codec, q, f, b);
            const code_tiles_t tiles = tiles_from(to, k, q.n);
            with_family<S, false>(f, [&](auto family) {
                using F = decltype(family);
                if constexpr (meets_in_registers<L, F>) {
                    if (!special) return encode_pairs<L, S, F>(q, f, b, tiles, pair + i);
                }
                pack_pairs_of<L>(codec, q, f, b, special, tiles, pair + i);
            });
        }
    }
}

template <typename L>
void n64_quantise(const block_format_t &f, const source_lines_t &src, float global,
        const line_params_t &params, const code_tiles_t &to, int column, write_t how) {
    with_source(src.dt,
            [&](auto s) { n64_quantise_lines<L, decltype(s)>(f, src, global, params, to, column / 2, how); });
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
