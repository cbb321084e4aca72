// SPDX-License-Identifier: Apache-2.0
#include "ep/cuda/routing_kernels.hpp"

#include <algorithm>

#include "ep/cuda/rows.cuh"

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

__global__ void __launch_bounds__(threads) gather_kernel(row_format_t format, array_t dst, array_t src,
        const int32_t *indices, int64_t rows, int64_t src_rows, finding_t *bad) {
    for (int64_t r = int64_t(blockIdx.x) * warps + threadIdx.x / warp; r < rows;
            r += int64_t(gridDim.x) * warps) {
        const int32_t from = indices[r];
        if (from < 0 || from >= src_rows) {
            if (threadIdx.x % warp == 0) note(bad, r, from);
            continue;
        }
        copy_row(dst.codes + size_t(r) * format.codes, src.codes + size_t(from) * format.codes, format.codes);
        if (format.scales > 0)
            copy_row(dst.scales + size_t(r) * format.scales, src.scales + size_t(from) * format.scales,
                    format.scales);
    }
}

// One block; a warp sums the counts for a rank.
__global__ void __launch_bounds__(threads) count_kernel(const int32_t *counts, int64_t rows,
        int32_t *outgoing, int ranks, int64_t local_experts, int32_t *sent, report_t *report) {
    __shared__ unsigned long long all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    for (int rank = threadIdx.x / warp; rank < ranks; rank += warps) {
        int64_t sum = 0;
        for (int64_t e = threadIdx.x % warp; e < local_experts; e += warp) {
            const int64_t expert = rank * local_experts + e;
            const int32_t count = counts ? counts[expert] : 0;
            if (count < 0) note(&report->bad_count, expert, count);
            outgoing[expert] = count;
            sum += count;
        }
        for (int d = warp / 2; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (threadIdx.x % warp == 0) {
            sent[rank] = int32_t(sum); // wrong where the sum of all does not fit, which is refused
            atomicAdd(&all, static_cast<unsigned long long>(sum));
        }
    }
    __syncthreads();
    const int64_t sum = int64_t(all);
    if (counts && threadIdx.x == 0 && sum != rows)
        note(&report->bad_sum, sum < 0 ? 0 : sum > INT32_MAX ? INT32_MAX : sum, int32_t(rows));
}

} // namespace

cudaError_t launch_gather(cudaStream_t stream, const row_format_t &format, const array_t &dst,
        const array_t &src, const int32_t *indices, dim_t rows, dim_t src_rows, finding_t *bad) {
    constexpr dim_t most_blocks = 132 * 16;
    if (rows == 0) return cudaSuccess;
    const int blocks = int(std::min((rows + warps - 1) / warps, most_blocks));
    gather_kernel<<<blocks, threads, 0, stream>>>(format, dst, src, indices, rows, src_rows, bad);
    return cudaGetLastError();
}

cudaError_t launch_count(cudaStream_t stream, const int32_t *counts, dim_t rows, int32_t *outgoing, int ranks,
        dim_t local_experts, int32_t *sent, report_t *report) {
    count_kernel<<<1, threads, 0, stream>>>(counts, rows, outgoing, ranks, local_experts, sent, report);
    return cudaGetLastError();
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
