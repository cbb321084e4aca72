// SPDX-License-Identifier: Apache-2.0
// Launches of kernels: cluster size, shared memory and programmatic dependent launch.
#pragma once

#include <type_traits>

#include "gpu/cuda/device/code_of.hpp"
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/ptx/barrier.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

// Of launch_shape_t.
constexpr bool early = true;

struct launch_shape_t {
    dim3 grid, threads;
    size_t shared_bytes = 0;
    // The kernel starts while the previous kernel of the stream ends, if its code can wait for the end of
    // that kernel before it touches data of earlier kernels.
    bool early = false;
    int cluster = 1;
    bool cooperative = false; // its CTAs wait for each other
};

namespace {

// Whether the code of this file that a device runs has the waits of ptx/barrier.cuh. Each file has an answer
// of its own, so that this and what asks it are local to the file.
bool can_wait(int capability) { return code_of({__CUDA_ARCH_LIST__}, capability) >= 900; }

template <typename... parameters_t>
cudaError_t launch_kernel(const launch_t &at, void (*kernel)(parameters_t...), const launch_shape_t &shape,
        const std::common_type_t<parameters_t> &...args) {
    cudaLaunchAttribute attrs[3] = {};
    unsigned count = 0;
    if (shape.early && can_wait(at.capability)) {
        attrs[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attrs[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (shape.cluster > 1) {
        attrs[count].id = cudaLaunchAttributeClusterDimension;
        attrs[count].val.clusterDim.x = unsigned(shape.cluster);
        attrs[count].val.clusterDim.y = attrs[count].val.clusterDim.z = 1;
        count++;
    }
    if (shape.cooperative) {
        attrs[count].id = cudaLaunchAttributeCooperative;
        attrs[count++].val.cooperative = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.threads;
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream_of(at);
    config.attrs = attrs;
    config.numAttrs = count;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

} // namespace

// The first line of a kernel that starts early and reads nothing before. All earlier work has ended after it.
// Kernels that start after all CTAs have come here may rely on this.
__device__ __forceinline__ void start_of_early_kernel() {
    ptx::wait_for_earlier_kernels();
    ptx::let_later_kernels_start();
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
