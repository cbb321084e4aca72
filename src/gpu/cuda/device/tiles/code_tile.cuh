// SPDX-License-Identifier: Apache-2.0
// The tile that every reorder goes through: codes of 128 rows x 64 columns in shared memory, each column's side
// by side, with the scales and zero points of their blocks. Sources fill it from any form, sinks write it to any.
#pragma once

#include "gpu/cuda/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

constexpr int tile_k = 128, tile_n = 64, threads = 128;
constexpr int max_blocks = tile_k / 16; // of one column

// `width` bits for each code: 4, or 8.
template <int width>
struct code_tile_t {
    // Columns c, c + 1, ... that a thread transposes together lie in arrays of their own, shifted against each
    // other, so that neighbouring columns are in different banks for every way the tile is accessed.
    static constexpr int together = 32 / width, pitch = tile_k * width / 8 + 16;
    static constexpr int skew = width == 8 ? 32 : 16, array = tile_n / together * pitch + skew;

    alignas(16) uint8_t codes[together * array];
    uint32_t scale[max_blocks][tile_n], zp[max_blocks / 2][tile_n];

    __device__ static int offset(int column, int row) {
        return column % together * array + column / together * pitch + row * width / 8;
    }
    template <typename T>
    __device__ T &at(int column, int row) {
        return *reinterpret_cast<T *>(codes + offset(column, row));
    }
};

// Which part of which matrix a CTA works on.
struct tile_place_t {
    int64_t matrix, k, n; // first row and column
    int rows, columns;    // that exist
};
__device__ inline tile_place_t place_of(const tile_args_t &a, uint32_t i) {
    tile_place_t p;
    const uint32_t column = i / uint32_t(a.k_tiles);
    p.k = int64_t(i % uint32_t(a.k_tiles)) * tile_k;
    p.n = int64_t(column % uint32_t(a.n_tiles)) * tile_n;
    p.matrix = column / uint32_t(a.n_tiles);
    p.rows = int(a.K - p.k < tile_k ? a.K - p.k : tile_k);
    p.columns = int(a.N - p.n < tile_n ? a.N - p.n : tile_n);
    return p;
}

__device__ __noinline__ static uint4 load_some(const uint8_t *p, int bytes) {
    uint32_t w[4] = {};
    for (int i = 0; i < 16; i++)
        if (i < bytes) w[i / 4] |= uint32_t(p[i]) << (i % 4 * 8);
    return make_uint4(w[0], w[1], w[2], w[3]);
}
// The first `bytes` of 16, the rest zero.
__device__ __forceinline__ uint4 load_16(const uint8_t *p, int bytes) {
    if (bytes >= 16 && reinterpret_cast<uintptr_t>(p) % 16 == 0) return *reinterpret_cast<const uint4 *>(p);
    return load_some(p, bytes);
}

// `codes` codes from the lowest bits of a word on. The other half of a byte that is shared stays.
template <int width>
__device__ __forceinline__ void store_some(uint8_t *p, uint32_t w, int codes) {
    for (int i = 0; i < 4; i++) {
        const int left = codes - i * 8 / width;
        if (left <= 0) return;
        const uint8_t b = uint8_t(w >> 8 * i);
        p[i] = width == 4 && left == 1 ? uint8_t((p[i] & 0xf0) | (b & 15)) : b;
    }
}
template <int width>
__device__ __forceinline__ void store_4(uint8_t *p, uint32_t w, int codes) {
    if (codes >= 32 / width && reinterpret_cast<uintptr_t>(p) % 4 == 0)
        *reinterpret_cast<uint32_t *>(p) = w;
    else
        store_some<width>(p, w, codes);
}
template <int width>
__device__ __forceinline__ void store_16(uint8_t *p, const uint4 &v, int codes) {
    if (codes >= 128 / width && reinterpret_cast<uintptr_t>(p) % 16 == 0) {
        *reinterpret_cast<uint4 *>(p) = v;
        return;
    }
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) store_some<width>(p + 4 * i, w[i], codes - i * 32 / width);
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
