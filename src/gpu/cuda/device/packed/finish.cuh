// SPDX-License-Identifier: Apache-2.0
// The end of a tile: four neighbouring columns of one row, in f32, to dst with bias, gated
// activation, row weight and the type of dst.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "gpu/cuda/device/packed/work_list.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

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

// Two neighbours of 16 bits in a word.
__device__ __forceinline__ uint32_t pair_of(value_type_t type, float a, float b) {
    if (type == value_type_t::bf16) {
        const __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
        return *reinterpret_cast<const uint32_t *>(&v);
    }
    const __half2 v = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&v);
}

// Stores `count` elements from element i on, with one store if the address allows it.
template <int count>
__device__ __forceinline__ void store_values(
        void *p, value_type_t type, int64_t i, const float (&v)[count], int valid) {
    static_assert(count == 2 || count == 4, "one store");
    const bool wide = type == value_type_t::f32;
    const auto to = reinterpret_cast<uintptr_t>(p) + i * (wide ? 4 : 2);
    if (valid == count && to % (wide ? 4 * count : 2 * count) == 0) {
        if (wide) {
            if constexpr (count == 4)
                *reinterpret_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
            else
                *reinterpret_cast<float2 *>(to) = make_float2(v[0], v[1]);
            return;
        }
        uint32_t words[count / 2];
        for (int j = 0; j < count / 2; j++) words[j] = pair_of(type, v[2 * j], v[2 * j + 1]);
        if constexpr (count == 4)
            *reinterpret_cast<uint2 *>(to) = make_uint2(words[0], words[1]);
        else
            *reinterpret_cast<uint32_t *>(to) = words[0];
        return;
    }
    for (int j = 0; j < count; j++)
        if (j < valid) store_value(p, type, i + j, v[j]);
}

// The factors of the sums of an expert. There are two, because their product might leave the range of f32.
struct sum_scale_t {
    float sum, expert;

    // format_scale: the factor of the weight format for sums.
    __device__ sum_scale_t(const matmul_args_t &a, int of_expert, float format_scale)
        : sum(format_scale), expert(a.expert_alpha ? __ldg(a.expert_alpha + of_expert) : 1.f) {
        if (a.prefix) sum *= *reinterpret_cast<const float *>(packed_of(a, of_expert));
        if (a.src_global) sum *= a.src_global[of_expert * a.src_global_step];
    }
};

// Whether results are rounded sums with a bias, in whole chunks of 16 bytes of dst.
__device__ inline bool is_tiles_of_dst(const matmul_args_t &a) {
    return a.dst_type == value_type_t::bf16 && a.activation == activation_t::none && !a.row_weights
           && a.old_scale == 0.f && a.N % 8 == 0 && a.dst_stride % 8 == 0 && a.dst_first % 8 == 0
           && reinterpret_cast<uintptr_t>(a.dst) % 16 == 0;
}

// is_tiles_of_dst() for results that are each made of two neighbouring columns.
__device__ inline bool is_pairs_of_dst(const matmul_args_t &a) {
    matmul_args_t plain = a;
    plain.activation = activation_t::none;
    return a.activation == activation_t::gated_pairs && is_tiles_of_dst(plain) && a.N % 16 == 0;
}

// Four neighbouring columns of one expert: values that are the same for all rows.
struct columns_t {
    int column,
            valid; // the first column of the results, and how many columns exist from it on; 0 or less: none
    float bias[4], up_bias[4];
    sum_scale_t scale;
    float alpha, beta, limit;
    bool factors; // whether sums have to be multiplied by the factors of their rows

    // n: the first column of the weights, a multiple of 4; with halves that of the gates. format_scale: the
    // factor of the weight format for sums. bare: sums have not been multiplied by the factors of their rows.
    __device__ columns_t(const matmul_args_t &a, int expert, int n, float format_scale, bool bare = true)
        : scale(a, expert, format_scale), factors(bare && a.row_factors) {
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

    // Finishes `rows` rows of the list from m on, `step` apart, up to `end`. sum and up point to the sums of
    // these columns in each row and, with halves, to those that they gate, `pitch` floats per step. All rows
    // are processed together, which hides their latency.
    template <int rows>
    __device__ __forceinline__ void store(const matmul_args_t &a, int m, int step, int end, const float *sum,
            const float *up, int pitch) const {
        float weight[rows], factor[rows];
#pragma unroll
        for (int i = 0; i < rows; i++) {
            factor[i] = factors && m + i * step < end ? row_factor_of(a, m + i * step) : 1.f;
            weight[i] = a.row_weights && m + i * step < end
                                ? load_value(a.row_weights, a.row_weights_type, m + i * step)
                                : 1.f;
        }
        float v[rows][4];
#pragma unroll
        for (int i = 0; i < rows; i++) {
            const float before = a.row_weights_on_input ? scale.expert * weight[i] : scale.expert;
            const float4 x = *reinterpret_cast<const float4 *>(sum + i * pitch);
            v[i][0] = x.x * factor[i] * scale.sum * before + bias[0];
            v[i][1] = x.y * factor[i] * scale.sum * before + bias[1];
            v[i][2] = x.z * factor[i] * scale.sum * before + bias[2];
            v[i][3] = x.w * factor[i] * scale.sum * before + bias[3];
        }
        if (a.activation == activation_t::gated_pairs) {
            float pairs[rows][2];
#pragma unroll
            for (int i = 0; i < rows; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) pairs[i][j] = gated(v[i][2 * j], v[i][2 * j + 1]);
            put<rows, 2>(a, m, step, end, pairs, weight);
            return;
        }
        if (a.activation == activation_t::gated_halves) {
#pragma unroll
            for (int i = 0; i < rows; i++) {
                const float before = a.row_weights_on_input ? scale.expert * weight[i] : scale.expert;
                const float4 x = *reinterpret_cast<const float4 *>(up + i * pitch);
                v[i][0] = gated(v[i][0], x.x * factor[i] * scale.sum * before + up_bias[0]);
                v[i][1] = gated(v[i][1], x.y * factor[i] * scale.sum * before + up_bias[1]);
                v[i][2] = gated(v[i][2], x.z * factor[i] * scale.sum * before + up_bias[2]);
                v[i][3] = gated(v[i][3], x.w * factor[i] * scale.sum * before + up_bias[3]);
            }
        } else if (a.activation != activation_t::none) {
#pragma unroll
            for (int i = 0; i < rows; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const float x = v[i][j] > 0.f || v[i][j] != v[i][j] ? v[i][j] : 0.f;
                    v[i][j] = a.activation == activation_t::relu2 ? x * x : x;
                }
        }
        put<rows, 4>(a, m, step, end, v, weight);
    }

private:
    template <int rows, int count>
    __device__ __forceinline__ void put(const matmul_args_t &a, int m, int step, int end,
            float (&v)[rows][count], const float (&weight)[rows]) const {
        if (valid <= 0) return;
        if (!a.row_weights_on_input && a.row_weights) {
#pragma unroll
            for (int i = 0; i < rows; i++)
#pragma unroll
                for (int j = 0; j < count; j++) v[i][j] *= weight[i];
        }
        // The usual case by itself, so that its code is short.
        if (a.dst_type == value_type_t::bf16 && valid == count && a.old_scale == 0.f) {
            auto *to = static_cast<__nv_bfloat16 *>(a.dst) + (m * a.dst_stride + column - a.dst_first);
            if (reinterpret_cast<uintptr_t>(to) % (2 * count) == 0 && a.dst_stride % count == 0) {
#pragma unroll
                for (int i = 0; i < rows; i++, to += step * a.dst_stride) {
                    __nv_bfloat162 packed[count / 2];
#pragma unroll
                    for (int j = 0; j < count / 2; j++)
                        packed[j] = __floats2bfloat162_rn(v[i][2 * j], v[i][2 * j + 1]);
                    using packed_t = std::conditional_t<count == 4, uint2, uint32_t>;
                    if (m + i * step < end)
                        *reinterpret_cast<packed_t *>(to) = *reinterpret_cast<packed_t *>(packed);
                }
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < rows; i++) {
            const int64_t at = int64_t(m + i * step) * a.dst_stride + column - a.dst_first;
            if (m + i * step >= end) break;
#pragma unroll
            for (int j = 0; j < count; j++)
                if (a.old_scale != 0.f && j < valid)
                    v[i][j] += a.old_scale * load_value(a.dst, a.dst_type, at + j);
            store_values<count>(a.dst, a.dst_type, at, v[i], valid);
        }
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
