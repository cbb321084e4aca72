// SPDX-License-Identifier: Apache-2.0
// The end of a tile: four neighbouring columns of one row, in f32, to dst with bias, gated
// activation, row weight and the type of dst.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/cuda/device/kernels/sm90/work_list.cuh"

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

// Four neighbouring columns of one expert: what is the same for all their rows.
struct columns_t {
    int column, valid; // the first one of the results, and how many there are from it on; 0 or less: none
    float bias[4], up_bias[4];
    float sum_scale; // of the sums; expert_scale: that of the expert, apart because their product may
                     // overflow
    float expert_scale;
    float alpha, beta, limit;

    // n: the first one of the weights, a multiple of 4; with halves that of the gates. format_scale: that of
    // the sums of the weight format.
    __device__ columns_t(const matmul_args_t &a, int expert, int n, float format_scale) {
        const bool halves = a.activation == activation_t::gated_halves;
        const int end = min(halves ? a.N / 2 : a.N, a.panel_end * panel_columns);
        const int weights_valid = min(4, end - n);
        const bool pairs = a.activation == activation_t::gated_pairs;
        column = pairs ? n / 2 : n;
        valid = pairs ? (weights_valid + 1) / 2 : weights_valid;
        const int64_t at = expert * a.bias_stride + n;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const bool any = a.bias_type != value_type_t::none && j < weights_valid;
            bias[j] = any ? load_value(a.bias, a.bias_type, at + j) : 0.f;
            up_bias[j] = any && halves ? load_value(a.bias, a.bias_type, at + a.N / 2 + j) : 0.f;
        }
        // The two factors of a sum stay within f32 where their product might not.
        sum_scale = format_scale;
        if (a.prefix) sum_scale *= *reinterpret_cast<const float *>(packed_of(a, expert));
        expert_scale = a.expert_alpha ? __ldg(a.expert_alpha + expert) : 1.f;
        alpha = a.alpha, beta = a.beta, limit = a.limit;
        if (a.activation_params) {
            const float *p = a.activation_params + int64_t(expert) * a.activation_stride;
            if (!a.limit_only) alpha = __ldg(p), beta = __ldg(p + 1);
            limit = __ldg(p + 2);
        }
    }

    // gate * sigmoid(alpha * gate) * (up + beta), both limited.
    __device__ __forceinline__ float gated(float gate, float up) const {
        if (limit > 0.f) { // NaN compares false and stays
            gate = gate > limit ? limit : gate;
            up = up > limit ? limit : up < -limit ? -limit : up;
        }
        return __fdividef(gate, 1.f + expf(-alpha * gate)) * (up + beta);
    }

    // Finishes row m of the list; up: with halves, what these columns gate.
    __device__ __forceinline__ void store(
            const matmul_args_t &a, int m, const float4 &sum, const float4 &up) const {
        if (valid <= 0) return;
        float v[4] = {sum.x, sum.y, sum.z, sum.w}, u[4] = {up.x, up.y, up.z, up.w};
        const float weight = a.row_weights ? load_value(a.row_weights, a.row_weights_type, m) : 1.f;
        const float before = a.row_weights_on_input ? expert_scale * weight : expert_scale,
                    after = a.row_weights_on_input ? 1.f : weight;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[j] = v[j] * sum_scale * before + bias[j];
            u[j] = u[j] * sum_scale * before + up_bias[j];
        }
        const int64_t at = m * a.dst_stride + column - a.dst_first;
        if (a.activation == activation_t::gated_pairs) {
            float pairs[2] = {gated(v[0], v[1]) * after, gated(v[2], v[3]) * after};
            add_old(a, at, pairs);
            store_values<2>(a.dst, a.dst_type, at, pairs, valid);
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (a.activation == activation_t::gated_halves)
                v[j] = gated(v[j], u[j]);
            else if (a.activation != activation_t::none && !(v[j] > 0.f || v[j] != v[j]))
                v[j] = 0.f;
            else if (a.activation == activation_t::relu2)
                v[j] *= v[j];
            v[j] *= after;
        }
        add_old(a, at, v);
        store_values<4>(a.dst, a.dst_type, at, v, valid);
    }

private:
    template <int count>
    __device__ __forceinline__ void add_old(const matmul_args_t &a, int64_t at, float (&v)[count]) const {
        if (a.old_scale == 0.f) return;
        for (int j = 0; j < count; j++)
            if (j < valid) v[j] += a.old_scale * load_value(a.dst, a.dst_type, at + j);
    }
};

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
