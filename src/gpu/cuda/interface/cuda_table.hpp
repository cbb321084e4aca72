// SPDX-License-Identifier: Apache-2.0
// The one door between libmxdnn, which has no CUDA in it, and libmxdnn_cuda, which holds the runtime and the
// kernels: a versioned table of C function pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/interface/cublaslt_args.hpp"
#include "gpu/cuda/interface/cuda_types.hpp"
#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// New members are added at the end only, and existing ones keep their meaning as long as table_version does
// not change. Both libraries are built from one source. A libmxdnn_cuda of another version is refused by
// name.
constexpr uint32_t table_version = 8;

// After every call, the calling thread has the same current context as before, or none.
struct table_t {
    uint32_t version;
    uint32_t kernels;    // kernel_id_t::count of the build
    const char *release; // of mxdnn, e.g. "0.1.0"

    result_t (*device_count)(int *count);
    result_t (*device_info)(int device, device_info_t *info);

    result_t (*allocate)(int device, void **p, size_t bytes);
    result_t (*release_memory)(int device, void *p); // waits for the device
    // The device that owns the memory p, as `device` knows it; -1 if no device does.
    result_t (*pointer_device)(int device, const void *p, int *owner);
    // Copies in any direction, in the order of the stream. For pageable host memory the call may wait.
    result_t (*copy)(const launch_t &at, void *dst, const void *src, size_t bytes);
    // Waits for all work on the device, then copies.
    result_t (*copy_now)(int device, void *dst, const void *src, size_t bytes);

    result_t (*stream_create)(int device, void **stream);
    result_t (*stream_destroy)(int device, void *stream);
    result_t (*stream_wait)(int device, void *stream);
    result_t (*stream_device)(int device, void *stream, int *owner);
    result_t (*stream_is_capturing)(int device, void *stream, bool *capturing);

    // Loads a kernel on a device, so that launching it allocates and loads nothing. args: those of later
    // launches, of which only members that select a variant have to be set (types and formats); null: every
    // variant is loaded.
    result_t (*prepare)(int device, kernel_id_t kernel, const void *args, size_t bytes);
    // `args` is the kernel's argument struct, of `bytes` bytes.
    result_t (*launch)(const launch_t &at, kernel_id_t kernel, const void *args, size_t bytes);

    // cuBLASLt, which is opened at the first call: whether a device has it; and whether it is new enough for
    // FP8.
    result_t (*cublaslt_open)(int device, bool fp8);
    // Chooses a kernel whose results always have the same bits, and loads it. The number of rows may change
    // afterwards. For up to most_rows there is workspace for sums over parts of K; 0: none.
    result_t (*cublaslt_choose)(
            int device, const cublaslt_matmul_t &m, int64_t most_rows, cublaslt_kernel_t *kernel);
    result_t (*cublaslt_launch)(const launch_t &at, const cublaslt_matmul_t &m,
            const cublaslt_kernel_t &kernel, const cublaslt_buffers_t &buffers);

    // The devices that the build has code for: this compute capability (80 for 8.0) and later ones; and
    // whether the kernels of one architecture alone (90) are in it.
    int32_t least_capability;
    bool (*has_kernels_of)(int capability);
    // The number of variants that prepare() has loaded so far. Loading again counts again.
    int64_t (*loaded_kernels)();
};

// Exported by libmxdnn_cuda under this name. Null for a version that it does not support.
using get_table_t = const table_t *(*)(uint32_t version);
constexpr const char *get_table_name = "mxdnn_cuda_get_table";

} // namespace cuda
} // namespace impl
} // namespace mxdnn
