// SPDX-License-Identifier: Apache-2.0
// Rows that another kernel makes meanwhile: their factors tell which of them are there.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// The bits of the factor of a row that is not there yet: -0, which no factor is.
constexpr uint32_t row_to_come = 0x80000000u;

// Between accesses to global memory, of this device and of its copy engine: what was written before is seen
// by those who see a flag that is stored afterwards.
__device__ __forceinline__ void fence_with_copies() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.acq_rel.gpu;\n\tfence.proxy.async.global;" ::: "memory");
#endif
}

__device__ __forceinline__ void store_flag(float *at, float v) {
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(at), "f"(v) : "memory");
}
__device__ __forceinline__ float load_flag(const float *at) {
    float v;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(at) : "memory");
    return v;
}
// Waits until the row with this factor is there.
__device__ __forceinline__ void wait_for_row(const float *factor) {
    while (__float_as_uint(load_flag(factor)) == row_to_come) {
    }
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
