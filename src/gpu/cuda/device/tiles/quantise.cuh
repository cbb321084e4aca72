// SPDX-License-Identifier: Apache-2.0
// High-precision values to the codes and scales of a tile, blocks along k; lines may run along k or n.
#pragma once

#include "gpu/cuda/device/tiles/code_tile.cuh"
#include "gpu/cuda/device/tiles/encode.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// What a group of codes keeps of `rows` rows that exist: poison does not reach into padding.
template <typename element_t>
__device__ __forceinline__ void drop_rows(code_group_t<element_t> &g, int rows) {
    constexpr int width = element_t::bits == 4 ? 4 : 8, each = 32 / width;
#pragma unroll
    for (int i = 0; i < code_group_t<element_t>::words; i++) {
        const int n = rows - i * each;
        if (n < each) g.w[i] = n <= 0 ? 0 : g.w[i] & ((1u << n * width) - 1);
    }
}

template <typename element_t, typename tile_t>
__device__ __forceinline__ void put_codes(
        tile_t &t, int column, int row, const code_group_t<element_t> &a, const code_group_t<element_t> &b) {
    if constexpr (element_t::bits == 4)
        t.template at<uint2>(column, row) = make_uint2(a.w[0], b.w[0]);
    else
        t.template at<uint4>(column, row) = make_uint4(a.w[0], a.w[1], b.w[0], b.w[1]);
}

// Lines along k: a thread has 16 rows of a column at a time, and its neighbour the rest of a longer block.
template <typename quantiser_t, typename words_t, typename tile_t>
__device__ __forceinline__ void quantise_along_k(
        tile_t &t, const tile_args_t &a, const tile_place_t &at, float global) {
    using element_t = typename quantiser_t::element;
    constexpr int unit = 16, parts = tile_k / unit, all = tile_n * parts / threads;
    constexpr int words = unit / words_t::per_word, bytes = words * 4, width = 4 / words_t::per_word;
    constexpr int at_once = words_t::per_word; // as many loads in flight for every type
    const uint8_t *p = a.src.data + at.matrix * a.src.batch_step + at.n * a.src.line_step + at.k * width;
#pragma unroll 1
    for (int first = 0; first < all; first += 2 * at_once) {
        uint32_t w[2 * at_once][words];
#pragma unroll
        for (int j = 0; j < 2 * at_once; j++) {
            const int u = threadIdx.x + (first + j) * threads, column = u / parts, part = u % parts;
            const int left = column < at.columns ? (at.rows - part * unit) * width : 0;
#pragma unroll
            for (int i = 0; i < words / 4; i++) {
                const uint4 v = load_16(p + column * a.src.line_step + part * bytes + 16 * i, left - 16 * i);
                w[j][4 * i] = v.x, w[j][4 * i + 1] = v.y, w[j][4 * i + 2] = v.z, w[j][4 * i + 3] = v.w;
            }
        }
#pragma unroll
        for (int j = 0; j < 2 * at_once; j++) {
            const int u = threadIdx.x + (first + j) * threads, column = u / parts, part = u % parts;
            uint32_t m = 0;
#pragma unroll
            for (int i = 0; i < words; i++) m = words_t::larger(m, w[j][i]);
            uint32_t amax = amax_of<words_t>(m);
            if (quantiser_t::block == 2 * unit) amax = max(amax, __shfl_xor_sync(~0u, amax, 1));
            const quantiser_t q(amax, a.rounding, global, a.two_levels);
            code_group_t<element_t> g[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float x[8];
#pragma unroll
                for (int i = 0; i < words / 2; i++)
                    words_t::values(w[j][h * words / 2 + i], x + i * words_t::per_word);
                g[h] = q.encode(x);
                if (at.rows < tile_k) drop_rows(g[h], at.rows - part * unit - 8 * h);
            }
            put_codes<element_t>(t, column, part * unit, g[0], g[1]);
            constexpr int parts_of_block = quantiser_t::block / unit;
            if (part % parts_of_block == 0)
                t.scale[part / parts_of_block][column] = column < at.columns && part * unit < at.rows ? q.scale : 0;
        }
    }
}

// Lines along n: a warp has 32 rows, a thread one or two neighbouring columns of them.
template <typename quantiser_t, typename words_t, typename tile_t>
__device__ __forceinline__ void quantise_along_n(
        tile_t &t, const tile_args_t &a, const tile_place_t &at, float global) {
    using element_t = typename quantiser_t::element;
    constexpr int warp_rows = tile_k / (threads / 32), per_word = words_t::per_word, width = 4 / per_word;
    const int row = threadIdx.x / 32 * warp_rows, rows = at.rows - row;
    const int64_t step = a.src.line_step;
#pragma unroll 1
    for (int pass = 0; pass < tile_n / 32 / per_word; pass++) {
        const int column = (pass * 32 + threadIdx.x % 32) * per_word;
        const uint8_t *p = a.src.data + at.matrix * a.src.batch_step + (at.k + row) * step + (at.n + column) * width;
        const bool whole = column + per_word <= at.columns
                           && (reinterpret_cast<uintptr_t>(p) | uint64_t(step)) % 4 == 0;
        uint32_t w[warp_rows];
        if (whole && rows >= warp_rows) {
#pragma unroll
            for (int i = 0; i < warp_rows; i++) w[i] = *reinterpret_cast<const uint32_t *>(p + i * step);
        } else {
#pragma unroll
            for (int i = 0; i < warp_rows; i++)
                w[i] = i < rows && column < at.columns
                               ? load_some(p + i * step, min(4, (at.columns - column) * width)).x
                               : 0;
        }
#pragma unroll
        for (int b = 0; b < warp_rows / quantiser_t::block; b++) {
            constexpr int block = quantiser_t::block;
            uint32_t m = 0;
#pragma unroll
            for (int i = 0; i < block; i++) m = words_t::larger(m, w[b * block + i]);
#pragma unroll
            for (int c = 0; c < per_word; c++) {
                const quantiser_t q(words_t::f32_bits(m, c), a.rounding, global, a.two_levels);
                code_group_t<element_t> g[2];
#pragma unroll
                for (int i = 0; i < block / 8; i++) {
                    float x[8];
#pragma unroll
                    for (int j = 0; j < 8; j++) {
                        float both[2];
                        words_t::values(w[b * block + 8 * i + j], both);
                        x[j] = both[c];
                    }
                    g[i % 2] = q.encode(x);
                    if (rows < warp_rows) drop_rows(g[i % 2], rows - b * block - 8 * i);
                    if (i % 2) put_codes<element_t>(t, column + c, row + b * block + 8 * i - 8, g[0], g[1]);
                }
                t.scale[row / block + b][column + c] =
                        column + c < at.columns && b * block < rows ? q.scale : 0;
            }
        }
    }
}

template <typename quantiser_t, typename words_t, typename tile_t>
__device__ __forceinline__ void quantise_tile(tile_t &t, const tile_args_t &a, const tile_place_t &at, float global) {
    if (a.src.lines_along_k)
        quantise_along_k<quantiser_t, words_t>(t, a, at, global);
    else
        quantise_along_n<quantiser_t, words_t>(t, a, at, global);
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
