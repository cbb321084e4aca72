// SPDX-License-Identifier: Apache-2.0
// The products of the table, by cuBLASLt.
#pragma once

#include "gpu/cuda/interface/cublaslt_args.hpp"
#include "gpu/cuda/interface/cuda_types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

result_t cublaslt_open(int device, bool fp8);
result_t cublaslt_choose(
        int device, const cublaslt_matmul_t &m, int64_t most_rows, cublaslt_kernel_t *kernel);
result_t cublaslt_launch(const launch_t &at, const cublaslt_matmul_t &m, const cublaslt_kernel_t &kernel,
        const cublaslt_buffers_t &buffers);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
