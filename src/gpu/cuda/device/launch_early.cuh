// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch for kernels that wait before they look at anything.
#pragma once

#include <type_traits>

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/ptx/barrier.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

// Starts a kernel while the one before it in the stream ends, where devices can do that. The kernel has to
// call start_of_early_kernel() before it reads or writes anything.
template <typename... parameters_t>
cudaError_t launch_early(const launch_t &at, void (*kernel)(parameters_t...), dim3 grid, dim3 threads,
        size_t shared_bytes, const std::common_type_t<parameters_t> &...args) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream_of(at);
    config.attrs = &early;
    config.numAttrs = at.compute_major >= 9 ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

// What comes before is done by then, so that whatever starts after all CTAs have come here may rely on that.
__device__ __forceinline__ void start_of_early_kernel() {
    ptx::wait_for_earlier_kernels();
    ptx::let_later_kernels_start();
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
