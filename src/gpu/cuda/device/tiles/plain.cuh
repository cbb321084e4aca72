// SPDX-License-Identifier: Apache-2.0
// Plain codes, scales and zero points to and from a tile.
#pragma once

#include <type_traits>

#include "common/formats/swizzle_128x4.hpp"
#include "gpu/cuda/device/tiles/code_tile.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// In place: word i gets the i-th codes of all words.
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

// Lines along k: eight threads have the 128 bytes of a column, and each 16 of every 16th column.
constexpr int line_parts = 8, lines_at_once = threads / line_parts;
// Lines along n: a thread transposes squares of `side` columns and as many rows.
template <int width>
struct squares_t {
    static constexpr int side = 32 / width, across = tile_n / side, down = threads / across;
    static constexpr int rows = down * side, passes = tile_rows(width) / rows;
};

// The codes of a thread on a plain side, on their way to the tile. If fetch() comes before other loads and
// put() after them, all loads wait for memory together. `bits` of a code are kept; other bits of its byte are
// dropped.
template <int bits, int width>
class plain_codes_t {
    static constexpr int columns_at_once = tile_n / lines_at_once;
    using s = squares_t<width>;
    static_assert(columns_at_once * 4 == s::passes * s::side);
    uint32_t w_[columns_at_once * 4];

    __device__ static int square_column() { return threadIdx.x % s::across * s::side; }
    __device__ static int square_row(int pass) { return pass * s::rows + threadIdx.x / s::across * s::side; }

public:
    __device__ __forceinline__ void fetch(const tile_side_t &src, const tile_place_t &at) {
        const uint8_t *p = src.data + at.matrix * src.batch_step;
        const bool whole = at.whole && src.aligned;
        if (src.lines_along_k) {
            const int part = threadIdx.x % line_parts, first = threadIdx.x / line_parts;
            const int bytes = (at.rows * width + 7) / 8 - part * 16;
            p += (at.n + first) * src.line_step + at.k * width / 8 + part * 16;
            const int64_t step = lines_at_once * src.line_step;
#pragma unroll
            for (int i = 0; i < columns_at_once; i++) {
                const uint4 v =
                        whole ? *reinterpret_cast<const uint4 *>(p + i * step)
                              : load_some(p + i * step, first + i * lines_at_once < at.columns ? bytes : 0);
                w_[4 * i] = v.x, w_[4 * i + 1] = v.y, w_[4 * i + 2] = v.z, w_[4 * i + 3] = v.w;
            }
            return;
        }
        const int column = square_column(), columns = at.columns - column;
        const int bytes = columns < s::side ? (columns * width + 7) / 8 : 4;
        p += at.k * src.line_step + (at.n + column) * width / 8;
#pragma unroll
        for (int i = 0; i < s::passes * s::side; i++) {
            const int row = square_row(i / s::side) + i % s::side;
            if (whole) {
                w_[i] = *reinterpret_cast<const uint32_t *>(p + row * src.line_step);
                continue;
            }
            const bool some = row < at.rows && columns > 0;
            w_[i] = load_some(p + row * src.line_step, some ? bytes : 0).x;
            if (some && columns < s::side) w_[i] &= (1u << columns * width) - 1;
        }
    }

    __device__ __forceinline__ void put(codes_t<width> &t, const tile_side_t &src, const tile_place_t &at) {
        if (bits == 6)
            for (uint32_t &w : w_) w &= 0x3f3f3f3fu;
        if (src.lines_along_k) {
            const int part = threadIdx.x % line_parts, first = threadIdx.x / line_parts;
#pragma unroll
            for (int i = 0; i < columns_at_once; i++)
                t.template at<uint4>(first + i * lines_at_once, part * 128 / width) =
                        make_uint4(w_[4 * i], w_[4 * i + 1], w_[4 * i + 2], w_[4 * i + 3]);
            // Codes that share a byte with the last row do not belong to this tensor.
            if (width == 4 && at.rows % 2) {
                __syncthreads();
                if (threadIdx.x < tile_n) t.template at<uint8_t>(threadIdx.x, at.rows - 1) &= 15;
            }
            return;
        }
#pragma unroll
        for (int pass = 0; pass < s::passes; pass++) {
            uint32_t w[s::side];
#pragma unroll
            for (int j = 0; j < s::side; j++) w[j] = w_[pass * s::side + j];
            transpose<width>(w);
#pragma unroll
            for (int j = 0; j < s::side; j++)
                t.template at<uint32_t>(square_column() + j, square_row(pass)) = w[j];
        }
    }
};

template <int width>
__device__ __forceinline__ void store_codes(
        const codes_t<width> &t, const tile_side_t &dst, const tile_place_t &at) {
    uint8_t *p = dst.data + at.matrix * dst.batch_step;
    if (dst.lines_along_k) {
        const int part = threadIdx.x % line_parts, first = threadIdx.x / line_parts;
        p += (at.n + first) * dst.line_step + at.k * width / 8 + part * 16;
        const int64_t step = lines_at_once * dst.line_step;
#pragma unroll
        for (int i = 0; i < tile_n / lines_at_once; i++) {
            const int column = first + i * lines_at_once;
            const uint4 v = t.template at<uint4>(column, part * 128 / width);
            if (at.whole && dst.aligned) {
                *reinterpret_cast<uint4 *>(p + i * step) = v;
            } else if (column < at.columns) {
                const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll 1
                for (int j = 0; j < 4; j++)
                    store_some<width>(
                            p + i * step + 4 * j, w[j], at.rows - part * 128 / width - j * 32 / width);
            }
        }
        return;
    }
    using s = squares_t<width>;
    const int column = threadIdx.x % s::across * s::side;
    p += (at.k + threadIdx.x / s::across * s::side) * dst.line_step + (at.n + column) * width / 8;
#pragma unroll
    for (int pass = 0; pass < s::passes; pass++) {
        const int row = pass * s::rows + threadIdx.x / s::across * s::side;
        uint32_t w[s::side];
#pragma unroll
        for (int j = 0; j < s::side; j++) w[j] = t.template at<uint32_t>(column + j, row);
        transpose<width>(w);
#pragma unroll
        for (int j = 0; j < s::side; j++) {
            uint8_t *q = p + (pass * s::rows + j) * dst.line_step;
            if (at.whole && dst.aligned)
                *reinterpret_cast<uint32_t *>(q) = w[j];
            else if (row + j < at.rows)
                store_some<width>(q, w[j], at.columns - column);
        }
    }
}

// ---- scales and zero points ----

// Four one-byte parameters in one word of memory. The j-th one belongs to `column` + j along n, or to `block`
// + j along k. Packed ones belong to columns eight apart, and then to the next block.
enum class word_kind_t { along_n, along_k, packed };
struct param_word_t {
    uint8_t *p;
    int column, block;
};
template <word_kind_t kind, typename tile_t>
__device__ __forceinline__ void store_word(const tile_t &t, const param_word_t &w) {
    uint32_t v[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        v[j] = kind == word_kind_t::along_n   ? t.scale[w.block][w.column + j]
               : kind == word_kind_t::along_k ? t.scale[w.block + j][w.column]
                                              : t.scale[w.block + j / 2][w.column + j % 2 * 8];
    *reinterpret_cast<uint32_t *>(w.p) =
            __byte_perm(__byte_perm(v[0], v[1], 0x0040), __byte_perm(v[2], v[3], 0x0040), 0x5410);
}
template <word_kind_t kind, typename tile_t>
__device__ __forceinline__ void load_word(tile_t &t, const param_word_t &w) {
    const uint32_t v = *reinterpret_cast<const uint32_t *>(w.p);
#pragma unroll
    for (int j = 0; j < 4; j++)
        (kind == word_kind_t::along_n          ? t.scale[w.block][w.column + j]
                : kind == word_kind_t::along_k ? t.scale[w.block + j][w.column]
                                               : t.scale[w.block + j / 2][w.column + j % 2 * 8]) =
                v >> 8 * j & 0xff;
}

// Blocks of a column in a tile. Long blocks begin in one tile and belong to several.
template <int width>
__device__ __forceinline__ int blocks_shift_of(int block_shift) {
    const int shift = __ffs(tile_rows(width)) - 1 - block_shift;
    return shift < 0 ? 0 : shift;
}

// Calls fn.template operator()<kind>(word) for all scales of a whole tile of a plain side. False if they are
// not in words.
template <int width, typename F>
__device__ __forceinline__ bool each_plain_word(
        const tile_params_t &s, const tile_place_t &at, int block_shift, int bytes, F &&fn) {
    const int blocks_shift = blocks_shift_of<width>(block_shift), words = tile_n / 4 << blocks_shift;
    uint8_t *p = s.data + at.matrix * s.batch_step;
    const int64_t first = at.k >> block_shift;
    if (!at.whole || bytes != 1 || blocks_shift < 2 || reinterpret_cast<uintptr_t>(p) % 4) return false;
    if (s.swizzle_cols || (s.k_step == 1 && s.n_step % 4 == 0)) {
        for (int i = threadIdx.x; i < words; i += threads) {
            const int column = i >> (blocks_shift - 2), b = (i & ((1 << (blocks_shift - 2)) - 1)) * 4;
            const int64_t offset = s.swizzle_cols
                                           ? swizzle_128x4::offset(at.n + column, first + b, s.swizzle_cols)
                                           : (at.n + column) * s.n_step + first + b;
            fn(std::integral_constant<word_kind_t, word_kind_t::along_k>(),
                    param_word_t{p + offset, column, b});
        }
        return true;
    }
    if (s.n_step != 1 || s.k_step % 4) return false;
    p += at.n + first * s.k_step;
    for (int i = threadIdx.x; i < words; i += threads) {
        const int column = i % (tile_n / 4) * 4, b = i / (tile_n / 4);
        fn(std::integral_constant<word_kind_t, word_kind_t::along_n>(),
                param_word_t{p + b * s.k_step + column, column, b});
    }
    return true;
}

// Calls fn(column, block of the tile, address) for the parameters of a tile that exist.
template <int width, typename F>
__device__ __forceinline__ void each_param(
        const tile_params_t &s, const tile_place_t &at, int block_shift, int bytes, F &&fn) {
    const int blocks_shift = blocks_shift_of<width>(block_shift);
    const bool along_k = s.n_step != bytes; // neighbouring threads take neighbouring bytes
    uint8_t *p = s.data + at.matrix * s.batch_step;
    const int64_t first = at.k >> block_shift;
    if (!s.swizzle_cols) p += at.n * s.n_step + first * s.k_step;
    for (int i = threadIdx.x; i < tile_n << blocks_shift; i += threads) {
        const int column = along_k ? i >> blocks_shift : i % tile_n;
        const int b = along_k ? i & ((1 << blocks_shift) - 1) : i / tile_n;
        if (!at.whole && (column >= at.columns || b << block_shift >= at.rows)) continue;
        fn(column, b,
                s.swizzle_cols ? p + swizzle_128x4::offset(at.n + column, first + b, s.swizzle_cols)
                               : p + column * s.n_step + b * s.k_step);
    }
}

__device__ __forceinline__ uint32_t load_param(const uint8_t *p, int bytes) {
    return bytes == 1   ? *p
           : bytes == 2 ? *reinterpret_cast<const uint16_t *>(p)
                        : *reinterpret_cast<const uint32_t *>(p);
}
__device__ __forceinline__ void store_param(uint8_t *p, int bytes, uint32_t v) {
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
