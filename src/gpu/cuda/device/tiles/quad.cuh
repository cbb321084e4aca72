// SPDX-License-Identifier: Apache-2.0
// What four neighbouring lanes exchange.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {
namespace tiles {

// Word i of lane q of four neighbours becomes word q of lane i.
__device__ __forceinline__ void transpose_words_of_quad(uint32_t (&w)[4]) {
#pragma unroll
    for (int s = 2; s > 0; s /= 2) {
        const bool upper = threadIdx.x & s;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & s) continue;
            const uint32_t got = __shfl_xor_sync(~0u, upper ? w[i] : w[i + s], s);
            (upper ? w[i] : w[i + s]) = got;
        }
    }
}
// The same with the bytes of a word.
__device__ __forceinline__ uint32_t transpose_bytes_of_quad(uint32_t w) {
    w = __byte_perm(w, __shfl_xor_sync(~0u, w, 2), threadIdx.x & 2 ? 0x3276 : 0x5410);
    return __byte_perm(w, __shfl_xor_sync(~0u, w, 1), threadIdx.x & 1 ? 0x3715 : 0x6240);
}

} // namespace tiles
} // namespace cuda
} // namespace impl
} // namespace mxdnn
