// SPDX-License-Identifier: Apache-2.0
// A whole tile to and from one side of a reorder: codes, scales, zero points and the global scale.
#pragma once

#include "gpu/cuda/device/tiles/packed.cuh"
#include "gpu/cuda/device/tiles/plain.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

__device__ inline float *global_of(const tile_side_t &s, int64_t matrix) {
    if (s.packed) return reinterpret_cast<float *>(s.data + matrix * s.batch_step);
    return s.global + matrix * s.global_step;
}

// The first tile of a matrix writes the data that belongs to the whole matrix.
__device__ __forceinline__ void store_global(const tile_side_t &dst, const tile_place_t &at, float global) {
    if (at.k != 0 || at.n != 0) return;
    if (dst.packed && threadIdx.x < n64_frame_t::prefix_bytes / 4)
        global_of(dst, at.matrix)[threadIdx.x] = threadIdx.x ? 0.f : global;
    if (!dst.packed && threadIdx.x == 0) *global_of(dst, at.matrix) = global;
}

// A barrier has to precede both.
template <typename tile_t>
__device__ __forceinline__ void store_params(
        const tile_t &t, const tile_args_t &a, const tile_side_t &dst, const tile_place_t &at) {
    constexpr int width = tile_t::width;
    const int zp_bytes = tile_t::zeros ? a.zp_bytes : 0;
    // Only the tile in which a long block begins writes its parameters.
    if (at.k & ((1 << a.block_shift) - 1)) return;
    const auto word = [&](auto kind, const param_word_t &w) { store_word<decltype(kind)::value>(t, w); };
    if (dst.packed) {
        if (!each_packed_word<width>(dst, at, a.block_shift, a.scale_bytes + 2 * zp_bytes, word))
            each_packed_param<width>(dst, at, a.block_shift, a.scale_bytes, zp_bytes,
                    [&](int column, int b, uint8_t *scale, uint8_t *zp) {
                        store_param(scale, a.scale_bytes, t.scale[b][column]);
                        if (zp_bytes) store_param(zp, zp_bytes, t.zp[b][column]);
                    });
        return;
    }
    if (!each_plain_word<width>(dst.scales, at, a.block_shift, a.scale_bytes, word))
        each_param<width>(dst.scales, at, a.block_shift, a.scale_bytes,
                [&](int column, int b, uint8_t *p) { store_param(p, a.scale_bytes, t.scale[b][column]); });
    if (zp_bytes)
        each_param<width>(dst.zero_points, at, a.block_shift, zp_bytes,
                [&](int column, int b, uint8_t *p) { store_param(p, zp_bytes, t.zp[b][column]); });
}
// bits: 4, 6 or 8 of a code.
template <int bits, typename tile_t>
__device__ __forceinline__ void store_tile(
        const tile_t &t, const tile_args_t &a, const tile_side_t &dst, const tile_place_t &at) {
    if (dst.packed)
        pack_codes<bits, tile_t::width>(t, dst, at);
    else
        store_codes<tile_t::width>(t, dst, at);
    store_params(t, a, dst, at);
}

template <int width>
__device__ __forceinline__ void load_packed_params(
        code_tile_t<width> &t, const tile_args_t &a, const tile_side_t &src, const tile_place_t &at) {
    const auto word = [&](auto kind, const param_word_t &w) { load_word<decltype(kind)::value>(t, w); };
    if (!each_packed_word<width>(src, at, a.block_shift, a.scale_bytes + 2 * a.zp_bytes, word))
        each_packed_param<width>(src, at, a.block_shift, a.scale_bytes, a.zp_bytes,
                [&](int column, int b, uint8_t *scale, uint8_t *zp) {
                    t.scale[b][column] = load_param(scale, a.scale_bytes);
                    if (a.zp_bytes) t.zp[b][column] = load_param(zp, a.zp_bytes);
                });
}
template <int width>
__device__ __forceinline__ void load_plain_params(
        code_tile_t<width> &t, const tile_args_t &a, const tile_side_t &src, const tile_place_t &at) {
    const auto word = [&](auto kind, const param_word_t &w) { load_word<decltype(kind)::value>(t, w); };
    if (!each_plain_word<width>(src.scales, at, a.block_shift, a.scale_bytes, word))
        each_param<width>(src.scales, at, a.block_shift, a.scale_bytes,
                [&](int column, int b, uint8_t *p) { t.scale[b][column] = load_param(p, a.scale_bytes); });
    if (a.zp_bytes)
        each_param<width>(src.zero_points, at, a.block_shift, a.zp_bytes,
                [&](int column, int b, uint8_t *p) { t.zp[b][column] = load_param(p, a.zp_bytes); });
}

// A barrier has to follow.
template <int bits>
__device__ __forceinline__ void load_tile(code_tile_t<bits == 4 ? 4 : 8> &t, const tile_args_t &a,
        const tile_side_t &src, const tile_place_t &at) {
    constexpr int width = bits == 4 ? 4 : 8;
    if (!at.whole) {
        for (int i = threadIdx.x; i < t.max_blocks * tile_n; i += threads) (&t.scale[0][0])[i] = 0;
        for (int i = threadIdx.x; i < t.max_blocks / 2 * tile_n; i += threads) (&t.zp[0][0])[i] = 0;
        __syncthreads();
    }
    if (src.packed) {
        packed_codes_t<bits, width> codes;
        codes.fetch(src, at);
        load_packed_params<width>(t, a, src, at);
        codes.put(t, src, at);
    } else {
        plain_codes_t<bits, width> codes;
        codes.fetch(src, at);
        load_plain_params<width>(t, a, src, at);
        codes.put(t, src, at);
    }
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
