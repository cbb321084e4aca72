// SPDX-License-Identifier: Apache-2.0
// The end of a tile: four neighbouring columns of one row, in f32, to dst with bias, gated
// activation, row weight and the type of dst.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/cuda/sm90_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

__device__ __forceinline__ float load_value(const void *p, value_type_t type, int64_t i) {
    switch (type) {
    case value_type_t::f32: return static_cast<const float *>(p)[i];
    case value_type_t::bf16: return __bfloat162float(static_cast<const __nv_bfloat16 *>(p)[i]);
    case value_type_t::f16: return __half2float(static_cast<const __half *>(p)[i]);
    default: return 0.f;
    }
}

__device__ __forceinline__ void store_value(void *p, value_type_t type, int64_t i, float v) {
    switch (type) {
    case value_type_t::f32: static_cast<float *>(p)[i] = v; break;
    case value_type_t::bf16: static_cast<__nv_bfloat16 *>(p)[i] = __float2bfloat16_rn(v); break;
    case value_type_t::f16: static_cast<__half *>(p)[i] = __float2half_rn(v); break;
    default: break;
    }
}

// count neighbours from element i on, in one store where the address allows it.
template <int count>
__device__ __forceinline__ void store_values(
        void *p, value_type_t type, int64_t i, const float (&v)[count], int valid) {
    static_assert(count == 2 || count == 4, "one store");
    if (type == value_type_t::bf16 && valid == count) {
        __nv_bfloat16 *to = static_cast<__nv_bfloat16 *>(p) + i;
        if (reinterpret_cast<uintptr_t>(to) % (2 * count) == 0) {
            __nv_bfloat162 packed[count / 2];
            for (int j = 0; j < count / 2; j++) packed[j] = __floats2bfloat162_rn(v[2 * j], v[2 * j + 1]);
            if constexpr (count == 4)
                *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(packed);
            else
                *reinterpret_cast<uint32_t *>(to) = *reinterpret_cast<uint32_t *>(packed);
            return;
        }
    }
    for (int j = 0; j < count; j++)
        if (j < valid) store_value(p, type, i + j, v[j]);
}

// gate * sigmoid(alpha * gate) * (up + 1), both limited.
__device__ __forceinline__ float swiglu(float gate, float up, float alpha, float limit) {
    if (limit > 0.f) {
        gate = gate > limit ? limit : gate;
        up = up > limit ? limit : up < -limit ? -limit : up;
    }
    return gate / (1.f + expf(-alpha * gate)) * (up + 1.f);
}

// Four neighbouring columns, from n on, a multiple of 4: what is the same for all their rows.
struct columns_t {
    int n, valid; // columns that exist; 0 or less: none
    float scale;  // of the sums
    float bias[4];

    // sum_scale: the weight format's.
    __device__ columns_t(const matmul_args_t &a, int expert, int first, float sum_scale)
        : n(first), valid(min(4, a.N - first)), scale(sum_scale) {
        // The two factors of a sum stay within f32 where their product might not.
        if (a.globals)
            scale *= *reinterpret_cast<const float *>(
                    reinterpret_cast<const uint8_t *>(a.globals) + expert * a.expert_stride);
        for (int j = 0; j < 4; j++)
            bias[j] = a.bias_type != value_type_t::none && j < valid
                              ? load_value(a.bias, a.bias_type, int64_t(expert) * a.N + n + j)
                              : 0.f;
    }

    // Finishes row m of the list.
    __device__ void store(const matmul_args_t &a, int m, const float4 &sum) const {
        const int64_t row = a.scatter ? a.scatter[m] : m;
        if (valid <= 0 || row < 0) return;
        float v[4] = {sum.x * scale + bias[0], sum.y * scale + bias[1], sum.z * scale + bias[2],
                sum.w * scale + bias[3]};
        const float weight = a.row_weights ? a.row_weights[m] : 1.f;
        if (a.activation == activation_t::swiglu) {
            const float u[2] = {swiglu(v[0], v[1], a.alpha, a.limit) * weight,
                    swiglu(v[2], v[3], a.alpha, a.limit) * weight};
            store_values<2>(a.dst, a.dst_type, row * a.dst_stride + n / 2, u, (valid + 1) / 2);
        } else {
            if (a.row_weights)
                for (int j = 0; j < 4; j++) v[j] *= weight;
            store_values<4>(a.dst, a.dst_type, row * a.dst_stride + n, v, valid);
        }
    }
};

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
