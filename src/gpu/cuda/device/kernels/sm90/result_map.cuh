// SPDX-License-Identifier: Apache-2.0
// Tensor maps for results that leave through shared memory.
#pragma once

#include "gpu/cuda/device/kernels/sm90/tensor_map.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace gradient {

// A tensor map for results of 16 or 32 bits, [groups][count][columns]: boxes of 128 bytes of 16 rows of a
// group.
inline cudaError_t make_result_map(uint8_t (&map)[128], int bytes, void *to, int64_t columns, int64_t count,
        int64_t groups, int64_t row_stride, int64_t group_stride) {
    static const packed::encode_tensor_map_t encode = packed::find_encode_tensor_map();
    if (!encode) return cudaErrorNotSupported;
    CUtensorMap m;
    const cuuint64_t dims[3] = {cuuint64_t(columns), cuuint64_t(count), cuuint64_t(groups)},
                     strides[2] = {cuuint64_t(row_stride * bytes), cuuint64_t(group_stride * bytes)};
    const cuuint32_t box[3] = {cuuint32_t(128 / bytes), 16, 1}, steps[3] = {1, 1, 1};
    const CUresult r =
            encode(&m, bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, to,
                    dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    std::memcpy(map, &m, sizeof(m));
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace gradient
} // namespace cuda
} // namespace impl
} // namespace mxdnn
