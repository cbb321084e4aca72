// SPDX-License-Identifier: Apache-2.0
// Kernels that are built in several variants for every format of the weights.
#pragma once

#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// One variant of a kernel for a format. The list of variants ends where the lookup function returns null.
template <typename args_t>
struct built_t {
    void (*kernel)(args_t);
    int threads, shared_bytes;
    int pair = 1; // CTAs of a cluster, not counting those that share K
};

// Loads the variants of a launch; null: all variants.
template <typename args_t>
cudaError_t prepare_built(const built_t<args_t> *(*variant)(format_t, int), const launch_args_t *like) {
    for (const format_t &f : formats) {
        if (like && like->format != f) continue;
        for (int v = 0; const built_t<args_t> *b = variant(f, v); v++) {
            if (like && (v < like->variant || v - like->variant >= like->variants)) continue;
            const cudaError_t e = load_kernel(b->kernel, b->shared_bytes);
            if (e != cudaSuccess) return e;
        }
    }
    return cudaSuccess;
}

template <typename args_t>
cudaError_t launch_built(
        const built_t<args_t> &b, const launch_t &at, const launch_args_t &a, const args_t &args) {
    return launch_kernel(at, b.kernel,
            {dim3(unsigned(a.grid)), dim3(unsigned(b.threads)), size_t(b.shared_bytes), a.early,
                    a.matmul.splits * b.pair},
            args);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
