// SPDX-License-Identifier: Apache-2.0
// A device made current for a while, by the driver's stack of contexts: the caller's context, or that it has
// none, is what it was afterwards. cudaSetDevice() would leave a context behind in a thread that had none,
// and going back with it makes one, of some hundred megabytes, on a device that the caller never used.
#pragma once

#include "gpu/cuda/runtime/runtime.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// If the caller's current context belongs to the device (its own or the runtime's), it is used. Otherwise the
// runtime's is.
class on_device_t {
public:
    explicit on_device_t(int device);
    ~on_device_t();
    on_device_t(const on_device_t &) = delete;
    on_device_t &operator=(const on_device_t &) = delete;
    cudaError_t error() const { return error_; }

private:
    bool pushed_ = false;
    cudaError_t error_;
};

// Allows a call that captures of other threads would forbid. It does not concern their streams.
class beside_captures_t {
public:
    beside_captures_t() { exchange(); }
    ~beside_captures_t() { exchange(); }
    beside_captures_t(const beside_captures_t &) = delete;
    beside_captures_t &operator=(const beside_captures_t &) = delete;

private:
    void exchange();
    int mode_ = cudaStreamCaptureModeRelaxed;
};

// Runs fn with `device` current.
template <typename F>
result_t on_device(int device, F &&fn) {
    const on_device_t guard(device);
    return guard.error() == cudaSuccess ? result_of(fn()) : result_of(guard.error());
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
