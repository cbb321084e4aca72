// SPDX-License-Identifier: Apache-2.0
// The list of kernels. A new one is a file, a value of kernel_id_t and a row here.
#include "gpu/cuda/device/kernels.hpp"

#include <atomic>

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

__global__ void empty() {}

// Hopper's own are missing in a build without that architecture.
#if MXDNN_CUDA_HOPPER
#define MXDNN_HOPPERS_OWN(kernel) &kernel
#else
#define MXDNN_HOPPERS_OWN(kernel) nullptr
#endif

const kernel_entry_t *const list[] = {&empty_kernel, &dequantise_tiles_kernel, &group_by_ids_kernel,
        &sm80_table_gemm_kernel, &moe_permute_kernel, &moe_route_kernel, &moe_unpermute_kernel,
        &move_tiles_kernel, &sm80_gemm_kernel, &quantise_both_axes_kernel, &quantise_results_kernel,
        &quantise_tiles_kernel, &ref_grouped_matmul_kernel, &ref_moe_permute_kernel, &ref_moe_route_kernel,
        &ref_moe_unpermute_kernel, &ref_mx_matmul_kernel, &ref_mx_reorder_kernel, &scatter_link_kernel,
        &scatter_sum_kernel, MXDNN_HOPPERS_OWN(sm90_gemv_kernel), MXDNN_HOPPERS_OWN(sm90_grouped_gemv_kernel),
        MXDNN_HOPPERS_OWN(sm90_fp8_weights_kernel), MXDNN_HOPPERS_OWN(sm90_gemm_kernel),
        &convert_source_kernel};
static_assert(sizeof(list) / sizeof(list[0]) == size_t(kernel_id_t::count), "a row for every kernel");

} // namespace

const kernel_entry_t empty_kernel = {kernel_id_t::empty, 0, [](const void *) { return load_kernel(empty); },
        [](const launch_t &at, const void *) {
            empty<<<1, 1, 0, stream_of(at)>>>();
            return cudaGetLastError();
        }};

namespace {

std::atomic<int64_t> loaded{0};

} // namespace

int64_t loaded_kernels() { return loaded; }
void count_loaded_kernel() { loaded++; }

const kernel_entry_t *find_kernel(kernel_id_t id) {
    const kernel_entry_t *k = id < kernel_id_t::count ? list[uint32_t(id)] : nullptr;
    return k && k->id == id ? k : nullptr;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
