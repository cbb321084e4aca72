// SPDX-License-Identifier: Apache-2.0
// Packed codes, scales and zero points to and from a tile: n64_b4, n64_i4, n64_f4, n64_b6 and n64_b8 by their
// own maps.
//
// A thread's share of a fragment of 16 rows is eight codes: rows 2q, 2q + 1, 2q + 8, 2q + 9 of two columns.
// On their way they are two words, one a column: of codes of four bits two bytes, 2q with 2q + 1 above it and
// 2q + 8 with 2q + 9; of others a byte each, 2q, 2q + 8, 2q + 1, 2q + 9.
#pragma once

#include "common/layouts/layout_list.hpp"
#include "gpu/cuda/device/tiles/plain.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Moves bits of one word to positions in another. All bits with the same distance move together.
struct bit_moves_t {
    uint32_t mask[32] = {}; // bits of the destination, by the number of bits of the rotation to the left

    constexpr void add(int from, int to) { mask[(to - from) & 31] |= 1u << (to & 31); }
};
__device__ __forceinline__ constexpr uint32_t rotate_left(uint32_t x, int n) {
    return n == 0 ? x : x << n | x >> (32 - n);
}

// The bits of x that go to the word, or come from it. F has a constexpr static bit_moves_t `moves`.
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
            return (rotate_left(w, (32 - n) & 31) & rotate_left(mask, (32 - n) & 31))
                   | gather_bits<F, n + 1>(w);
    }
}

// Words of a thread's 16 bytes (and, for n64_b6, 8 more) in terms of the layout's map of registers of a
// fragment. n64_b4: from four codes of each half, those of registers 0 to 3, as n64_i4 has them.
constexpr bit_moves_t b4_moves() {
    bit_moves_t m;
    for (int half = 0; half < 2; half++)
        for (int reg = 0; reg < 4; reg++)
            for (int b = 0; b < 4; b++) m.add(16 * half + 4 * reg + b, n64_b4_bit(reg, b) + 16 * half);
    return m;
}
struct b4_word_t {
    static constexpr bit_moves_t moves = b4_moves();
};
// The same for n64_f4, whose thread has rows 4 q + half in registers 0 and 1, two rows further in 2 and 3.
constexpr bit_moves_t f4_moves() {
    bit_moves_t m;
    for (int half = 0; half < 2; half++)
        for (int reg = 0; reg < 4; reg++)
            for (int b = 0; b < 4; b++)
                m.add(16 * half + 4 * reg + b, n64_f4_bit(reg % 2 * 4 + reg / 2 * 2 + half, b));
    return m;
}
struct f4_word_t {
    static constexpr bit_moves_t moves = f4_moves();
};
// The low bits of a column's word.
constexpr bit_moves_t b6_low_moves(int column) {
    bit_moves_t m;
    for (int half = 0; half < 2; half++)
        for (int rows = 0; rows < 2; rows++)
            for (int b = 0; b < 4; b++)
                m.add(16 * half + 8 * rows + b, n64_b6_low_bit(column + 2 * rows, b) + 16 * half);
    return m;
}
template <int column>
struct b6_low_t {
    static constexpr bit_moves_t moves = b6_low_moves(column);
};
// From the top two bits of the registers of two fragments, in each half side by side.
constexpr bit_moves_t b6_top_moves() {
    bit_moves_t m;
    for (int half = 0; half < 2; half++)
        for (int step = 0; step < 2; step++)
            for (int reg = 0; reg < 4; reg++)
                for (int b = 4; b < 6; b++)
                    m.add(16 * half + 2 * (4 * step + reg) + b - 4, n64_b6_top_bit(step, reg, b) + 16 * half);
    return m;
}
struct b6_top_t {
    static constexpr bit_moves_t moves = b6_top_moves();
};

// Exchanges low and high nibbles of bytes between two words: (low of a, low of b), (high of a, high of b);
// and back.
__device__ __forceinline__ void exchange_nibbles(uint32_t &a, uint32_t &b) {
    const uint32_t low = (a & 0x0f0f0f0fu) | (b << 4 & 0xf0f0f0f0u);
    b = (a >> 4 & 0x0f0f0f0fu) | (b & 0xf0f0f0f0u);
    a = low;
}
// The top two bits of a fragment's codes, those of registers r and r + 1 in one byte.
__device__ __forceinline__ uint32_t top_bits(uint32_t a, uint32_t b) {
    return (a >> 4 & 0x03030303u) | (b >> 2 & 0x0c0c0c0cu);
}
// n64_b6's word of them, of two fragments.
__device__ __forceinline__ uint32_t join_tops(uint32_t x, uint32_t y) {
    return scatter_bits<b6_top_t>(__byte_perm(x, y, 0x6240) | __byte_perm(x, y, 0x7351) << 4);
}

struct lane_place_t {
    int column, q; // the other column is eight further
};
__device__ __forceinline__ lane_place_t lane_place() {
    const int lane = threadIdx.x % 32;
    return {int(threadIdx.x / 32 * 16 + lane / 4), lane % 4};
}

// The two columns' words of 16 rows from a tile. neighbours: of four neighbouring rows, as in n64_f4.
template <int width>
__device__ __forceinline__ uint32_t fragment_word(
        const codes_t<width> &t, int column, int row, int q, [[maybe_unused]] bool neighbours = false) {
    if constexpr (width == 4) {
        const uint2 v = t.template at<uint2>(column, row);
        return __byte_perm(v.x, v.y, neighbours ? 0x1010 + q * 0x2222 : 0x4040 + q * 0x1111);
    } else {
        const uint32_t lo = t.template at<uint16_t>(column, row + 2 * q);
        const uint32_t hi = t.template at<uint16_t>(column, row + 2 * q + 8);
        return __byte_perm(lo, hi, 0x5140);
    }
}
// And back.
template <int width>
__device__ __forceinline__ void put_fragment_word(
        codes_t<width> &t, int column, int row, int q, uint32_t w, [[maybe_unused]] bool neighbours = false) {
    if constexpr (width == 4) {
        t.template at<uint8_t>(column, row + (neighbours ? 4 : 2) * q) = uint8_t(w);
        t.template at<uint8_t>(column, row + (neighbours ? 4 * q + 2 : 2 * q + 8)) = uint8_t(w >> 8);
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
// First byte of the step that begins at a row of a CTA's tile.
template <typename step_t>
__device__ __forceinline__ uint8_t *packed_step(const tile_side_t &s, const tile_place_t &at, int row) {
    const int of_tile = int(at.k) & ((1 << s.tile_shift) - 1), k = of_tile + row;
    return packed_tile(s, at, at.k) + (k >> s.tile_shift) * s.tile_bytes + s.header_bytes
           + (k & ((1 << s.tile_shift) - 1)) / step_t::rows * step_t::bytes;
}

// The 16 bytes of each of 128 threads: the words of a step's fragments in the order of the layout, and back.
// `top` is the second plane of n64_b6.
template <int bits>
struct step_t {
    static constexpr int rows = bits == 8 ? 32 : 64, bytes = tile_n * rows * bits / 8, fragments = rows / 16;

    uint4 v;
    uint2 top;

    // a and b: the two columns of a thread.
    __device__ __forceinline__ void pack(
            const uint32_t *a, const uint32_t *b, [[maybe_unused]] nibbles_t nibbles = nibbles_t::b4) {
        uint32_t w[4];
        if constexpr (bits == 4) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t low = a[i], high = b[i];
                exchange_nibbles(low, high);
                w[i] = __byte_perm(low, high, 0x5410);
            }
            if (nibbles == nibbles_t::i4)
                v = make_uint4(w[0], w[1], w[2], w[3]);
            else if (nibbles == nibbles_t::f4)
                v = make_uint4(scatter_bits<f4_word_t>(w[0]), scatter_bits<f4_word_t>(w[1]),
                        scatter_bits<f4_word_t>(w[2]), scatter_bits<f4_word_t>(w[3]));
            else
                pack_registers(w);
        } else {
#pragma unroll
            for (int i = 0; i < fragments; i++) {
                if constexpr (bits == 6) {
                    w[i] = scatter_bits<b6_low_t<0>>(a[i]) | scatter_bits<b6_low_t<1>>(b[i]);
                } else {
                    w[2 * i] = __byte_perm(a[i], b[i], 0x6240);
                    w[2 * i + 1] = __byte_perm(a[i], b[i], 0x7351);
                }
            }
            v = make_uint4(w[0], w[1], w[2], w[3]);
            if constexpr (bits == 6) top = make_uint2(pack_tops(a, b), pack_tops(a + 2, b + 2));
        }
    }
    __device__ __forceinline__ void unpack(
            uint32_t *a, uint32_t *b, [[maybe_unused]] nibbles_t nibbles = nibbles_t::b4) const {
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < fragments; i++) {
            if constexpr (bits == 4) {
                a[i] = nibbles == nibbles_t::i4   ? w[i]
                       : nibbles == nibbles_t::f4 ? gather_bits<f4_word_t>(w[i])
                                                  : gather_bits<b4_word_t>(w[i]);
                b[i] = a[i] >> 16;
                exchange_nibbles(a[i], b[i]);
            } else if constexpr (bits == 6) {
                a[i] = gather_bits<b6_low_t<0>>(w[i]), b[i] = gather_bits<b6_low_t<1>>(w[i]);
            } else {
                a[i] = __byte_perm(w[2 * i], w[2 * i + 1], 0x6240);
                b[i] = __byte_perm(w[2 * i], w[2 * i + 1], 0x7351);
            }
        }
        if constexpr (bits == 6) unpack_tops(a, b, top.x), unpack_tops(a + 2, b + 2, top.y);
    }
    // n64_b4, as b4_word_t has them.
    __device__ __forceinline__ void pack_registers(const uint32_t (&w)[4]) {
        v = make_uint4(scatter_bits<b4_word_t>(w[0]), scatter_bits<b4_word_t>(w[1]),
                scatter_bits<b4_word_t>(w[2]), scatter_bits<b4_word_t>(w[3]));
    }
    __device__ __forceinline__ void unpack_registers(uint32_t (&w)[4]) const {
        w[0] = gather_bits<b4_word_t>(v.x), w[1] = gather_bits<b4_word_t>(v.y);
        w[2] = gather_bits<b4_word_t>(v.z), w[3] = gather_bits<b4_word_t>(v.w);
    }
    // n64_b6, of two fragments.
    __device__ static __forceinline__ uint32_t pack_tops(const uint32_t *a, const uint32_t *b) {
        return join_tops(top_bits(a[0], b[0]), top_bits(a[1], b[1]));
    }
    __device__ static __forceinline__ void unpack_tops(uint32_t *a, uint32_t *b, uint32_t w) {
        const uint32_t both = gather_bits<b6_top_t>(w), low = both & 0x0f0f0f0fu,
                       high = both >> 4 & 0x0f0f0f0fu;
        const uint32_t x = __byte_perm(low, high, 0x6240), y = __byte_perm(low, high, 0x7351);
        a[0] |= (x & 0x03030303u) << 4, a[1] |= (y & 0x03030303u) << 4;
        b[0] |= (x & 0x0c0c0c0cu) << 2, b[1] |= (y & 0x0c0c0c0cu) << 2;
    }
    // p: first byte of the step.
    __device__ __forceinline__ void store(uint8_t *p) const {
        reinterpret_cast<uint4 *>(p)[threadIdx.x] = v;
        if constexpr (bits == 6) reinterpret_cast<uint2 *>(p + threads * 16)[threadIdx.x] = top;
    }
    __device__ __forceinline__ void load(const uint8_t *p) {
        v = reinterpret_cast<const uint4 *>(p)[threadIdx.x];
        if constexpr (bits == 6) top = reinterpret_cast<const uint2 *>(p + threads * 16)[threadIdx.x];
    }
};

template <int bits, int width>
__device__ __forceinline__ void pack_codes(
        const codes_t<width> &t, const tile_side_t &dst, const tile_place_t &at) {
    using s = step_t<bits>;
    const lane_place_t l = lane_place();
    const bool neighbours = bits == 4 && dst.nibbles == nibbles_t::f4;
#pragma unroll
    for (int row = 0; row < tile_rows(width); row += s::rows) {
        if (row >= at.rows) break;
        uint32_t a[s::fragments], b[s::fragments];
#pragma unroll
        for (int i = 0; i < s::fragments; i++) {
            a[i] = fragment_word<width>(t, l.column, row + 16 * i, l.q, neighbours);
            b[i] = fragment_word<width>(t, l.column + 8, row + 16 * i, l.q, neighbours);
        }
        s step;
        step.pack(a, b, dst.nibbles);
        step.store(packed_step<s>(dst, at, row));
    }
}

// The codes of a thread on a packed side, as plain_codes_t.
template <int bits, int width>
class packed_codes_t {
    using s = step_t<bits>;
    static constexpr int steps = tile_rows(width) / s::rows;
    s step_[steps];

public:
    __device__ __forceinline__ void fetch(const tile_side_t &src, const tile_place_t &at) {
#pragma unroll
        for (int i = 0; i < steps; i++) {
            step_[i] = {};
            if (i * s::rows < at.rows) step_[i].load(packed_step<s>(src, at, i * s::rows));
        }
    }

    __device__ __forceinline__ void put(codes_t<width> &t, const tile_side_t &src, const tile_place_t &) {
        const lane_place_t l = lane_place();
        const bool neighbours = bits == 4 && src.nibbles == nibbles_t::f4;
#pragma unroll
        for (int step = 0; step < steps; step++) {
            uint32_t a[s::fragments], b[s::fragments];
            step_[step].unpack(a, b, src.nibbles);
#pragma unroll
            for (int i = 0; i < s::fragments; i++) {
                put_fragment_word<width>(t, l.column, step * s::rows + 16 * i, l.q, a[i], neighbours);
                put_fragment_word<width>(t, l.column + 8, step * s::rows + 16 * i, l.q, b[i], neighbours);
            }
        }
    }
};

// Calls fn(kind, word) for all scales of a whole tile. False if they are not in words.
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

// Calls fn(column, block of the CTA's tile, address of the scale, address of the zero point) for all
// parameters of a packed tile, also padding.
template <int width, typename F>
__device__ __forceinline__ void each_packed_param(const tile_side_t &s, const tile_place_t &at,
        int block_shift, int scale_bytes, int zp_bytes, F &&fn) {
    const int blocks_shift = s.tile_shift - block_shift; // of an n64 tile
    // It has all rows even if K ends earlier. Long blocks begin in the tile of one CTA and belong to several.
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
