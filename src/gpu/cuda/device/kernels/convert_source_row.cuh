// SPDX-License-Identifier: Apache-2.0
// What the kernels that make rows of a source share: where a row and its scales are.
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common/formats/plain_bits.hpp"
#include "common/formats/quantize_block.hpp"
#include "common/formats/swizzle_128x4.hpp"
#include "gpu/cuda/device/ptx/barrier.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/interface/convert_source_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The source row of row r of the result; -1: zeros.
__device__ __forceinline__ int64_t source_row_of(const convert_source_args_t &a, int64_t r) {
    if (!a.gather) return a.first + r;
    const int64_t m = a.gather[a.first + r];
    return m < 0 || m >= a.src_rows ? -1 : m;
}

__device__ __forceinline__ const uint8_t *scale_at(
        const convert_source_args_t &a, int64_t row, int64_t block) {
    return a.scales
           + (a.swizzled ? swizzle_128x4::offset(row, block, a.swizzle_cols)
                         : row * a.scale_row_step + block * a.scale_col_step);
}

// A further factor of all blocks of a row whose largest scale is `most`: 2^small_row_shift or 1. Codes are
// below 2^(element_emax + 1).
__device__ __forceinline__ float small_row_factor(uint32_t most, int element_emax) {
    return int(most) - e8m0_t::bias + element_emax + 1 <= small_row_exponent ? float(1 << small_row_shift)
                                                                             : 1.f;
}

// A value of one of the few types of floating-point row scales.
__device__ inline float row_scale(data_type_t dt, const uint8_t *p) {
    uint32_t code = 0;
    for (int i = 0; i < (dt == mxdnn_f32 ? 4 : 2); i++) code |= uint32_t(p[i]) << (8 * i);
    return dt == mxdnn_f32    ? float_of(code)
           : dt == mxdnn_bf16 ? float_of(code << 16)
                              : __half2float(__ushort_as_half(uint16_t(code)));
}

// The largest value of all threads of a CTA. All of them call it.
template <int threads>
__device__ uint32_t largest_of_all(uint32_t mine) {
    __shared__ uint32_t largest[threads / 32];
    uint32_t most = __reduce_max_sync(~0u, mine);
    __syncthreads(); // the result of the previous call has been read
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; i < threads / 32; i++) most = max(most, largest[i]);
    return most;
}

__device__ __forceinline__ uint16_t to_e4m3x2(float low, float high) {
    return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
