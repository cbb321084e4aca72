// SPDX-License-Identifier: Apache-2.0
// What every file of libmxdnn_cuda uses: results of CUDA calls.
#pragma once

#include <cuda_runtime.h>

#include "gpu/cuda/interface/cuda_types.hpp"
#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

inline result_t success() { return {mxdnn_success, nullptr}; }

inline result_t result_of(cudaError_t e) {
    if (e == cudaSuccess) return success();
    (void)cudaGetLastError(); // an error that is reported here must not appear in the next call
    return {e == cudaErrorMemoryAllocation ? mxdnn_out_of_memory : mxdnn_runtime_error,
            cudaGetErrorString(e)};
}

inline cudaStream_t stream_of(const launch_t &at) { return static_cast<cudaStream_t>(at.stream); }

} // namespace cuda
} // namespace impl
} // namespace mxdnn
