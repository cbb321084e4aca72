// SPDX-License-Identifier: Apache-2.0
// The one door between libmxdnn, which has no CUDA in it, and libmxdnn_cuda, which holds the runtime and the
// kernels: a versioned table of C function pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/kernel_list.hpp"
#include "mxdnn/mxdnn_types.h"

namespace mxdnn {
namespace impl {
namespace cuda {

// What a call came to; `text` is null on success, else words that live as long as the library.
struct result_t {
    mxdnn_status_t status;
    const char *text;
    bool ok() const { return status == mxdnn_success; }
};

// What libmxdnn needs to know of a device, or assumes of one that is not present.
struct device_info_t {
    int compute_major, compute_minor;
    int sm_count;
    int shared_bytes; // that one block can have
    int64_t l2_bytes;
    char name[64];
};

// Where a kernel is put.
struct launch_t {
    int device;
    int sm_count;
    void *stream; // cudaStream_t
};

// Grows at its end only; what exists keeps its meaning as long as table_version does. Both libraries are
// built from one source, and a libmxdnn_cuda of another version is refused by name.
constexpr uint32_t table_version = 1;

struct table_t {
    uint32_t version;
    uint32_t kernels;    // kernel_id_t::count of the build
    const char *release; // of mxdnn, e.g. "0.1.0"

    result_t (*device_count)(int *count);
    result_t (*device_info)(int device, device_info_t *info);

    result_t (*allocate)(int device, void **p, size_t bytes);
    result_t (*release_memory)(void *p); // waits for the device
    // The device whose memory p is; -1 for memory that no device owns.
    result_t (*pointer_device)(const void *p, int *device);
    // In any direction, in the order of the stream; from and to pageable host memory the call may wait.
    result_t (*copy)(const launch_t &at, void *dst, const void *src, size_t bytes);
    // Waits for all work on the device, then copies.
    result_t (*copy_now)(int device, void *dst, const void *src, size_t bytes);

    result_t (*stream_create)(int device, void **stream);
    result_t (*stream_destroy)(int device, void *stream);
    result_t (*stream_wait)(int device, void *stream);
    result_t (*stream_device)(void *stream, int *device);
    result_t (*stream_is_capturing)(int device, void *stream, bool *capturing);

    // Loads a kernel onto a device; afterwards launching it allocates and loads nothing.
    result_t (*prepare)(int device, kernel_id_t kernel);
    // `args` is the kernel's argument struct, of `bytes` bytes.
    result_t (*launch)(const launch_t &at, kernel_id_t kernel, const void *args, size_t bytes);
};

// Exported by libmxdnn_cuda under this name; null for a version that it does not speak.
using get_table_t = const table_t *(*)(uint32_t version);
constexpr const char *get_table_name = "mxdnn_cuda_get_table";

} // namespace cuda
} // namespace impl
} // namespace mxdnn
