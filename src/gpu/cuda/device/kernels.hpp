// SPDX-License-Identifier: Apache-2.0
// Kernels behind one face: how each is loaded, and how it is launched on an argument struct.
#pragma once

#include "gpu/cuda/runtime/runtime.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct kernel_entry_t {
    kernel_id_t id;
    size_t args_bytes;
    // The device is current in both. prepare() loads the code and raises limits, so that launch() only
    // launches: of launches with such args, of which only what a kernel is chosen by is looked at and has to
    // be there; null: of all.
    cudaError_t (*prepare)(const void *args);
    cudaError_t (*launch)(const launch_t &at, const void *args);
};

const kernel_entry_t *find_kernel(kernel_id_t id);

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

// Loads kernels up to the first that cannot be.
template <typename kernels_t>
cudaError_t load_kernels(const kernels_t &kernels) {
    for (const auto kernel : kernels)
        if (const cudaError_t e = load_kernel(kernel)) return e;
    return cudaSuccess;
}

// Entries of the kernels, each defined in the file of its kernel.
extern const kernel_entry_t dequantise_tiles_kernel, empty_kernel, group_by_ids_kernel,
        sm80_table_gemm_kernel, moe_permute_kernel, moe_route_kernel, moe_unpermute_kernel, move_tiles_kernel,
        sm80_gemm_kernel, quantise_both_axes_kernel, quantise_tiles_kernel, ref_grouped_matmul_kernel,
        ref_moe_permute_kernel, ref_moe_route_kernel, ref_moe_unpermute_kernel, ref_mx_matmul_kernel,
        ref_mx_reorder_kernel, sm90_gemv_kernel, sm90_grouped_gemv_kernel, sm90_fp8_weights_kernel,
        sm90_gemm_kernel, quantise_results_kernel, scatter_link_kernel, scatter_sum_kernel,
        convert_source_kernel;

} // namespace cuda
} // namespace impl
} // namespace mxdnn
