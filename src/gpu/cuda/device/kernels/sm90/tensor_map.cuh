// SPDX-License-Identifier: Apache-2.0
// Tensor maps for the copy engine, made on the host. The driver's function is found through the runtime, so
// that nothing links with the driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

using encode_tensor_map_t = decltype(&cuTensorMapEncodeTiled);

inline encode_tensor_map_t find_encode_tensor_map() {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
#else
    cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, cudaEnableDefault, &found);
#endif
    return found == cudaDriverEntryPointSuccess ? reinterpret_cast<encode_tensor_map_t>(f) : nullptr;
}

// A tensor map for rows of bf16 or FP8, `stride` elements apart: boxes of 128 bytes of box_rows rows, with
// the 128-byte swizzle.
inline cudaError_t make_row_map(uint8_t (&map)[128], bool fp8, const void *rows, int64_t columns,
        int64_t count, int64_t stride, int box_rows) {
    static const encode_tensor_map_t encode = find_encode_tensor_map();
    if (!encode) return cudaErrorNotSupported;
    CUtensorMap m;
    static_assert(sizeof(m) == sizeof(map), "a tensor map");
    const cuuint64_t dims[2] = {cuuint64_t(columns), cuuint64_t(count)},
                     strides[1] = {cuuint64_t(fp8 ? stride : 2 * stride)};
    const cuuint32_t box[2] = {fp8 ? 128u : 64u, cuuint32_t(box_rows)}, steps[2] = {1, 1};
    const CUresult r = encode(&m, fp8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
            const_cast<void *>(rows), dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
            CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    std::memcpy(map, &m, sizeof(m));
    return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
