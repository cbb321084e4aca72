// SPDX-License-Identifier: Apache-2.0
// Registers that move between the warpgroups of a CTA: all four warps of a warpgroup execute this.
#pragma once

namespace mxdnn {
namespace impl {
namespace ptx {

// `registers`: of each thread from here on, a multiple of 8.
template <int registers>
__device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
// Waits until others have given up as many.
template <int registers>
__device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
