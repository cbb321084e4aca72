// SPDX-License-Identifier: Apache-2.0
// Which panels of packed int4 weights f16 holds, as their scales and zeros tell.
#pragma once

#include "gpu/cuda/device/tiles/dequantise.cuh"
#include "gpu/cuda/device/tiles/packed.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// This many CTAs search the scales of a panel. Each has one byte of the panel's word of a.left.
constexpr int range_parts = sizeof(*tile_args_t::left);

// Whether every weight of a block, as f16, is off by at most 2^-11 of itself, and is finite if it is so in
// f32. For NaN every comparison is false.
template <typename element_t>
__device__ __forceinline__ bool fits_f16(const tile_args_t &a, const block_values_t &v) {
    constexpr float f16_max = 65504.f, codes = element_t::is_signed ? 8.f : 15.f;
    const bool zeros = is_added(a.zp);
    const float scale = fabsf(v.factor), zero = zeros ? fabsf(v.offset) : 0.f,
                most = !zeros                               ? fmaxf(codes, v.offset)
                       : a.zp == zero_point_kind_t::minimum ? codes
                                                            : float(int4_mid);
    return most * scale + zero <= f16_max && (scale >= a.least_scale || scale == 0.f)
           && (zero >= a.least_zero || zero == 0.f);
}

template <typename element_t>
__device__ __forceinline__ void note_range(const tile_args_t &a, const tile_place_t &at, int part) {
    // Those of a tile exist also at the end of K.
    const int params_shift = 6 + a.src.tile_shift - a.block_shift, params = 1 << params_shift;
    static_assert(tile_n == 1 << 6, "of a block");
    const int64_t tiles = ((a.K - 1) >> a.src.tile_shift) + 1;
    const uint8_t *panel = packed_tile(a.src, at, 0);
    bool fits = true;
#pragma unroll 4
    for (int64_t i = part * threads + int(threadIdx.x); i < tiles << params_shift;
            i += range_parts * threads) {
        const uint8_t *tile = panel + (i >> params_shift) * a.src.tile_bytes;
        const int place = int(i) & (params - 1);
        const uint32_t scale = load_param(tile + place * a.scale_bytes, a.scale_bytes),
                       zp = a.zp_bytes ? load_param(
                                    tile + params * a.scale_bytes + place * a.zp_bytes, a.zp_bytes)
                                       : 0;
        fits &= fits_f16<element_t>(a, block_values(a, scale, zp, 1.f));
    }
    fits = __syncthreads_and(fits);
    if (threadIdx.x == 0) reinterpret_cast<uint8_t *>(a.left + at.n / tile_n)[part] = !fits;
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
