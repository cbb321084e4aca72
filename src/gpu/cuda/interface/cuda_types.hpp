// SPDX-License-Identifier: Apache-2.0
// What libmxdnn and libmxdnn_cuda tell each other, and kernels are launched with.
#pragma once

#include <cstdint>

#include "mxdnn/mxdnn_types.h"

namespace mxdnn {
namespace impl {
namespace cuda {

// The outcome of a call. `text` is null on success; otherwise a string that lives as long as the library.
struct result_t {
    mxdnn_status_t status;
    const char *text;
    bool ok() const { return status == mxdnn_success; }
};

// The properties of a device that libmxdnn needs.
struct device_info_t {
    int compute_major, compute_minor;
    int capability() const { return compute_major * 10 + compute_minor; } // 90 for 9.0
    int sm_count;
    int shared_bytes; // largest size for one block
    int64_t l2_bytes;
    char name[64];
};

// The place of a launch.
struct launch_t {
    int device;
    int sm_count;
    int capability; // of the device, 90 for 9.0
    void *stream;   // cudaStream_t
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
