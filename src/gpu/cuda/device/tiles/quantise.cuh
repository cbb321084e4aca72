// SPDX-License-Identifier: Apache-2.0
// High-precision values to the codes and scales of a tile, blocks along k; lines may run along k or n.
#pragma once

#include "gpu/cuda/device/tiles/code_tile.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Keeps the codes of a group for the `rows` rows that exist, so that poison does not reach padding.
template <typename element_t>
__device__ __forceinline__ void drop_rows(code_group_t<element_t> &g, int rows) {
    constexpr int width = element_t::bits == 4 ? 4 : 8, each = 32 / width;
#pragma unroll
    for (int i = 0; i < code_group_t<element_t>::words; i++) {
        const int n = rows - i * each;
        if (n < each) g.w[i] = n <= 0 ? 0 : g.w[i] & ((1u << n * width) - 1);
    }
}

// Sixteen codes of a column.
template <typename element_t>
__device__ __forceinline__ void put_codes(
        uint8_t *p, const code_group_t<element_t> &a, const code_group_t<element_t> &b) {
    if constexpr (element_t::bits == 4)
        *reinterpret_cast<uint2 *>(p) = make_uint2(a.w[0], b.w[0]);
    else
        *reinterpret_cast<uint4 *>(p) = make_uint4(a.w[0], a.w[1], b.w[0], b.w[1]);
}

// The destination of the codes of a tile: the tile, or a plain side with whole lines along k.
template <typename tile_t>
struct tile_sink_t {
    tile_t &t;
    __device__ __forceinline__ uint8_t *at(int column, int row) const {
        return &t.template at<uint8_t>(column, row);
    }
    // For `n` neighbouring columns: 16 codes of each, and the scales of a block.
    template <typename element_t, int n>
    __device__ __forceinline__ void put(int column, int row, const code_group_t<element_t> (&g)[2][n]) const {
#pragma unroll
        for (int c = 0; c < n; c++) put_codes<element_t>(at(column + c, row), g[0][c], g[1][c]);
    }
    __device__ __forceinline__ void put_scale(int column, int block, uint32_t scale) const {
        t.scale[block][column] = scale;
    }
};
template <int width>
struct line_sink_t {
    uint8_t *p; // the first line of the tile
    int64_t line_step;
    __device__ line_sink_t(const tile_side_t &s, const tile_place_t &place)
        : p(s.data + place.matrix * s.batch_step + place.n * s.line_step + place.k * width / 8),
          line_step(s.line_step) {}
    __device__ __forceinline__ uint8_t *at(int column, int row) const {
        return p + column * line_step + row * width / 8;
    }
};

// The line and the part of it that a thread has. Neighbouring threads have two parts of a line.
struct thread_place_t {
    int part, line;
};

// The addresses of the values of a tile: an element of a line; and whether all can be read as whole words.
struct side_source_t {
    const tile_side_t &s;
    const tile_place_t &place;

    template <int parts>
    __device__ static thread_place_t place_of(int thread) {
        return {thread % parts, thread / parts};
    }
    __device__ bool lines_along_k() const { return s.lines_along_k; }
    __device__ bool whole() const { return place.whole && s.aligned; }
    __device__ int64_t line_step() const { return s.line_step; }
    template <int width>
    __device__ __forceinline__ const uint8_t *at(int line, int element) const {
        return s.data + place.matrix * s.batch_step
               + ((s.lines_along_k ? place.n : place.k) + line) * s.line_step
               + ((s.lines_along_k ? place.k : place.n) + element) * width;
    }
};

// Lines along k: a thread has 16 rows of a column at a time, and its neighbour has the rest of a longer
// block. all_there: it is known that the tile is whole and can be read as whole words.
template <typename quantiser_t, typename words_t, bool all_there = false, typename tile_t, typename source_t,
        typename sink_t>
__device__ __forceinline__ void quantise_along_k(
        tile_t &t, const source_t &s, const sink_t &sink, const tile_place_t &at, const quantiser_t &q) {
    using element_t = typename quantiser_t::element;
    constexpr int unit = 16, parts = tile_t::rows / unit, columns = threads / parts; // at a time
    constexpr int words = unit / words_t::per_word, width = 4 / words_t::per_word;
    constexpr int at_once =
            words_t::per_word == 2 ? 4 : 2; // the same number of loads in flight for every type
    const thread_place_t own = source_t::template place_of<parts>(threadIdx.x);
    const int part = own.part, first = own.line;
    const uint8_t *p = s.template at<width>(first, part * unit);
    const int64_t step = columns * s.line_step();
    const bool whole = all_there || s.whole(), at_whole = all_there || at.whole;
#pragma unroll 1
    for (int pass = 0; pass < tile_n / columns; pass += at_once) {
        uint32_t w[at_once][words];
#pragma unroll
        for (int j = 0; j < at_once; j++) {
            const int left = first + (pass + j) * columns < at.columns ? (at.rows - part * unit) * width : 0;
#pragma unroll
            for (int i = 0; i < words / 4; i++) {
                const uint8_t *from = p + (pass + j) * step + 16 * i;
                const uint4 v =
                        whole ? *reinterpret_cast<const uint4 *>(from) : load_some(from, left - 16 * i);
                w[j][4 * i] = v.x, w[j][4 * i + 1] = v.y, w[j][4 * i + 2] = v.z, w[j][4 * i + 3] = v.w;
            }
        }
#pragma unroll
        for (int j = 0; j < at_once; j++) {
            const int column = first + (pass + j) * columns;
            uint32_t m = largest<words_t, words>(w[j]);
            constexpr int parts_of_block = (1 << quantiser_t::block_shift) / unit;
            if (parts_of_block == 2) m = words_t::larger(m, __shfl_xor_sync(~0u, m, 1), 0);
            const auto b = q.template block<words_t>(amax_of<words_t>(m));
            code_group_t<element_t> g[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                g[h] = q.template encode_row<words_t>(b, w[j] + h * words / 2);
                if (!at_whole) drop_rows(g[h], at.rows - part * unit - 8 * h);
            }
            put_codes<element_t>(sink.at(column, part * unit), g[0], g[1]);
            if (part % parts_of_block == 0)
                t.scale[part / parts_of_block][column] =
                        at_whole || (column < at.columns && part * unit < at.rows) ? b.scale : 0;
        }
    }
}

// Lines along n: a warp has 32 rows at a time, a thread one or two neighbouring columns of them.
template <typename quantiser_t, typename words_t, int rows_of_tile, typename source_t, typename sink_t>
__device__ __forceinline__ void quantise_along_n(
        const source_t &s, const sink_t &sink, const tile_place_t &at, const quantiser_t &q) {
    using element_t = typename quantiser_t::element;
    constexpr int strip = 32, per_word = words_t::per_word, width = 4 / per_word,
                  across = tile_n / 32 / per_word;
    constexpr int block = 1 << quantiser_t::block_shift;
    const int64_t step = s.line_step();
    const bool whole = s.whole();
#pragma unroll 1
    for (int pass = 0; pass < rows_of_tile / strip / warps * across; pass++) {
        const int column = (pass % across * 32 + threadIdx.x % 32) * per_word;
        const int row = (pass / across * warps + threadIdx.x / 32) * strip, rows = at.rows - row;
        const uint8_t *p = s.template at<width>(row, column);
        uint32_t w[strip];
        if (whole) {
#pragma unroll
            for (int i = 0; i < strip; i++) w[i] = *reinterpret_cast<const uint32_t *>(p + i * step);
        } else {
            const int bytes = min(4, (at.columns - column) * width);
#pragma unroll
            for (int i = 0; i < strip; i++) w[i] = load_some(p + i * step, i < rows ? bytes : 0).x;
        }
#pragma unroll
        for (int first = 0; first < strip; first += block) {
            const uint32_t m = largest<words_t, block>(w + first);
            typename quantiser_t::block_t b[per_word];
#pragma unroll
            for (int c = 0; c < per_word; c++) {
                b[c] = q.template block<words_t>(words_t::f32_bits(m, c));
                sink.put_scale(column + c, (row + first) / block,
                        at.whole || (column + c < at.columns && first < rows) ? b[c].scale : 0);
            }
#pragma unroll
            for (int i = first; i < first + block; i += 16) {
                code_group_t<element_t> g[2][per_word];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    q.template encode_columns<words_t>(b, w + i + 8 * h, g[h]);
                    if (!at.whole)
                        for (int c = 0; c < per_word; c++) drop_rows(g[h][c], rows - i - 8 * h);
                }
                sink.put(column, row + i, g);
            }
        }
    }
}

template <typename format_t, typename words_t, typename tile_t, typename source_t>
__device__ __forceinline__ void quantise_tile(
        tile_t &t, const tile_args_t &a, const source_t &s, const tile_place_t &at, float global) {
    using quantiser_t = typename best_quantiser_t<format_t, words_t>::type;
    const quantiser_t q(a.rounding, global);
    // Code with many instructions is compiled a second time without the handling of edges.
    constexpr bool twice = quantiser_t::takes_long;
    if (twice && s.lines_along_k() && at.whole && s.whole())
        quantise_along_k<quantiser_t, words_t, twice>(t, s, tile_sink_t<tile_t>{t}, at, q);
    else if (s.lines_along_k())
        quantise_along_k<quantiser_t, words_t>(t, s, tile_sink_t<tile_t>{t}, at, q);
    else
        quantise_along_n<quantiser_t, words_t, tile_t::rows>(s, tile_sink_t<tile_t>{t}, at, q);
}

// For lines along k, whose codes go to a plain side as whole words.
template <typename format_t, typename words_t, typename tile_t, typename source_t>
__device__ __forceinline__ void quantise_lines(tile_t &t, const tile_args_t &a, const source_t &s,
        const tile_side_t &dst, const tile_place_t &at, float global) {
    using quantiser_t = typename best_quantiser_t<format_t, words_t>::type;
    constexpr int width = quantiser_t::element::bits == 4 ? 4 : 8;
    quantise_along_k<quantiser_t, words_t>(
            t, s, line_sink_t<width>(dst, at), at, quantiser_t(a.rounding, global));
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
