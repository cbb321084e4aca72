// SPDX-License-Identifier: Apache-2.0
// Sums of weights that are multiplied without their scale, and meet it block after block in f32: those of
// formats that have_unscaled (weight_format.cuh).
#pragma once

#include "gpu/cuda/device/mma/f16_terms.cuh"
#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"

namespace mxdnn {
namespace impl {

// The factors of sums over 32 rows, the lower or the upper ones of a step, for columns c and c + 8. any:
// weights that already include their scale count as they are.
template <typename format, bool any>
struct unscaled_factors_t {
    float scale[2], zero[2]; // zero: the factor of sums of the source alone
    bool with_zero[2];

    __device__ __forceinline__ unscaled_factors_t(const typename format::raw_t &raw, int half) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const bool early = any && format::meets_early(raw, half * 2, c);
            scale[c] = early ? 1.f : format::unscaled_factor(raw, half * 2, c);
            zero[c] = format::unscaled_zero(raw, half * 2, c);
            with_zero[c] = !early;
        }
    }
    __device__ __forceinline__ void add_scaled(float &sum, float part, int column) const {
        sum = fmaf(part, scale[column], sum);
    }
    __device__ __forceinline__ void add_zero(float &sum, float ones, int column) const {
        if (with_zero[column]) sum = fmaf(ones, zero[column], sum);
    }
};

// Products of weights without their scale.
template <typename format>
__device__ __forceinline__ void mma_unscaled(
        float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (is_f16<format>)
        mma_f16(d, a, b0, b1);
    else
        mma_bf16(d, a, b0, b1);
}

// Adds the products of ones with 32 rows of K.
template <typename format>
__device__ __forceinline__ void add_ones(float (&sum)[4], const uint32_t (&b)[4]) {
    constexpr uint32_t one = format::unscaled_ones(), ones[4] = {one, one, one, one};
    mma_unscaled<format>(sum, ones, b[0], b[1]);
    mma_unscaled<format>(sum, ones, b[2], b[3]);
}

// Every eight rows of the source exist.
struct all_rows_t {
    __device__ constexpr bool operator()(int) const { return true; }
};

// add_unscaled() below of any weights and eight rows of bf16, as a function.
template <typename format>
__device__ __noinline__ float4 add_any_rows(
        float4 sums, typename format::raw_t raw, int half, int left, uint4 source);

// Adds 32 rows of K, the lower or the upper ones of a step, to the sums of 16 columns and up to 8 * tiles
// rows of the source. left: rows of K from the step's first on. source(t, b): the fragments of eight source
// rows. has(t): whether these rows exist. calls: any weights for a source of f16 by a call.
template <typename format, bool any, int tiles, bool calls = false, int row_tiles, typename F,
        typename G = all_rows_t>
__device__ __forceinline__ void add_unscaled(float (&sum)[row_tiles][4], const typename format::raw_t &raw,
        int half, [[maybe_unused]] int left, F &&source, G &&has = G()) {
    if constexpr (any && is_f16<format>) {
        // Terms of the source that are smaller by the factor by which sums are enlarged in the end.
#pragma unroll 1
        for (int term = 1; term >= 0; term--) {
            using of_bf16 = typename format::of_bf16;
            const auto rows = [&](int t, uint32_t(&b)[4]) {
                source(t, b);
#pragma unroll
                for (uint32_t &pair : b) pair = bf16_term_of_f16(pair, term, 1 / format::sum_scale);
            };
            if constexpr (calls) {
                static_assert(tiles == 1 && row_tiles == 1, "eight rows");
                uint32_t b[4];
                rows(0, b);
                float(&of)[4] = sum[0];
                const float4 v = add_any_rows<of_bf16>(make_float4(of[0], of[1], of[2], of[3]), raw, half,
                        left, make_uint4(b[0], b[1], b[2], b[3]));
                of[0] = v.x, of[1] = v.y, of[2] = v.z, of[3] = v.w;
            } else {
                add_unscaled<of_bf16, true, tiles>(sum, raw, half, left, rows, has);
            }
        }
        return;
    }
    constexpr int terms = any ? format::terms : 1, together = tiles % 2 ? 1 : 2;
    uint32_t a[2][terms][4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if constexpr (any)
            format::decode_any(a[i], raw, half * 2 + i, left);
        else
            format::decode_unscaled(a[i][0], raw, half * 2 + i);
    }
    const unscaled_factors_t<format, any> factors(raw, half);
#pragma unroll
    for (int first = 0; first < tiles; first += together) {
        if (!has(first)) break;
        uint32_t b[together][4];
        float part[together][4] = {};
#pragma unroll
        for (int t = 0; t < together; t++) source(first + t, b[t]);
            // Independent products are next to each other. The smallest terms come first: their sum is exact.
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int term = terms - 1; term >= 0; term--)
#pragma unroll
                for (int t = 0; t < together; t++)
                    mma_unscaled<format>(part[t], a[i][term], b[t][i * 2], b[t][i * 2 + 1]);
#pragma unroll
        for (int t = 0; t < together; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) factors.add_scaled(sum[first + t][e], part[t][e], e / 2);
        if (!raw.has_zeros()) continue;
#pragma unroll
        for (int t = 0; t < together; t++) {
            float ones[4] = {};
            add_ones<format>(ones, b[t]);
#pragma unroll
            for (int e = 0; e < 4; e++) factors.add_zero(sum[first + t][e], ones[e], e / 2);
        }
    }
}

template <typename format>
__device__ float4 add_any_rows(float4 sums, typename format::raw_t raw, int half, int left, uint4 source) {
    float sum[1][4] = {{sums.x, sums.y, sums.z, sums.w}};
    add_unscaled<format, true, 1>(sum, raw, half, left, [&](int, uint32_t(&b)[4]) {
        b[0] = source.x, b[1] = source.y, b[2] = source.z, b[3] = source.w;
    });
    return make_float4(sum[0][0], sum[0][1], sum[0][2], sum[0][3]);
}

// Whether no sum of the source alone meets a zero, so that the parts below are all there is.
template <typename format, bool = has_unscaled<format>>
inline constexpr bool has_long_blocks = false;
template <typename format>
inline constexpr bool has_long_blocks<format, true> = !format::may_have_zeros;

// Products over rows of one block that have not met their scale yet. Those of the lower and the upper 32 rows
// of a step are apart, so that products seldom wait for each other.
template <typename format, int tiles>
struct unscaled_parts_t {
    float part[2][tiles][4] = {};

    // Adds a step. source(t, half, b): the fragments of eight source rows.
    template <typename F>
    __device__ __forceinline__ void add(const typename format::raw_t &raw, F &&source) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t b[tiles][4];
#pragma unroll
            for (int t = 0; t < tiles; t++) source(t, h, b[t]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                uint32_t a[4];
                format::decode_unscaled(a, raw, h * 2 + i);
#pragma unroll
                for (int t = 0; t < tiles; t++)
                    mma_unscaled<format>(part[h][t], a, b[t][i * 2], b[t][i * 2 + 1]);
            }
        }
    }
    __device__ __forceinline__ void meet_scale(
            float (&sum)[tiles][4], const typename format::raw_t &raw) const {
        const unscaled_factors_t<format, false> factors(raw, 0);
#pragma unroll
        for (int t = 0; t < tiles; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) factors.add_scaled(sum[t][e], part[0][t][e] + part[1][t][e], e / 2);
    }
};

} // namespace impl
} // namespace mxdnn
