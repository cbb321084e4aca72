// SPDX-License-Identifier: Apache-2.0
// The table's dense products, by cuBLASLt.
#pragma once

#include "gpu/cuda/cuda_types.hpp"
#include "gpu/cuda/dense_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

result_t dense_open(int device, bool fp8);
result_t dense_choose(int device, const dense_matmul_t &m, int64_t most_rows, dense_kernel_t *kernel);
result_t dense_launch(const launch_t &at, const dense_matmul_t &m, const dense_kernel_t &kernel,
        const dense_buffers_t &buffers);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
