// SPDX-License-Identifier: Apache-2.0
// Launches of the Hopper kernels: cluster size, shared memory and programmatic dependent launch.
#pragma once

#include <cuda_runtime.h>

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/sm90_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

struct launch_shape_t {
    int grid, threads, cluster, shared_bytes;
    bool early; // starts before the stream's kernel before it has ended
    int grid_y = 1;
};

// Whether the device can start a kernel before the one before it has ended.
inline bool starts_early(const launch_t &at) { return at.compute_major >= 9; }

template <typename args_t>
cudaError_t launch(
        void (*kernel)(args_t), const launch_shape_t &shape, const args_t &args, cudaStream_t stream) {
    cudaLaunchAttribute attrs[2] = {};
    unsigned count = 0;
    if (shape.early) {
        attrs[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attrs[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (shape.cluster > 1) {
        attrs[count].id = cudaLaunchAttributeClusterDimension;
        attrs[count].val.clusterDim.x = unsigned(shape.cluster);
        attrs[count].val.clusterDim.y = attrs[count].val.clusterDim.z = 1;
        count++;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(shape.grid), unsigned(shape.grid_y));
    config.blockDim = dim3(unsigned(shape.threads));
    config.dynamicSmemBytes = size_t(shape.shared_bytes);
    config.stream = stream;
    config.attrs = attrs;
    config.numAttrs = count;
    return cudaLaunchKernelEx(&config, kernel, args);
}

// One variant of a kernel for a format; a list of them ends where the function that looks one up returns
// null.
template <typename args_t>
struct built_t {
    void (*kernel)(args_t);
    int threads, shared_bytes;
    int pair = 1; // CTAs of a cluster besides those that share K
};

template <typename args_t>
cudaError_t prepare_built(const built_t<args_t> *(*variant)(format_t, int)) {
    for (int f = 0; f < int(format_t::count); f++)
        for (int v = 0; const built_t<args_t> *b = variant(format_t(f), v); v++) {
            const cudaError_t e = load_kernel(b->kernel, b->shared_bytes);
            if (e != cudaSuccess) return e;
        }
    return cudaSuccess;
}

template <typename args_t>
cudaError_t launch_built(
        const built_t<args_t> &b, const launch_t &at, const launch_args_t &a, const args_t &args) {
    return launch(b.kernel, {a.grid, b.threads, a.matmul.splits * b.pair, b.shared_bytes, a.early}, args,
            stream_of(at));
}

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
