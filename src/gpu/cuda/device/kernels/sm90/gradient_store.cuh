// SPDX-License-Identifier: Apache-2.0
// The sums of a consumer of sm90_gradient become results.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace gradient {

struct f32_result_t {
    using one = float;
    using four = float4;
    __device__ static float4 widen(const float4 &v) { return v; }
    __device__ static float widen(float v) { return v; }
    __device__ static float4 narrow(const float4 &v) { return v; }
    __device__ static float narrow(float v) { return v; }
};
struct bf16_result_t {
    using one = __nv_bfloat16;
    using four = uint2;
    __device__ static float4 widen(const uint2 &v) {
        return {__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u), __uint_as_float(v.y << 16),
                __uint_as_float(v.y & 0xffff0000u)};
    }
    __device__ static float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
    __device__ static uint32_t pair(float x, float y) {
        uint32_t d;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(y), "f"(x));
        return d;
    }
    __device__ static uint2 narrow(const float4 &v) { return {pair(v.x, v.y), pair(v.z, v.w)}; }
    __device__ static __nv_bfloat16 narrow(float v) { return __float2bfloat16_rn(v); }
};
struct f16_result_t {
    using one = __half;
    using four = uint2;
    __device__ static float half_of(uint32_t bits) { return __half2float(__ushort_as_half(uint16_t(bits))); }
    __device__ static float4 widen(const uint2 &v) {
        return {half_of(v.x), half_of(v.x >> 16), half_of(v.y), half_of(v.y >> 16)};
    }
    __device__ static float widen(__half v) { return __half2float(v); }
    __device__ static uint32_t pair(float x, float y) {
        uint32_t d;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(y), "f"(x));
        return d;
    }
    __device__ static uint2 narrow(const float4 &v) { return {pair(v.x, v.y), pair(v.z, v.w)}; }
    __device__ static __half narrow(float v) { return __float2half_rn(v); }
};

// The sum of four neighbours, or what a group without rows has instead. `left`: columns that exist.
template <typename result_t>
__device__ __forceinline__ void store_4(
        const sm90_gradient_args_t &g, typename result_t::one *to, int left, bool empty, float4 v) {
    using four = typename result_t::four;
    if (empty) v = {0, 0, 0, 0};
    if (left >= 4 && g.quads) {
        if (g.has_old) {
            const float4 old = result_t::widen(*reinterpret_cast<const four *>(to));
            const float s = g.old_scale;
            v = empty ? float4{s * old.x, s * old.y, s * old.z, s * old.w}
                      : float4{v.x + s * old.x, v.y + s * old.y, v.z + s * old.z, v.w + s * old.w};
        }
        *reinterpret_cast<four *>(to) = result_t::narrow(v);
        return;
    }
    const float each[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i >= left) break;
        float x = each[i];
        if (g.has_old) {
            const float old = g.old_scale * result_t::widen(to[i]);
            x = empty ? old : x + old;
        }
        to[i] = result_t::narrow(x);
    }
}

// Neighbouring lanes exchange pairs of columns, so that each has four neighbours, and four lanes fill sectors
// of memory. `whole`: all rows and columns exist, and nothing is added, so that stores need not be told
// apart.
template <typename result_t, int n, bool whole>
__device__ __forceinline__ void store_as(
        const sm90_gradient_args_t &g, int group, int m, int first, bool empty, float (&sum)[n / 2]) {
    const int lane = threadIdx.x % 32, odd = lane % 2, row = m + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const int column = first + odd * 8 + lane % 4 / 2 * 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = row + 8 * half;
        auto *to = reinterpret_cast<typename result_t::one *>(g.to) + group * g.to_group_stride
                   + r * g.to_row_stride + column;
#pragma unroll
        for (int j = 0; j < n / 8; j += 2) {
            const float *x = sum + 4 * j + 2 * half, *y = x + 4;
            const float p = __shfl_xor_sync(~0u, odd ? x[0] : y[0], 1),
                        q = __shfl_xor_sync(~0u, odd ? x[1] : y[1], 1);
            const float4 v = odd ? float4{p, q, y[0], y[1]} : float4{x[0], x[1], p, q};
            if constexpr (whole) {
                *reinterpret_cast<typename result_t::four *>(to + j * 8) = result_t::narrow(v);
            } else {
                const int left = g.N - column - j * 8;
                if (r < g.M && left > 0) store_4<result_t>(g, to + j * 8, left, empty, v);
            }
        }
    }
}
template <typename result_t, int n>
__device__ __forceinline__ void store_as(
        const sm90_gradient_args_t &g, int group, int m, int first, bool empty, float (&sum)[n / 2]) {
    const bool whole = m + 64 <= g.M && first + n <= g.N && g.quads && !g.has_old && !empty;
    if (whole)
        store_as<result_t, n, true>(g, group, m, first, false, sum);
    else
        store_as<result_t, n, false>(g, group, m, first, empty, sum);
}

// The sums of 64 rows from m on, and n columns.
template <int n>
__device__ __forceinline__ void store_sums(
        const sm90_gradient_args_t &g, int group, int m, int column, bool empty, float (&sum)[n / 2]) {
    switch (g.to_dt) {
    case mxdnn_f32: return store_as<f32_result_t, n>(g, group, m, column, empty, sum);
    case mxdnn_bf16: return store_as<bf16_result_t, n>(g, group, m, column, empty, sum);
    default: return store_as<f16_result_t, n>(g, group, m, column, empty, sum);
    }
}

} // namespace gradient
} // namespace cuda
} // namespace impl
} // namespace mxdnn
