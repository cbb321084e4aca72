// SPDX-License-Identifier: Apache-2.0
// Stages of gemm with weights that its formats do not decode (is_rounded): their products are added in f32,
// one by one. That is slow, and rare.
#pragma once

#include "gpu/cuda/device/kernels/sm90/gemm_shared.cuh"
#include "gpu/cuda/device/mma/rounded.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Adds the products of a stage to the sums of a consumer's panel. panel, source: shared addresses of the
// stage. left: the number of its rows of K, or more than it has.
template <typename format, int count>
__device__ __forceinline__ void add_exact(
        float (&sum)[count], uint32_t panel, uint32_t source, const tiling_t &tiling, int left) {
    using k = gemm_t;
    const int thread = threadIdx.x % k::group, row = thread % 4 * 2;
#pragma unroll 1
    for (int i = 0; i < min(left, k::tile_rows); i++) {
        const float2 w = format::exact(ptx::shared_reader_t{panel}, tiling, thread, i);
        // Rows `row` and row + 1 of every eight, under the swizzle.
        const uint32_t at = source + row * k::src_row_bytes + i % 8 * 2;
        const ptx::shared_reader_t even{at + (i / 8 ^ row) * 16},
                odd{at + k::src_row_bytes + (i / 8 ^ (row + 1)) * 16};
#pragma unroll
        for (int r = 0; r < count / 4; r++) {
            float *v = sum + r * 4;
            const float x = format::source(even.read_2(r * 8 * k::src_row_bytes)),
                        y = format::source(odd.read_2(r * 8 * k::src_row_bytes));
            v[0] = fmaf(x, w.x, v[0]), v[1] = fmaf(y, w.x, v[1]);
            v[2] = fmaf(x, w.y, v[2]), v[3] = fmaf(y, w.y, v[3]);
        }
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
