// SPDX-License-Identifier: Apache-2.0
// Fetching to L2, where everybody's writes go, too: so it may begin while what is fetched is still written.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// Address and size are multiples of 16. On devices before Hopper this does nothing.
__device__ __forceinline__ void fetch_to_l2(
        [[maybe_unused]] const void *at, [[maybe_unused]] uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at), "r"(bytes));
#endif
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
