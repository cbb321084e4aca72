// SPDX-License-Identifier: Apache-2.0
// Stores of 16 bytes, to an address that is a multiple of that.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace ptx {

// Stores to global memory, unless `valid` is false. (A plain assignment becomes four stores if the compiler
// does not know the alignment.)
__device__ __forceinline__ void store_16(void *to, const uint4 &v, bool valid) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t"
                 "@p st.global.v4.b32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(uint32_t(valid))
                 : "memory");
}

} // namespace ptx
} // namespace impl
} // namespace mxdnn
