// SPDX-License-Identifier: Apache-2.0
// The tile that every reorder goes through: codes of 64 columns in shared memory, 128 bytes of each, with the
// scales and zero points of their blocks. Sources fill it from any form, sinks write it to any.
#pragma once

#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

constexpr int tile_n = tile_columns, threads = 128, warps = threads / 32;

// `width` bits for each code: 4, or 8.
template <int width>
struct codes_t {
    static constexpr int rows = tile_rows(width);
    // Columns c, c + 1, ... that a thread transposes together are in separate arrays. These are shifted
    // against each other, so that neighbouring columns are in different banks for every access pattern.
    static constexpr int together = 32 / width, pitch = rows * width / 8 + 16;
    static constexpr int skew = width == 8 ? 32 : 16, array = tile_n / together * pitch + skew;

    alignas(16) uint8_t codes[together * array];

    __device__ static int offset(int column, int row) {
        return column % together * array + column / together * pitch + row * width / 8;
    }
    template <typename T>
    __device__ T &at(int column, int row) {
        return *reinterpret_cast<T *>(codes + offset(column, row));
    }
    template <typename T>
    __device__ const T &at(int column, int row) const {
        return *reinterpret_cast<const T *>(codes + offset(column, row));
    }
};
template <int width_, int least_block = 16, bool zeros_ = true>
struct code_tile_t : codes_t<width_> {
    static constexpr int width = width_, max_blocks = codes_t<width>::rows / least_block;
    static constexpr bool zeros = zeros_;

    uint32_t scale[max_blocks][tile_n], zp[zeros ? max_blocks / 2 : 1][tile_n];
};

// The part of a matrix that a CTA processes.
struct tile_place_t {
    int64_t matrix, k, n; // first row and column
    int rows, columns;    // that exist
    bool whole;           // all of them
};
template <int width>
__device__ __forceinline__ tile_place_t place_at(const tile_args_t &a, int64_t matrix, int64_t k, int64_t n) {
    constexpr int all = tile_rows(width);
    const int rows = a.K - k < all ? int(a.K - k) : all, columns = a.N - n < tile_n ? int(a.N - n) : tile_n;
    return {matrix, k, n, rows, columns, rows == all && columns == tile_n};
}
// False for surplus CTAs of the grid. Backwards: begins with the last tile.
template <int width>
__device__ __forceinline__ bool find_place(const tile_args_t &a, tile_place_t &p, bool backwards = false) {
    const uint32_t n_tiles = uint32_t(a.n_tiles), columns = n_tiles * uint32_t(a.batch);
    uint32_t column = blockIdx.z * max_grid_y + blockIdx.y, row = blockIdx.x;
    if (column >= columns) return false;
    if (backwards) column = columns - 1 - column, row = gridDim.x - 1 - row;
    const uint32_t matrix = column / n_tiles;
    p = place_at<width>(
            a, matrix, int64_t(row) * tile_rows(width), int64_t(column - matrix * n_tiles) * tile_n);
    return true;
}

// Of tiles along k, and across all matrices.
inline dim3 tile_grid(int64_t down, int64_t columns) {
    const int64_t most = int64_t(max_grid_y);
    return dim3(unsigned(down), unsigned(columns < most ? columns : most), unsigned(div_up(columns, most)));
}
inline dim3 tile_grid(const tile_args_t &a) { return tile_grid(a.k_tiles, a.n_tiles * a.batch); }

// The first `bytes` of 16 or fewer, the rest zero.
__device__ __noinline__ static uint4 load_some(const uint8_t *p, int bytes) {
    uint32_t w[4] = {};
    for (int i = 0; i < 16; i++)
        if (i < bytes) w[i / 4] |= uint32_t(p[i]) << (i % 4 * 8);
    return make_uint4(w[0], w[1], w[2], w[3]);
}

// Stores `codes` codes from the lowest bits of a word on. The other half of a shared byte does not change.
template <int width>
__device__ __noinline__ static void store_some(uint8_t *p, uint32_t w, int codes) {
    for (int i = 0; i < 4; i++) {
        const int left = codes - i * 8 / width;
        if (left <= 0) return;
        const uint8_t b = uint8_t(w >> 8 * i);
        p[i] = width == 4 && left == 1 ? uint8_t((p[i] & 0xf0) | (b & 15)) : b;
    }
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
