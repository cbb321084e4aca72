// SPDX-License-Identifier: Apache-2.0
// What graphs that are being captured forbid.
#pragma once

#include "gpu/cuda/device.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Fails while a stream of the device is being captured, of those that the library knows and of all blocking
// ones: `what` waits for the device, which would break that.
status_t check_no_capture(const device_t &device, const char *what);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
