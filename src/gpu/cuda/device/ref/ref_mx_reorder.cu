// SPDX-License-Identifier: Apache-2.0
// The device's reference for mx_reorder: one thread makes one element, or one block of a quantised
// destination. The arithmetic is formats/'s, so the bits are those of the host.
#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/device/ref/ref_reorder_task.cuh"
#include "gpu/cuda/device/ref/threads.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Sets global scales that are given or moved, and 0 where the largest magnitude is to be computed.
__global__ void __launch_bounds__(threads) begin_globals(const __grid_constant__ reorder_args_t a) {
    for (int64_t i = threadIdx.x; i < a.batch; i += threads) {
        int64_t idx[max_ndims] = {};
        batch_index(i, a.dst.ndims, a.dims, idx);
        const matrix_view_t dst(a.dst, idx), src(a.src, idx);
        *dst.global_at() = a.moves ? src.global() : a.given ? a.given[a.one_given ? 0 : i] : 0.f;
    }
}

__global__ void __launch_bounds__(threads) find_largest_of_source(const __grid_constant__ reorder_args_t a) {
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x, matrix = a.rows * a.cols;
    if (i >= a.batch * matrix) return;
    int64_t idx[max_ndims] = {};
    batch_index(i / matrix, a.dst.ndims, a.dims, idx);
    const matrix_view_t dst(a.dst, idx), src(a.src, idx);
    const float amax = nvfp4_global_amax(0, src.value(i % matrix / a.cols, i % a.cols, src.global()));
    atomicMax(reinterpret_cast<unsigned *>(dst.global_at()), bits_of(amax));
}

__global__ void __launch_bounds__(threads) finish_reorder_globals(const __grid_constant__ reorder_args_t a) {
    for (int64_t i = threadIdx.x; i < a.batch; i += threads) {
        int64_t idx[max_ndims] = {};
        batch_index(i, a.dst.ndims, a.dims, idx);
        float *g = matrix_view_t(a.dst, idx).global_at();
        *g = nvfp4_global_scale(*g);
    }
}

__global__ void __launch_bounds__(threads) move_blocks(const __grid_constant__ reorder_args_t a) {
    const int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x;
    if (i < reorder_tasks(a)) reorder_task(a, i);
}

cudaError_t prepare_reorder(const void *) {
    for (auto *k : {begin_globals, find_largest_of_source, finish_reorder_globals, move_blocks})
        if (const cudaError_t e = load_kernel(k)) return e;
    return cudaSuccess;
}

cudaError_t launch_reorder(const launch_t &at, const void *args) {
    const auto &a = *static_cast<const reorder_args_t *>(args);
    const cudaStream_t s = stream_of(at);
    for (int i = 0; i < 2; i++)
        if (a.clear_bytes[i] > 0)
            if (const cudaError_t e = cudaMemsetAsync(a.clear[i], 0, size_t(a.clear_bytes[i]), s)) return e;
    const int64_t elements = a.batch * a.rows * a.cols;
    // A matrix without elements has a global scale, too.
    if (a.dst.quant.global != global_scale_kind_t::none && (a.moves || a.dynamic)) {
        begin_globals<<<1, threads, 0, s>>>(a);
        if (!a.moves && !a.given && elements > 0) {
            find_largest_of_source<<<unsigned(div_up(elements, threads)), threads, 0, s>>>(a);
            finish_reorder_globals<<<1, threads, 0, s>>>(a);
        }
    }
    if (elements == 0) return cudaGetLastError();
    move_blocks<<<unsigned(div_up(reorder_tasks(a), threads)), threads, 0, s>>>(a);
    return cudaGetLastError();
}

} // namespace

const kernel_entry_t ref_mx_reorder_kernel = {sizeof(reorder_args_t), prepare_reorder, launch_reorder};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
