// SPDX-License-Identifier: Apache-2.0
// Timing: what lets a warp go ahead of the others, or stay.
#pragma once

namespace mxdnn {
namespace impl {
namespace ptx {

// Arrives at named_barrier(id, threads) without waiting; not with id 0.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
    asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// Prefetches a tensor map for later copies.
__device__ __forceinline__ void prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Waits about this long.
__device__ __forceinline__ void sleep_ns(int ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

} // namespace ptx
} // namespace impl
} // namespace mxdnn
