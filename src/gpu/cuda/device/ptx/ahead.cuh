// SPDX-License-Identifier: Apache-2.0
// Timing: what lets a warp go ahead of the others, or stay.
#pragma once

namespace mxdnn {
namespace impl {
namespace ptx {

// An arrival at named_barrier(id, threads) of threads that need not wait there; not with id 0.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
    asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// Fetches a tensor map for the copies to come.
__device__ __forceinline__ void prefetch_map(const void *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// About so long.
__device__ __forceinline__ void sleep_ns(int ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

} // namespace ptx
} // namespace impl
} // namespace mxdnn
