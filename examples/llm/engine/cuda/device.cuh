// SPDX-License-Identifier: Apache-2.0
// What the kernels of this folder share: types, products of the tensor cores, launches.
#pragma once

#include <cstdint>
#include <type_traits>
#include <unordered_map>

#include <cuda_bf16.h>

#include "check.hpp"
#include "kernels.hpp"

namespace llm::cuda {

using bf16_t = __nv_bfloat16;

__device__ inline float as_float(float v) { return v; }
__device__ inline float as_float(bf16_t v) { return __bfloat162float(v); }
__device__ inline void put(float *to, float v) { *to = v; }
__device__ inline void put(bf16_t *to, float v) { *to = __float2bfloat16(v); }

// Two floats as bf16, the first in the low half.
__device__ inline uint32_t pair_of(float low, float high) {
    const __nv_bfloat162 p = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&p);
}
// Neighbours, at an even element.
__device__ inline void put_pair(float *to, float low, float high) {
    *reinterpret_cast<float2 *>(to) = make_float2(low, high);
}
__device__ inline void put_pair(bf16_t *to, float low, float high) {
    *reinterpret_cast<uint32_t *>(to) = pair_of(low, high);
}

__device__ inline float sum_of_warp(float v) {
    for (int i = 16; i > 0; i /= 2) v += __shfl_xor_sync(~0u, v, i);
    return v;
}

// 2^v. Zero for minus infinity.
__device__ inline float power_of_2(float v) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
constexpr float log2_of_e = 1.44269504f;

// c[16x8] += a[16x16] * b[16x8]. Lane 4 * g + t has of a: rows g and g + 8 of elements 2t and 2t + 1, then
// the same rows of elements 8 later; of b: these elements of column g; of c: columns 2t and 2t + 1 of row g,
// then of row g + 8.
__device__ inline void multiply(
        float *c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Kernels of this program start while the work before them ends (programmatic dependent launch). All of that
// has ended after begin_work(), which every kernel calls, and later kernels may start from then on. Before
// it, a kernel may read weights, and what was written before the last kernel of this program: that one has
// begun.
__device__ inline void begin_work() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Whether the code that this device runs of a kernel waits in begin_work(), and may be launched in clusters.
inline bool can_begin_early(const void *kernel) {
    static std::unordered_map<const void *, bool> known;
    const auto found = known.find(kernel);
    if (found != known.end()) return found->second;
    cudaFuncAttributes a = {};
    check(cudaFuncGetAttributes(&a, kernel), "look at a kernel");
    return known[kernel] = a.ptxVersion >= 90;
}

// Puts a kernel into the stream; `cluster` blocks that follow each other in z form a cluster.
template <typename... parameters_t>
void launch_clusters(stream_t s, void (*kernel)(parameters_t...), dim3 grid, unsigned cluster, dim3 threads,
        size_t shared_bytes, const std::common_type_t<parameters_t> &...args) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = s;
    config.attrs = attributes;
    if (can_begin_early(reinterpret_cast<const void *>(kernel))) {
        cudaLaunchAttribute &early = attributes[config.numAttrs++];
        early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early.val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        cudaLaunchAttribute &clusters = attributes[config.numAttrs++];
        clusters.id = cudaLaunchAttributeClusterDimension;
        clusters.val.clusterDim.x = clusters.val.clusterDim.y = 1;
        clusters.val.clusterDim.z = cluster;
    }
    check(cudaLaunchKernelEx(&config, kernel, args...), "start a kernel");
}
template <typename... parameters_t>
void launch(stream_t s, void (*kernel)(parameters_t...), dim3 grid, dim3 threads, size_t shared_bytes,
        const std::common_type_t<parameters_t> &...args) {
    launch_clusters(s, kernel, grid, 1, threads, shared_bytes, args...);
}

} // namespace llm::cuda
