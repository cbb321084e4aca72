// SPDX-License-Identifier: Apache-2.0
// What libmxdnn and libmxdnn_cuda tell each other, and kernels are launched with.
#pragma once

#include <cstdint>

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

// What libmxdnn needs to know of a device.
struct device_info_t {
    int compute_major, compute_minor;
    int capability() const { return compute_major * 10 + compute_minor; } // 90 for 9.0
    int sm_count;
    int shared_bytes; // that one block can have
    int64_t l2_bytes;
    char name[64];
};

// Where a kernel is put.
struct launch_t {
    int device;
    int sm_count;
    int capability; // of the device, 90 for 9.0
    void *stream;   // cudaStream_t
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
