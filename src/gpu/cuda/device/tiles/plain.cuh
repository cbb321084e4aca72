// SPDX-License-Identifier: Apache-2.0
// Plain codes, scales and zero points to and from a tile.
#pragma once

#include "common/formats/swizzle_128x4.hpp"
#include "gpu/cuda/device/tiles/code_tile.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// In place: word i holds the i-th codes of the words before.
template <int width>
__device__ __forceinline__ void transpose(uint32_t (&w)[32 / width]) {
    constexpr int n = 32 / width;
#pragma unroll
    for (int s = n / 2; s > 0; s /= 2)
#pragma unroll
        for (int i = 0; i < n; i++) {
            if (i & s) continue;
            const uint32_t a = w[i], b = w[i + s];
            if (s * width == 16) {
                w[i] = __byte_perm(a, b, 0x5410), w[i + s] = __byte_perm(a, b, 0x7632);
            } else if (s * width == 8) {
                w[i] = __byte_perm(a, b, 0x6240), w[i + s] = __byte_perm(a, b, 0x7351);
            } else {
                w[i] = (a & 0x0f0f0f0fu) | (b << 4 & 0xf0f0f0f0u);
                w[i + s] = (a >> 4 & 0x0f0f0f0fu) | (b & 0xf0f0f0f0u);
            }
        }
}

// `bits` of a code, the rest of its byte is dropped.
template <int bits, int width>
__device__ void load_codes(code_tile_t<width> &t, const tile_side_t &src, const tile_place_t &at) {
    const uint8_t *p = src.data + at.matrix * src.batch_step;
    if (src.lines_along_k) {
        constexpr int parts = tile_k * width / 128;
        p += at.n * src.line_step + at.k * width / 8;
        uint4 v[tile_n * parts / threads];
#pragma unroll
        for (int i = 0; i < tile_n * parts / threads; i++) {
            const int at16 = threadIdx.x + i * threads, column = at16 / parts, part = at16 % parts;
            const int left = column < at.columns ? (at.rows * width + 7) / 8 - part * 16 : 0;
            v[i] = load_16(p + column * src.line_step + part * 16, left);
        }
#pragma unroll
        for (int i = 0; i < tile_n * parts / threads; i++) {
            const int at16 = threadIdx.x + i * threads, column = at16 / parts, part = at16 % parts;
            if (bits == 6) v[i].x &= 0x3f3f3f3fu, v[i].y &= 0x3f3f3f3fu, v[i].z &= 0x3f3f3f3fu, v[i].w &= 0x3f3f3f3fu;
            t.template at<uint4>(column, part * 128 / width) = v[i];
        }
        // What shares a byte with the last row is not this tensor's.
        if (width == 4 && at.rows % 2) {
            __syncthreads();
            if (threadIdx.x < tile_n) t.template at<uint8_t>(threadIdx.x, at.rows - 1) &= 15;
        }
        return;
    }
    constexpr int side = 32 / width; // of a square that one thread transposes
    p += at.k * src.line_step + at.n * width / 8;
#pragma unroll
    for (int i = threadIdx.x; i < tile_n / side * (tile_k / side); i += threads) {
        const int column = i % (tile_n / side) * side, row = i / (tile_n / side) * side;
        const int columns = at.columns - column;
        uint32_t w[side];
#pragma unroll
        for (int j = 0; j < side; j++) {
            const uint8_t *q = p + (row + j) * src.line_step + column * width / 8;
            w[j] = 0;
            if (row + j >= at.rows || columns <= 0) continue;
            if (columns >= side && reinterpret_cast<uintptr_t>(q) % 4 == 0) {
                w[j] = *reinterpret_cast<const uint32_t *>(q);
            } else {
                w[j] = load_some(q, (columns * width + 7) / 8 < 4 ? (columns * width + 7) / 8 : 4).x;
                if (columns < side) w[j] &= (1u << columns * width) - 1;
            }
            if (bits == 6) w[j] &= 0x3f3f3f3fu;
        }
        transpose<width>(w);
#pragma unroll
        for (int j = 0; j < side; j++) t.template at<uint32_t>(column + j, row) = w[j];
    }
}

template <int width>
__device__ void store_codes(const code_tile_t<width> &t, const tile_side_t &dst, const tile_place_t &at) {
    uint8_t *p = dst.data + at.matrix * dst.batch_step;
    auto &from = const_cast<code_tile_t<width> &>(t);
    if (dst.lines_along_k) {
        constexpr int parts = tile_k * width / 128;
        p += at.n * dst.line_step + at.k * width / 8;
#pragma unroll
        for (int i = threadIdx.x; i < tile_n * parts; i += threads) {
            const int column = i / parts, part = i % parts;
            if (column >= at.columns) continue;
            store_16<width>(p + column * dst.line_step + part * 16,
                    from.template at<uint4>(column, part * 128 / width), at.rows - part * 128 / width);
        }
        return;
    }
    constexpr int side = 32 / width;
    p += at.k * dst.line_step + at.n * width / 8;
#pragma unroll
    for (int i = threadIdx.x; i < tile_n / side * (tile_k / side); i += threads) {
        const int column = i % (tile_n / side) * side, row = i / (tile_n / side) * side;
        uint32_t w[side];
#pragma unroll
        for (int j = 0; j < side; j++) w[j] = from.template at<uint32_t>(column + j, row);
        transpose<width>(w);
        if (column >= at.columns) continue;
#pragma unroll
        for (int j = 0; j < side; j++)
            if (row + j < at.rows)
                store_4<width>(p + (row + j) * dst.line_step + column * width / 8, w[j], at.columns - column);
    }
}

// Calls fn(column, block, address) for the parameters of a tile that exist.
template <typename F>
__device__ __forceinline__ void each_param(
        const tile_params_t &s, const tile_place_t &at, int block, int bytes, F &&fn) {
    // Long blocks begin in one tile of several, and belong to all of them.
    const int blocks = (at.rows + block - 1) / block;
    const int64_t first = at.k / block;
    uint8_t *p = s.data + at.matrix * s.batch_step;
    for (int i = threadIdx.x; i < blocks * tile_n; i += threads) {
        // Neighbouring threads take neighbouring bytes.
        const bool along_k = s.n_step != bytes;
        const int column = along_k ? i / blocks : i % tile_n, b = along_k ? i % blocks : i / tile_n;
        if (column >= at.columns) continue;
        const int64_t n = at.n + column, kb = first + b;
        fn(column, b,
                p + (s.swizzle_cols ? swizzle_128x4::offset(n, kb, s.swizzle_cols) : n * s.n_step + kb * s.k_step));
    }
}

__device__ inline uint32_t load_param(const uint8_t *p, int bytes) {
    return bytes == 1   ? *p
           : bytes == 2 ? *reinterpret_cast<const uint16_t *>(p)
                        : *reinterpret_cast<const uint32_t *>(p);
}
__device__ inline void store_param(uint8_t *p, int bytes, uint32_t v) {
    if (bytes == 1)
        *p = uint8_t(v);
    else if (bytes == 2)
        *reinterpret_cast<uint16_t *>(p) = uint16_t(v);
    else
        *reinterpret_cast<uint32_t *>(p) = v;
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
