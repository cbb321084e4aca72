// SPDX-License-Identifier: Apache-2.0
// Results that leave through shared memory: stores to it, and copies by the copy engine from there to global
// memory, in groups that a thread commits and waits for.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// Stores four 8 x 8 matrices of 16-bit elements. Lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrix_4(uint32_t at, const uint32_t (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t at, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(x), "f"(y) : "memory");
}

// Copies a box to a 3-D tensor. The first coordinate is that of neighbouring elements. Elements outside of
// the tensor are left out.
__device__ __forceinline__ void tensor_copy_out(const void *map, int x, int y, int z, uint32_t from) {
    asm volatile(
            "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
            "r"(x), "r"(y), "r"(z), "r"(from)
            : "memory");
}
__device__ __forceinline__ void copies_out_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Waits until all but the last groups, as many as given, have read shared memory.
template <int groups>
__device__ __forceinline__ void copies_out_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
