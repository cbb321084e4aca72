// SPDX-License-Identifier: Apache-2.0
// Words that are copied to shared memory while their thread goes on, and a barrier that tells all what one
// of them has seen.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// Copies 4 bytes. copies_wait() (copy.cuh) waits for them.
__device__ __forceinline__ void copy_4(uint32_t to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

// A barrier of `threads` threads of the CTA. Returns whether `seen` is true in any of them.
__device__ __forceinline__ bool named_barrier_any(int id, int threads, bool seen) {
    uint32_t any;
    asm volatile("{\n\t.reg .pred p, q;\n\t"
                 "setp.ne.u32 p, %3, 0;\n\t"
                 "barrier.red.or.pred q, %1, %2, p;\n\t"
                 "selp.u32 %0, 1, 0, q;\n\t}"
                 : "=r"(any)
                 : "r"(id), "r"(threads), "r"(uint32_t(seen))
                 : "memory");
    return any;
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
