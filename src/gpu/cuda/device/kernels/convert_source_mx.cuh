// SPDX-License-Identifier: Apache-2.0
// Rows of MXFP8 as bf16 at the speed of memory: a warp takes a piece of a row, a lane eight neighbours of it
// at a time. All that it needs is loaded before the first of them is stored. What comes out is what
// convert_source.cu makes of them.
#pragma once

#include "gpu/cuda/device/kernels/convert_source_row.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct mx_rows_t {
    static constexpr int threads = 256, warps = threads / 32, ctas = 4; // CTAs of a multiprocessor
    static constexpr int unit = 8, block = 32;                          // elements of a lane, and of a scale
    static constexpr int held = 8, step = 32 * unit, piece = held * step; // units of a lane
    static constexpr int64_t most_columns = int64_t(65535) * piece;       // of a grid
    // Whether the kernel can read rows of these types, and at these addresses.
    static bool may_take(const convert_source_args_t &a) {
        return (a.dt == mxdnn_f8_e4m3 || a.dt == mxdnn_f8_e5m2) && a.quant.scale_dt == mxdnn_e8m0
               && a.recipe.kind == recipe_kind_t::none;
    }
    static bool takes(const convert_source_args_t &a) {
        return may_take(a) && a.quant.block == block && !a.codes && !a.wanted && a.terms == 1 && !a.f16
               && a.K % unit == 0 && a.stride <= most_columns && a.col_step == 1 && a.row_step % unit == 0
               && reinterpret_cast<uintptr_t>(a.elements) % unit == 0;
    }
};

// The row of the scales that belongs to row m of the source; -1: none, because the row is in no group. Called
// by a warp.
__device__ __forceinline__ int64_t scale_row_of_warp(const convert_source_args_t &a, int64_t m) {
    if (!a.swizzled_by_group) return m;
    int64_t before = 0; // rows of scales of the groups of earlier rounds
    for (int64_t from = 0; from < a.groups.groups; from += 32) {
        const int lane = threadIdx.x % 32;
        row_group_t of{0, 0, -1};
        unsigned rows = 0;
        if (from + lane < a.groups.groups) {
            of = a.groups.group(from + lane);
            rows = unsigned(a.groups.swizzled_rows(from + lane));
        }
        const uint32_t own = __ballot_sync(~0u, m >= of.first && m < of.first + of.count);
        const int owner = own ? __ffs(int(own)) - 1 : 32;
        before += __reduce_add_sync(~0u, lane < owner ? rows : 0);
        if (own) return before + m - __shfl_sync(~0u, of.first, owner);
    }
    return -1;
}

template <data_type_t dt>
__global__ void __launch_bounds__(mx_rows_t::threads, mx_rows_t::ctas)
        mx_rows(const __grid_constant__ convert_source_args_t a) {
    using k = mx_rows_t;
    constexpr bool e4m3 = dt == mxdnn_f8_e4m3;
    constexpr int emax = e4m3 ? f8_e4m3_t::emax : f8_e5m2_t::emax;
    ptx::let_later_kernels_start();
    ptx::wait_for_earlier_kernels();
    const int lane = threadIdx.x % 32;
    const int64_t r = int64_t(blockIdx.x) * k::warps + threadIdx.x / 32;
    if (r >= a.rows) return;
    const int64_t m = source_row_of(a, r), scales = m < 0 ? -1 : scale_row_of_warp(a, m),
                  K = scales < 0 ? 0 : a.K, first = int64_t(blockIdx.y) * k::piece + lane * k::unit;
    const uint8_t *row = a.elements + m * a.row_step;
    uint2 codes[k::held];
    uint32_t scale[k::held];
#pragma unroll
    for (int i = 0; i < k::held; i++) {
        const int64_t at = first + i * k::step;
        codes[i] = make_uint2(0, 0), scale[i] = 0;
        if (at >= K) continue;
        codes[i] = *reinterpret_cast<const uint2 *>(row + at);
        scale[i] = *scale_at(a, scales, at / k::block);
    }
    uint32_t most = 0;
#pragma unroll 4
    for (int64_t b = lane; b < div_up(K, int64_t(k::block)); b += 32) {
        const uint32_t of_block = *scale_at(a, scales, b);
        if (of_block != e8m0_t::nan_code) most = max(most, of_block);
    }
    const float factor = small_row_factor(__reduce_max_sync(~0u, most), emax);
    if (blockIdx.y == 0 && lane == 0) a.factors[r] = 1.f / factor;
    uint16_t *to = a.out + r * a.stride;
#pragma unroll
    for (int i = 0; i < k::held; i++) {
        const float f = e8m0_t::decode(scale[i]) * factor;
        uint32_t pairs[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const auto pair = __nv_fp8x2_storage_t((j < 2 ? codes[i].x : codes[i].y) >> j % 2 * 16);
            const __half2 v(__nv_cvt_fp8x2_to_halfraw2(pair, e4m3 ? __NV_E4M3 : __NV_E5M2));
            pairs[j] = to_bf16x2(__low2float(v) * f, __high2float(v) * f);
        }
        if (const int64_t at = first + i * k::step; at < a.stride)
            *reinterpret_cast<uint4 *>(to + at) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
