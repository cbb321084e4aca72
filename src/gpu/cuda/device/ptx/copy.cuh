// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that complete on an mbarrier, and shared-memory loads.
#pragma once

#include "gpu/cuda/device/ptx/barrier.cuh"

namespace mxdnn {
namespace impl {
namespace ptx {

// 1-D bulk copy; addresses and size are multiples of 16.
__device__ __forceinline__ void bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t bar) {
    asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    to),
            "l"(from), "r"(bytes), "r"(bar)
            : "memory");
}
// Copies a box of a 2-D tensor. The first coordinate is that of neighbouring elements. Elements outside of
// the tensor become zeros, and count as bytes.
__device__ __forceinline__ void tensor_copy(uint32_t to, const void *map, int x, int y, uint32_t bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%2, %3}], "
                 "[%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(bar)
                 : "memory");
}
// The same to that address in all CTAs of the cluster whose bits are set. Each has a barrier at `bar`.
__device__ __forceinline__ void tensor_copy_to(
        uint16_t ctas, uint32_t to, const void *map, int x, int y, uint32_t bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(bar), "h"(ctas)
                 : "memory");
}
// Prefetches the cache line of an address to L2, which sees the writes of all.
__device__ __forceinline__ void prefetch_line(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
// The same for many cache lines. Address and size are multiples of 16.
__device__ __forceinline__ void bulk_prefetch(const void *from, uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
// Copies 16 bytes; zeros if `valid` is false.
__device__ __forceinline__ void copy_16(uint32_t to, const void *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
// Arrives at `bar` when all earlier copy_16 of this thread are complete.
__device__ __forceinline__ void copy_arrive(uint32_t bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}
// Ends a group of this thread's copy_16. Waits until all but the last groups, as many as given, are complete.
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups>
__device__ __forceinline__ void copies_wait_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}
// Waits until all copy_16 of this thread are complete.
__device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// ---- loads from an address that is a multiple of their size, at offsets of it ----

struct shared_reader_t {
    uint32_t at;
    __device__ __forceinline__ uint4 read_16(int offset = 0) const {
        uint4 v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(at + offset));
        return v;
    }
    __device__ __forceinline__ uint2 read_8(int offset = 0) const {
        uint2 v;
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at + offset));
        return v;
    }
    __device__ __forceinline__ uint32_t read_4(int offset = 0) const {
        uint32_t v;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at + offset));
        return v;
    }
    __device__ __forceinline__ uint32_t read_2(int offset = 0) const {
        uint16_t v;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at + offset));
        return v;
    }
};
// For global memory that is read once and that no running kernel writes.
struct stream_reader_t {
    const uint8_t *at;
    __device__ __forceinline__ uint4 read_16(int offset = 0) const {
        uint4 v;
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(at + offset));
        return v;
    }
    __device__ __forceinline__ uint2 read_8(int offset = 0) const {
        uint2 v;
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];"
                     : "=r"(v.x), "=r"(v.y)
                     : "l"(at + offset));
        return v;
    }
    __device__ __forceinline__ uint32_t read_4(int offset = 0) const {
        uint32_t v;
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.u32 %0, [%1];" : "=r"(v) : "l"(at + offset));
        return v;
    }
    __device__ __forceinline__ uint32_t read_2(int offset = 0) const {
        uint16_t v;
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.u16 %0, [%1];" : "=h"(v) : "l"(at + offset));
        return v;
    }
};
// Stores four 8 x 8 matrices of 16-bit elements. A lane has the transposed fragments. Lane l gives the
// address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrix_4_transposed(uint32_t at, const uint32_t (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t at, float v) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}
// Loads four 8 x 8 matrices of 16-bit elements. Lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrix_4(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
