// SPDX-License-Identifier: Apache-2.0
#include "ep/cuda/routing_kernels.hpp"

#include <algorithm>

namespace mxdnn {
namespace ep {
namespace impl {

namespace {

constexpr int threads = 256, warp = 32, warps = threads / warp;

__device__ void note(finding_t *finding, int64_t index, int32_t value) {
    atomicMin(reinterpret_cast<unsigned long long *>(&finding->packed),
            static_cast<unsigned long long>(index) << 32 | uint32_t(value));
}

// A warp copies a row, as wide as rows of that size are aligned.
template <typename T>
__device__ void copy_row(uint8_t *dst, const uint8_t *src, size_t bytes) {
    constexpr int at_once = 4;
    const int n = int(bytes / sizeof(T));
    for (int i = threadIdx.x % warp; i < n; i += warp * at_once) {
        T v[at_once];
#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (i + warp * j < n) v[j] = reinterpret_cast<const T *>(src)[i + warp * j];
#pragma unroll
        for (int j = 0; j < at_once; j++)
            if (i + warp * j < n) reinterpret_cast<T *>(dst)[i + warp * j] = v[j];
    }
}
__device__ void copy_row(uint8_t *dst, const uint8_t *src, size_t bytes) {
    const size_t all = reinterpret_cast<size_t>(dst) | reinterpret_cast<size_t>(src) | bytes;
    if (all % 16 == 0)
        copy_row<uint4>(dst, src, bytes);
    else if (all % 4 == 0)
        copy_row<uint32_t>(dst, src, bytes);
    else
        copy_row<uint8_t>(dst, src, bytes);
}

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
__global__ void __launch_bounds__(threads) count_kernel(const int32_t *counts, int32_t *outgoing, int ranks,
        int64_t local_experts, int32_t *sent, report_t *report) {
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
    if (threadIdx.x == 0) report->sum = int64_t(all);
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

cudaError_t launch_count(cudaStream_t stream, const int32_t *counts, int32_t *outgoing, int ranks,
        dim_t local_experts, int32_t *sent, report_t *report) {
    count_kernel<<<1, threads, 0, stream>>>(counts, outgoing, ranks, local_experts, sent, report);
    return cudaGetLastError();
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
