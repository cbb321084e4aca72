// SPDX-License-Identifier: Apache-2.0
// A tile in shared memory as packed bytes have it: filled by lanes that have two neighbouring columns, and
// copied as it is. Blocks are of 16 or 32 rows, and scales of a byte.
#pragma once

#include "gpu/cuda/device/tiles/packed.cuh"
#include "gpu/cuda/device/tiles/quantise.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// The 16 bytes of thread t in a step are at position t ^ t / 8 % 4, so that those of threads 4 apart are in
// different banks.
__device__ __forceinline__ int place_in_step(int thread) { return thread ^ (thread >> 3 & 3); }

template <int bits, int block>
struct packed_image_t {
    using step = step_t<bits>;
    static constexpr int rows = tile_rows(bits == 4 ? 4 : 8), tiles = rows / int(n64_frame_t::min_tile_rows);
    static constexpr int blocks = int(n64_frame_t::min_tile_rows) / block, header = blocks * tile_n;
    static constexpr int steps = int(n64_frame_t::min_tile_rows) / step::rows;
    static constexpr int tile_bytes = header + steps * step::bytes;

    alignas(16) uint8_t bytes[tiles * tile_bytes];

    __device__ uint8_t *step_of(int row) {
        return bytes + row / 64 * tile_bytes + header + row % 64 / step::rows * step::bytes;
    }

    // A barrier has to precede it.
    __device__ __forceinline__ void store(const tile_side_t &dst, const tile_place_t &at) {
        uint8_t *to = packed_tile(dst, at, at.k);
#pragma unroll
        for (int tile = 0; tile < tiles; tile++) {
            if (tile * 64 >= at.rows) break;
            uint8_t *p = to + tile * tile_bytes;
            if (threadIdx.x < header / 16)
                reinterpret_cast<uint4 *>(p)[threadIdx.x] =
                        reinterpret_cast<const uint4 *>(bytes + tile * tile_bytes)[threadIdx.x];
#pragma unroll
            for (int s = 0; s < steps; s++) {
                const int row = tile * 64 + s * step::rows;
                if (row >= at.rows) break;
                const uint8_t *from = step_of(row);
                step v;
                v.v = reinterpret_cast<const uint4 *>(from)[place_in_step(threadIdx.x)];
                if constexpr (bits == 6)
                    v.top = reinterpret_cast<const uint2 *>(from + threads * 16)[threadIdx.x];
                v.store(p + header + s * step::bytes);
            }
        }
    }
};

// A lane has columns 2j and 2j + 1 of 16. Lanes 4 apart exchange one, so that each has a pair with distance
// eight.
template <int bits, int block>
struct image_sink_t {
    using image_t = packed_image_t<bits, block>;
    image_t &image;

    template <typename element_t>
    __device__ __forceinline__ void put(int column, int row, const code_group_t<element_t> (&g)[2][2]) const {
        constexpr int words = code_group_t<element_t>::words;
        const bool upper = column & 8;
        uint32_t lo[2 * words], hi[2 * words];
#pragma unroll
        for (int i = 0; i < 2 * words; i++) {
            const uint32_t a = g[i / words][0].w[i % words], b = g[i / words][1].w[i % words];
            const uint32_t got = __shfl_xor_sync(~0u, upper ? a : b, 4);
            lo[i] = upper ? got : a, hi[i] = upper ? b : got;
        }
        // The thread that has rows 2q and so on of that pair.
        const int first = column / 16 * 32 + (column & 6) * 4 + (upper ? 4 : 0);
        const int fragment = row % image_t::step::rows / 16;
        uint8_t *p = image.step_of(row);
        uint32_t r[4]; // n64_b4: of each q
        if constexpr (bits == 4) {
            for (int i = 0; i < 2; i++) exchange_nibbles(lo[i], hi[i]);
            r[0] = lo[0], r[1] = lo[1], r[2] = hi[0], r[3] = hi[1];
            transpose<8>(r);
        }
#pragma unroll
        for (int q = 0; q < 4; q++) {
            uint8_t *to = p + place_in_step(first + q) * 16;
            const uint32_t selector = q % 2 ? 0x7362 : 0x5140; // of rows 2q and 2q + 1 in a word
            if constexpr (bits == 4) {
                reinterpret_cast<uint32_t *>(to)[fragment] = scatter_bits<b4_word_t>(r[q]);
            } else if constexpr (bits == 8) {
                reinterpret_cast<uint2 *>(to)[fragment] =
                        make_uint2(__byte_perm(lo[q / 2], hi[q / 2], selector),
                                __byte_perm(lo[2 + q / 2], hi[2 + q / 2], selector));
            } else {
                const uint32_t a = __byte_perm(lo[q / 2], lo[2 + q / 2], selector),
                               b = __byte_perm(hi[q / 2], hi[2 + q / 2], selector);
                reinterpret_cast<uint32_t *>(to)[fragment] =
                        scatter_bits<b6_low_t<0>>(a) | scatter_bits<b6_low_t<1>>(b);
                uint32_t &top =
                        reinterpret_cast<uint32_t *>(p + threads * 16 + (first + q) * 8)[fragment / 2];
                const uint32_t both = top_bits(a, b);
                if (fragment % 2 == 0)
                    top = join_tops(both, 0);
                else
                    top |= join_tops(0, both);
            }
        }
    }
    __device__ __forceinline__ void put_scale(int column, int b, uint32_t scale) const {
        const int pair = column / 16 * 8 + column % 8;
        image.bytes[b / image_t::blocks * image_t::tile_bytes
                    + (pair * image_t::blocks + b % image_t::blocks) * 2 + column / 8 % 2] = uint8_t(scale);
    }
};

// Values whose lines run along n to packed bytes.
template <typename format_t, typename words_t, int bits, int block>
__device__ __forceinline__ void quantise_to_image(packed_image_t<bits, block> &image, const tile_args_t &a,
        const side_source_t &s, const tile_place_t &at, float global) {
    using quantiser_t = typename best_quantiser_t<format_t, words_t>::type;
    quantise_along_n<quantiser_t, words_t, packed_image_t<bits, block>::rows>(
            s, image_sink_t<bits, block>{image}, at, quantiser_t(a.rounding, global));
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
