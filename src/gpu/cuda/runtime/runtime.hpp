// SPDX-License-Identifier: Apache-2.0
// What every file of libmxdnn_cuda uses: results of CUDA calls, and the current device set for a while.
#pragma once

#include <cuda_runtime.h>

#include "gpu/cuda/cuda_types.hpp"
#include "gpu/cuda/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

inline result_t success() { return {mxdnn_success, nullptr}; }

inline result_t result_of(cudaError_t e) {
    if (e == cudaSuccess) return success();
    (void)cudaGetLastError(); // what is reported here is not to be found by the next call
    return {e == cudaErrorMemoryAllocation ? mxdnn_out_of_memory : mxdnn_runtime_error,
            cudaGetErrorString(e)};
}

// Makes a device current, and puts back the caller's.
class on_device_t {
public:
    explicit on_device_t(int device) {
        error_ = cudaGetDevice(&before_);
        if (error_ == cudaSuccess && before_ != device) {
            error_ = cudaSetDevice(device);
            changed_ = error_ == cudaSuccess;
        }
    }
    ~on_device_t() {
        if (changed_) cudaSetDevice(before_);
    }
    on_device_t(const on_device_t &) = delete;
    on_device_t &operator=(const on_device_t &) = delete;
    cudaError_t error() const { return error_; }

private:
    int before_ = 0;
    bool changed_ = false;
    cudaError_t error_;
};

// Lets a call that other threads' captures would forbid go ahead: it concerns none of their streams.
class beside_captures_t {
public:
    beside_captures_t() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    ~beside_captures_t() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    beside_captures_t(const beside_captures_t &) = delete;
    beside_captures_t &operator=(const beside_captures_t &) = delete;

private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Runs fn with `device` current.
template <typename F>
result_t on_device(int device, F &&fn) {
    const on_device_t guard(device);
    return guard.error() == cudaSuccess ? result_of(fn()) : result_of(guard.error());
}

inline cudaStream_t stream_of(const launch_t &at) { return static_cast<cudaStream_t>(at.stream); }

} // namespace cuda
} // namespace impl
} // namespace mxdnn
