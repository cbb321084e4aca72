// SPDX-License-Identifier: Apache-2.0
// What threads that share sums need: stores of 16 bytes to shared memory, of this CTA and of others in its
// cluster, and of fragments of results.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

__device__ __forceinline__ void store_shared(uint32_t at, const float4 &v) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}
// Stores two 8 x 8 matrices of 16-bit elements. A lane has the transposed fragments. Lane l gives the address
// of row l % 8 of matrix l / 8; those above 15 give none.
__device__ __forceinline__ void store_matrix_2_transposed(uint32_t at, uint32_t a, uint32_t b) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(a), "r"(b)
                 : "memory");
}
// A store to another CTA of the cluster that counts as 16 announced bytes of a barrier there.
__device__ __forceinline__ void cluster_store_async(uint32_t remote, const float4 &v, uint32_t remote_bar) {
    asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::
                    "r"(remote),
            "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(remote_bar)
            : "memory");
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
