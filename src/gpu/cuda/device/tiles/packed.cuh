// SPDX-License-Identifier: Apache-2.0
// Packed codes, scales and zero points to and from a tile: n64_b4, n64_b6 and n64_b8 by their own maps.
//
// A thread's share of a fragment of 16 rows is eight codes: rows 2q, 2q + 1, 2q + 8, 2q + 9 of two columns.
// On their way they are two words, one a column, a byte for each code: 2q, 2q + 8, 2q + 1, 2q + 9.
#pragma once

#include "common/layouts/layout_list.hpp"
#include "gpu/cuda/device/tiles/plain.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Moves bits of one word to places in another, all those that move as far at once.
struct bit_moves_t {
    uint32_t mask[32] = {}; // of the destination, by how far bits are rotated to the left

    // `to` says where bit b of the code of a fragment's register goes, -1: to another word.
    template <typename F>
    static constexpr bit_moves_t make(int column, int bits, F &&to) {
        bit_moves_t m;
        for (int half = 0; half < 2; half++)
            for (int rows = 0; rows < 2; rows++)
                for (int b = 0; b < bits; b++) {
                    const int from = 16 * half + 8 * rows + b, dest = to(column + 2 * rows, half, b);
                    if (dest >= 0) m.mask[(dest - from) & 31] |= 1u << dest;
                }
        return m;
    }
};
__device__ __forceinline__ constexpr uint32_t rotate_left(uint32_t x, int n) {
    return n == 0 ? x : x << n | x >> (32 - n);
}

// The bits of x that go to the word / come from it; F has a constexpr static bit_moves_t `moves`.
template <typename F, int n = 0>
__device__ __forceinline__ uint32_t scatter_bits(uint32_t x) {
    if constexpr (n == 32) {
        return 0;
    } else {
        constexpr uint32_t mask = F::moves.mask[n];
        if constexpr (mask == 0)
            return scatter_bits<F, n + 1>(x);
        else
            return (rotate_left(x, n) & mask) | scatter_bits<F, n + 1>(x);
    }
}
template <typename F, int n = 0>
__device__ __forceinline__ uint32_t gather_bits(uint32_t w) {
    if constexpr (n == 32) {
        return 0;
    } else {
        constexpr uint32_t mask = F::moves.mask[n];
        if constexpr (mask == 0)
            return gather_bits<F, n + 1>(w);
        else
            return rotate_left(w & mask, (32 - n) & 31) | gather_bits<F, n + 1>(w);
    }
}

// Words of a thread's 16 bytes (and, n64_b6, 8 more) in terms of the layout's map of a fragment's registers.
template <int column>
struct b4_word_t {
    static constexpr bit_moves_t moves = bit_moves_t::make(
            column, 4,
            [](int reg, int half, int b) constexpr { return (n64_b4_bit(reg, b) + 16 * half) & 31; });
};
template <int column>
struct b6_low_t {
    static constexpr bit_moves_t moves = bit_moves_t::make(
            column, 6, [](int reg, int half, int b) constexpr {
                return b < 4 ? n64_b6_low_bit(reg, b) + 16 * half : -1;
            });
};
template <int column, int step>
struct b6_top_t {
    static constexpr bit_moves_t moves = bit_moves_t::make(
            column, 6, [](int reg, int half, int b) constexpr {
                return b < 4 ? -1 : (n64_b6_top_bit(step, reg, b) + 16 * half) & 31;
            });
};

struct lane_place_t {
    int column, q; // the other column is eight further
};
__device__ __forceinline__ lane_place_t lane_place() {
    const int lane = threadIdx.x % 32;
    return {int(threadIdx.x / 32 * 16 + lane / 4), lane % 4};
}

// The two columns' words of 16 rows from a tile.
template <int width>
__device__ __forceinline__ uint32_t fragment_word(const code_tile_t<width> &t, int column, int row, int q) {
    if constexpr (width == 4) {
        const uint2 v = t.template at<uint2>(column, row);
        const uint32_t both =
                __byte_perm(v.x, v.y, 0x4040 + q * 0x1111);  // 2q | 2q + 1, 2q + 8 | 2q + 9, again
        return (both & 0xffffu) | (both >> 4 & 0xffff0000u); // above a code is rubbish
    } else {
        const uint32_t lo = t.template at<uint16_t>(column, row + 2 * q);
        const uint32_t hi = t.template at<uint16_t>(column, row + 2 * q + 8);
        return __byte_perm(lo, hi, 0x5140);
    }
}
// And back; above codes of 4 bits there are zeros.
template <int width>
__device__ __forceinline__ void put_fragment_word(
        code_tile_t<width> &t, int column, int row, int q, uint32_t w) {
    if constexpr (width == 4) {
        const uint32_t both = w | w >> 12;
        t.template at<uint8_t>(column, row + 2 * q) = uint8_t(both);
        t.template at<uint8_t>(column, row + 2 * q + 8) = uint8_t(both >> 8);
    } else {
        t.template at<uint16_t>(column, row + 2 * q) = uint16_t(__byte_perm(w, 0, 0x4420));
        t.template at<uint16_t>(column, row + 2 * q + 8) = uint16_t(__byte_perm(w, 0, 0x4431));
    }
}

// First byte of the n64 tile that holds row k of a CTA's tile.
__device__ __forceinline__ uint8_t *packed_tile(const tile_side_t &s, const tile_place_t &at, int64_t k) {
    return s.data + at.matrix * s.batch_step + s.prefix_bytes + at.n / tile_n * s.panel_bytes
           + (k >> s.tile_shift) * s.tile_bytes;
}
// Bytes from there to the codes of the step that holds the row.
template <int step_rows, int step_bytes>
__device__ __forceinline__ int codes_offset(const tile_side_t &s, int64_t k) {
    return s.header_bytes + (int(k) & ((1 << s.tile_shift) - 1)) / step_rows * step_bytes;
}

template <int bits, int width>
__device__ __forceinline__ void pack_codes(
        const code_tile_t<width> &t, const tile_side_t &dst, const tile_place_t &at) {
    constexpr int step_rows = bits == 8 ? 32 : 64, step_bytes = tile_n * step_rows * bits / 8;
    const lane_place_t l = lane_place();
#pragma unroll
    for (int step = 0; step < tile_rows(width) / step_rows; step++) {
        const int row = step * step_rows;
        if (row >= at.rows) break;
        uint8_t *p = packed_tile(dst, at, at.k + row) + codes_offset<step_rows, step_bytes>(dst, at.k + row);
        uint32_t w[4], top[2] = {};
#pragma unroll
        for (int i = 0; i < step_rows / 16; i++) {
            const uint32_t a = fragment_word<width>(t, l.column, row + 16 * i, l.q);
            const uint32_t b = fragment_word<width>(t, l.column + 8, row + 16 * i, l.q);
            if constexpr (bits == 4) {
                w[i] = scatter_bits<b4_word_t<0>>(a) | scatter_bits<b4_word_t<1>>(b);
            } else if constexpr (bits == 6) {
                w[i] = scatter_bits<b6_low_t<0>>(a) | scatter_bits<b6_low_t<1>>(b);
                top[i / 2] |= i % 2 ? scatter_bits<b6_top_t<0, 1>>(a) | scatter_bits<b6_top_t<1, 1>>(b)
                                    : scatter_bits<b6_top_t<0, 0>>(a) | scatter_bits<b6_top_t<1, 0>>(b);
            } else {
                w[2 * i] = __byte_perm(a, b, 0x6240);
                w[2 * i + 1] = __byte_perm(a, b, 0x7351);
            }
        }
        reinterpret_cast<uint4 *>(p)[threadIdx.x] = make_uint4(w[0], w[1], w[2], w[3]);
        if constexpr (bits == 6)
            reinterpret_cast<uint2 *>(p + threads * 16)[threadIdx.x] = make_uint2(top[0], top[1]);
    }
}

// A thread's codes of a packed side; as plain_codes_t.
template <int bits, int width>
class packed_codes_t {
    static constexpr int step_rows = bits == 8 ? 32 : 64, step_bytes = tile_n * step_rows * bits / 8,
                         steps = tile_rows(width) / step_rows;
    uint4 v_[steps];
    uint2 top_[steps];

public:
    __device__ __forceinline__ void fetch(const tile_side_t &src, const tile_place_t &at) {
#pragma unroll
        for (int step = 0; step < steps; step++) {
            v_[step] = {}, top_[step] = {};
            if (step * step_rows >= at.rows) continue;
            const uint8_t *p = packed_tile(src, at, at.k + step * step_rows)
                               + codes_offset<step_rows, step_bytes>(src, at.k + step * step_rows);
            v_[step] = reinterpret_cast<const uint4 *>(p)[threadIdx.x];
            if constexpr (bits == 6)
                top_[step] = reinterpret_cast<const uint2 *>(p + threads * 16)[threadIdx.x];
        }
    }

    __device__ __forceinline__ void put(code_tile_t<width> &t, const tile_side_t &, const tile_place_t &) {
        const lane_place_t l = lane_place();
#pragma unroll
        for (int step = 0; step < steps; step++) {
            const uint32_t w[4] = {v_[step].x, v_[step].y, v_[step].z, v_[step].w};
#pragma unroll
            for (int i = 0; i < step_rows / 16; i++) {
                uint32_t a, b;
                if constexpr (bits == 4) {
                    a = gather_bits<b4_word_t<0>>(w[i]), b = gather_bits<b4_word_t<1>>(w[i]);
                } else if constexpr (bits == 6) {
                    const uint32_t h = i / 2 ? top_[step].y : top_[step].x;
                    a = gather_bits<b6_low_t<0>>(w[i])
                        | (i % 2 ? gather_bits<b6_top_t<0, 1>>(h) : gather_bits<b6_top_t<0, 0>>(h));
                    b = gather_bits<b6_low_t<1>>(w[i])
                        | (i % 2 ? gather_bits<b6_top_t<1, 1>>(h) : gather_bits<b6_top_t<1, 0>>(h));
                } else {
                    a = __byte_perm(w[2 * i], w[2 * i + 1], 0x6240);
                    b = __byte_perm(w[2 * i], w[2 * i + 1], 0x7351);
                }
                put_fragment_word<width>(t, l.column, step * step_rows + 16 * i, l.q, a);
                put_fragment_word<width>(t, l.column + 8, step * step_rows + 16 * i, l.q, b);
            }
        }
    }
};

// Calls fn(kind, word) for all scales of a whole tile; false where they do not lie in words.
template <int width, typename F>
__device__ __forceinline__ bool each_packed_word(
        const tile_side_t &s, const tile_place_t &at, int block_shift, int scale_bytes, F &&fn) {
    const int blocks_shift = s.tile_shift - block_shift; // of an n64 tile
    if (!at.whole || scale_bytes != 1 || blocks_shift < 1) return false;
    const int words_shift = blocks_shift - 1; // of a pair of columns
    uint8_t *p = packed_tile(s, at, at.k);
    for (int i = threadIdx.x; i < (tile_n / 2 << words_shift) * (tile_rows(width) >> s.tile_shift);
            i += threads) {
        const int tile = i >> (5 + words_shift), pair = i >> words_shift & 31,
                  word = i & ((1 << words_shift) - 1);
        fn(std::integral_constant<word_kind_t, word_kind_t::packed>(),
                param_word_t{p + tile * s.tile_bytes + (pair << words_shift | word) * 4,
                        pair / 8 * 16 + pair % 8, (tile << blocks_shift) + word * 2});
    }
    return true;
}

// Calls fn(column, block of the CTA's tile, address of the scale, of the zero point) for all that a packed
// tile has, padding too.
template <int width, typename F>
__device__ __forceinline__ void each_packed_param(const tile_side_t &s, const tile_place_t &at,
        int block_shift, int scale_bytes, int zp_bytes, F &&fn) {
    const int blocks_shift = s.tile_shift - block_shift; // of an n64 tile
    // Its rows are complete even where K ends; long blocks begin in one CTA's tile of several.
    const int rows = (((at.rows - 1) >> s.tile_shift) + 1) << s.tile_shift;
    const int here = max(min(rows, tile_rows(width)) >> block_shift, 1);
    for (int i = threadIdx.x; i < here * tile_n; i += threads) {
        const int column = i % tile_n, b = i / tile_n;
        const int64_t k = at.k + (b << block_shift);
        uint8_t *p = packed_tile(s, at, k);
        const int pair = column / 16 * 8 + column % 8;
        const int of_tile = (int(k) & ((1 << s.tile_shift) - 1)) >> block_shift;
        const int place = ((pair << blocks_shift) + of_tile) * 2 + column / 8 % 2;
        fn(column, b, p + place * scale_bytes, p + (tile_n << blocks_shift) * scale_bytes + place * zp_bytes);
    }
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
