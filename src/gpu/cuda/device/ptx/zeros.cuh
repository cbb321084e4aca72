// SPDX-License-Identifier: Apache-2.0
// Zeros in shared memory for tensor cores and copies.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// `at` is a multiple of 16.
__device__ __forceinline__ void store_zeros_16(uint32_t at) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0) : "memory");
}
// What this thread stored to shared memory before is what tensor cores and copies find there afterwards.
__device__ __forceinline__ void fence_for_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
