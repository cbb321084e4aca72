// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory, and copies that arrive at them; of Hopper.
#pragma once

#include <cstdint>

namespace llm::cuda {

__device__ inline uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ inline void init(uint64_t &barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals)
                 : "memory");
}
__device__ inline void arrive(uint64_t &barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// Waits for the end of the phase of this parity.
__device__ inline void wait_for(uint64_t &barrier, uint32_t parity) {
    uint32_t is_done;
    do {
        asm volatile(
                "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                : "=r"(is_done)
                : "r"(shared_address(&barrier)), "r"(parity)
                : "memory");
    } while (!is_done);
}
// After init(), before another thread or a copy meets the barrier.
__device__ inline void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Arrives, and announces bytes that copies will bring.
__device__ inline void arrive_with(uint64_t &barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
                 "r"(bytes)
                 : "memory");
}
// A copy of some multiple of 16 bytes into shared memory, which arrives at the barrier.
__device__ inline void copy(void *to, const void *from, int bytes, uint64_t &barrier) {
    asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    shared_address(to)),
            "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier))
            : "memory");
}

} // namespace llm::cuda
