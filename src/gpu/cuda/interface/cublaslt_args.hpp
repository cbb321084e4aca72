// SPDX-License-Identifier: Apache-2.0
// Products that libmxdnn_cuda has cuBLASLt do: src [rows, depth] times weights, held as [columns,
// depth].
#pragma once

#include <cstdint>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct cublaslt_matmul_t {
    int64_t rows, columns, depth;
    int64_t src_stride, weights_stride, dst_stride; // elements from one row to the next
    data_type_t factors, dst; // factors: the type of src and weights: f8_e4m3 with one scale per row and per
                              // column, bf16 or f16
    bool bias;                // a row of dst's type
    bool relu;
    bool scaled; // results are multiplied by a number in device memory
};

// The chosen kernel of cuBLASLt, in its own form, which is valid within one process.
struct cublaslt_kernel_t {
    uint64_t words[8];
};

struct cublaslt_buffers_t {
    const void *src, *weights, *bias;
    const float *scale, *row_scales, *column_scales;
    void *dst, *workspace;
};

// Alignment of pointers and rows in bytes; alignment of the workspace.
constexpr int64_t cublaslt_align = 16, cublaslt_workspace_bytes = int64_t(32) << 20;

} // namespace cuda
} // namespace impl
} // namespace mxdnn
