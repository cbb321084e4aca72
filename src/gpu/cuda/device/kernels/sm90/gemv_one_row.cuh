// SPDX-License-Identifier: Apache-2.0
// One row of the source in gemv.cuh. A product of mma.sync has eight columns for rows of the source,
// and one row would leave seven of them zero. Here each is for a block of 32 rows of K of a stage, and has
// the source there and zeros elsewhere: in the end a lane's sums are those of two blocks, over nothing else,
// and meet the scales then, once a stage. So weights are decoded without their scales (mma/unscaled.cuh),
// which takes a quarter to a third fewer instructions.
#pragma once

#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/unscaled.cuh"
#include "gpu/cuda/device/mma/unscaled_sums.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct one_row_t {
    static constexpr int steps = 4; // steps of 64 rows of K in a stage, with two blocks each
    static constexpr int lane_rows = 8;

    // For a stage: which row a lane's 16 bytes of the source belong to, and their position.
    __device__ static __forceinline__ int block(int lane) { return lane / 4; }
    // This many bytes, then zeros up to 16.
    __device__ static __forceinline__ void copy(uint32_t to, const void *from, int bytes) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                     : "memory");
    }
};

// Reads scales, and zeros for codes.
struct scales_reader_t : ptx::shared_reader_t {
    __device__ __forceinline__ uint4 read_16(int = 0) const { return make_uint4(0, 0, 0, 0); }
};

// For 16 columns, of which a lane has lane / 4 and lane / 4 + 8: the values of its two blocks of every stage.
template <typename format>
struct one_row_sums_t {
    using raw_t = typename format::raw_t;
    using unscaled = unscaled_t<format>;

    float sum[2] = {0.f, 0.f};

    // A stage. of: this lane's step of it, whose scales its sums need, if there is one. source(step, b): the
    // fragments of the source.
    template <typename F>
    __device__ __forceinline__ void add(
            const raw_t (&raw)[one_row_t::steps], const raw_t &of, bool is, F &&source) {
        float part[2][4] = {}; // of even and odd 16 rows
#pragma unroll
        for (int j = 0; j < one_row_t::steps; j++) {
            uint32_t b[2][4];
            source(j, b);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t a[4];
                unscaled::decode(a, raw[j], i);
                mma_unscaled<format>(part[i % 2], a, b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]);
            }
        }
        [[maybe_unused]] float ones[4] = {};
        if constexpr (has_unscaled<format>)
            if (of.has_zeros())
#pragma unroll
                for (int j = 0; j < one_row_t::steps; j++) {
                    uint32_t b[2][4];
                    source(j, b);
                    add_ones<format>(ones, b[0]);
                    add_ones<format>(ones, b[1]);
                }
        if (!is) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if constexpr (has_unscaled<format>) {
                const unscaled_factors_t<format, false> factors(of, h);
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    factors.add_scaled(sum[c], part[0][c * 2 + h] + part[1][c * 2 + h], c);
                    if (of.has_zeros()) factors.add_zero(sum[c], ones[c * 2 + h], c);
                }
            } else if constexpr (unscaled::equal_factors) {
                const float2 f = unscaled::factors(of, h * 2);
                sum[0] = fmaf(part[0][h] + part[1][h], f.x, sum[0]);
                sum[1] = fmaf(part[0][2 + h] + part[1][2 + h], f.y, sum[1]);
            } else {
#pragma unroll
                for (int p = 0; p < 2; p++) {
                    const float2 f = unscaled::factors(of, h * 2 + p);
                    sum[0] = fmaf(part[p][h], f.x, sum[0]);
                    sum[1] = fmaf(part[p][2 + h], f.y, sum[1]);
                }
            }
        }
    }
    // A step with this many rows of K whose scales have no factor. Weights are multiplied by their scales,
    // and may be Inf or NaN. The zeros of other columns times these would be NaN in their lanes.
    __device__ __forceinline__ void add_special(
            const raw_t &raw, const uint32_t (&b)[2][4], bool mine, int left) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float part[1][4] = {};
            if constexpr (has_unscaled<format>) {
                add_unscaled<format, true, 1>(part, raw, h, left, [&](int, uint32_t(&of)[4]) {
#pragma unroll
                    for (int i = 0; i < 4; i++) of[i] = b[h][i];
                });
            } else {
#pragma unroll
                for (int p = 0; p < 2; p++) {
                    uint32_t a[4];
                    format::template decode<true>(a, raw, h * 2 + p);
                    mma_bf16(part[0], a, b[h][p * 2], b[h][p * 2 + 1]);
                }
            }
            if (mine) sum[0] += part[0][h], sum[1] += part[0][2 + h];
        }
    }
    // For all lanes with these columns.
    __device__ __forceinline__ void finish() {
#pragma unroll
        for (float &v : sum) {
            v += __shfl_xor_sync(~0u, v, 1);
            v += __shfl_xor_sync(~0u, v, 2);
        }
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
