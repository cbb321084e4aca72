// SPDX-License-Identifier: Apache-2.0
// The second half of a matmul whose K several CTAs of gemm share: the sums of its parts are added in
// order, and become results. A thread makes four neighbouring columns of some rows.
#pragma once

#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct sum_parts_args_t {
    matmul_args_t matmul;
    const float *parts;
    int64_t parts_stride;
    float sum_scale; // of the weight format
};

constexpr int sum_parts_threads = 256, sum_parts_rows = 2;

// most: the largest number of parts.
template <int most>
__global__ void __launch_bounds__(sum_parts_threads) sum_parts(const sum_parts_args_t args) {
    start_of_early_kernel();
    const matmul_args_t &a = args.matmul;
    const panels_t<1> panels(a);
    const int quads = panels.quads_of(panels.units()), i = blockIdx.x * sum_parts_threads + threadIdx.x,
              row = i / quads * sum_parts_rows, first = panels.column_from(0, i % quads);
    if (row >= a.M || (a.wanted && !a.wanted[first / panel_columns])) return;
    const int64_t stride = args.parts_stride;
    using sums_t = float4[sum_parts_rows];
    const auto sum_up = [&](sums_t &sum, int column) {
        const float *at = args.parts + row * stride + column;
        float4 v[most][sum_parts_rows]; // all loads are in flight together
#pragma unroll
        for (int p = 0; p < most; p++)
#pragma unroll
            for (int r = 0; r < sum_parts_rows; r++)
                if (p < a.splits && row + r < a.M)
                    v[p][r] = __ldcs(reinterpret_cast<const float4 *>(at + (p * int64_t(a.M) + r) * stride));
#pragma unroll
        for (int r = 0; r < sum_parts_rows; r++) {
            sum[r] = v[0][r];
#pragma unroll
            for (int p = 1; p < most; p++)
                if (p < a.splits)
                    sum[r].x += v[p][r].x, sum[r].y += v[p][r].y, sum[r].z += v[p][r].z,
                            sum[r].w += v[p][r].w;
        }
    };
    sums_t sum, up;
    sum_up(sum, first);
    if (panels.up)
        sum_up(up, first + panels.up * panel_columns);
    else
#pragma unroll
        for (int r = 0; r < sum_parts_rows; r++) up[r] = sum[r];
    columns_t(a, 0, first, args.sum_scale, false)
            .store<sum_parts_rows>(a, a.row_begin + row, 1, a.row_begin + a.M, &sum[0].x, &up[0].x, 4);
}

// For this many parts.
inline auto sum_parts_for(int splits) {
    return splits <= 2 ? sum_parts<2> : splits <= 4 ? sum_parts<4> : sum_parts<most_parts>;
}

inline cudaError_t launch_sum_parts(const launch_t &at, const sum_parts_args_t &args) {
    const matmul_args_t &a = args.matmul;
    const int64_t rows = (a.M + sum_parts_rows - 1) / sum_parts_rows,
                  quads = rows * (a.panel_end - a.panel_begin) * (panel_columns / 4);
    const int64_t ctas = (quads + sum_parts_threads - 1) / sum_parts_threads;
    return launch_kernel(
            at, sum_parts_for(a.splits), {dim3(unsigned(ctas)), dim3(sum_parts_threads), 0, early}, args);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
