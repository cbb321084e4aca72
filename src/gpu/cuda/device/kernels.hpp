// SPDX-License-Identifier: Apache-2.0
// Kernels behind one face: how each is loaded, and how it is launched on an argument struct.
#pragma once

#include "gpu/cuda/runtime/runtime.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct kernel_entry_t {
    size_t args_bytes;
    // The device is current in both. prepare() loads the code and raises limits, so that launch() only
    // launches. It is called for launches with such args, and reads only the members that select a kernel;
    // null: for all launches.
    cudaError_t (*prepare)(const void *args);
    cudaError_t (*launch)(const launch_t &at, const void *args);
};

const kernel_entry_t *find_kernel(kernel_id_t id);
// Whether the kernels of one architecture alone are in this build; 90 stands for 9.0.
bool has_kernels_of(int capability);

// How many times load_kernel() has been called.
int64_t loaded_kernels();
void count_loaded_kernel();

// Loads the code of a __global__ function.
template <typename F>
cudaError_t load_kernel(F *kernel, int dynamic_shared_bytes = 0) {
    cudaFuncAttributes a;
    count_loaded_kernel();
    const cudaError_t e = cudaFuncGetAttributes(&a, reinterpret_cast<const void *>(kernel));
    if (e != cudaSuccess || dynamic_shared_bytes <= 48 << 10) return e;
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
            cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_shared_bytes);
}

// Loads kernels, up to the first failure.
template <typename kernels_t>
cudaError_t load_kernels(const kernels_t &kernels) {
    for (const auto kernel : kernels)
        if (const cudaError_t e = load_kernel(kernel)) return e;
    return cudaSuccess;
}

// Entries of the kernels, each defined in the file of its kernel.
#define MXDNN_CUDA_ENTRY(name) extern const kernel_entry_t name##_kernel;
MXDNN_CUDA_KERNELS(MXDNN_CUDA_ENTRY, MXDNN_CUDA_ENTRY)
#undef MXDNN_CUDA_ENTRY

} // namespace cuda
} // namespace impl
} // namespace mxdnn
