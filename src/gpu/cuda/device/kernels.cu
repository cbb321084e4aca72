// SPDX-License-Identifier: Apache-2.0
// The entries of the kernels, in the order of their list.
#include "gpu/cuda/device/kernels.hpp"

#include <atomic>

#include "gpu/cuda/arch.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

__global__ void empty() {}

// Kernels for one architecture alone are missing in a build without it.
#define MXDNN_ENTRY(name) &name##_kernel,
#if MXDNN_CUDA_SM90
#define MXDNN_SM90_ENTRY(name) &name##_kernel,
#else
#define MXDNN_SM90_ENTRY(name) nullptr,
#endif
const kernel_entry_t *const list[] = {MXDNN_CUDA_KERNELS(MXDNN_ENTRY, MXDNN_SM90_ENTRY)};

} // namespace

const kernel_entry_t empty_kernel = {0, [](const void *) { return load_kernel(empty); },
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
    return id < kernel_id_t::count ? list[uint32_t(id)] : nullptr;
}

bool has_kernels_of(int capability) {
#define MXDNN_NO(name)
#define MXDNN_ID(name) kernel_id_t::name,
    constexpr kernel_id_t own[] = {MXDNN_CUDA_KERNELS(MXDNN_NO, MXDNN_ID)};
#undef MXDNN_ID
#undef MXDNN_NO
    return capability == sm90.capability && find_kernel(own[0]);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
