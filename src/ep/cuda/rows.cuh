// SPDX-License-Identifier: Apache-2.0
// Rows in kernels: a warp copies each.
#pragma once

#include "ep/cuda/routing_kernels.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

constexpr int threads = 256, warp = 32, warps = threads / warp;

__device__ __forceinline__ void note(finding_t *finding, int64_t index, int32_t value) {
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
__device__ __forceinline__ void copy_row(uint8_t *dst, const uint8_t *src, size_t bytes) {
    const size_t all = reinterpret_cast<size_t>(dst) | reinterpret_cast<size_t>(src) | bytes;
    if (all % 16 == 0)
        copy_row<uint4>(dst, src, bytes);
    else if (all % 4 == 0)
        copy_row<uint32_t>(dst, src, bytes);
    else
        copy_row<uint8_t>(dst, src, bytes);
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
