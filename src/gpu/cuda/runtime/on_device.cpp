// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/runtime/on_device.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The driver is opened by name, as the runtime does. Asking the runtime for its functions might create a
// context.
struct driver_t {
    decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
    decltype(&cuCtxGetCurrent) get_current = nullptr;
    decltype(&cuCtxPushCurrent) push = nullptr;
    decltype(&cuCtxPopCurrent) pop = nullptr;
    decltype(&cuThreadExchangeStreamCaptureMode) exchange_mode = nullptr;
    bool complete = false;

    static const driver_t &get() {
        static const driver_t d;
        return d;
    }

private:
    driver_t() {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) return;
        complete = true;
        const auto find = [&](auto &function, const char *name) {
            using function_t = std::remove_reference_t<decltype(function)>;
            function = reinterpret_cast<function_t>(dlsym(library, name));
            complete = complete && function;
        };
        find(retain, "cuDevicePrimaryCtxRetain");
        find(get_current, "cuCtxGetCurrent");
        find(push, "cuCtxPushCurrent_v2");
        find(pop, "cuCtxPopCurrent_v2");
        find(exchange_mode, "cuThreadExchangeStreamCaptureMode");
    }
};

// The runtime has the driver's numbers.
cudaError_t error_of(CUresult r) { return static_cast<cudaError_t>(r); }

// The context that the runtime uses for a device. It is never released, because executions at exit may use
// it.
cudaError_t context_of(const driver_t &driver, int device, CUcontext &context) {
    constexpr int most = 64;
    static std::atomic<CUcontext> contexts[most];
    if (device >= most) return cudaErrorInvalidDevice;
    context = contexts[device].load(std::memory_order_acquire);
    if (context) return cudaSuccess;
    const beside_captures_t beside;
    const cudaError_t e = error_of(driver.retain(&context, device));
    if (e == cudaSuccess) contexts[device].store(context, std::memory_order_release);
    return e;
}

} // namespace

on_device_t::on_device_t(int device) {
    const driver_t &driver = driver_t::get();
    error_ = driver.complete ? cudaSuccess : cudaErrorInsufficientDriver;
    CUcontext callers = nullptr, devices = nullptr;
    if (error_ == cudaSuccess) error_ = context_of(driver, device, devices);
    if (error_ == cudaSuccess) error_ = error_of(driver.get_current(&callers));
    if (error_ != cudaSuccess || callers == devices) return;
    int callers_device = -1;
    if (callers && cudaGetDevice(&callers_device) == cudaSuccess && callers_device == device) return;
    error_ = error_of(driver.push(devices));
    pushed_ = error_ == cudaSuccess;
}

on_device_t::~on_device_t() {
    CUcontext popped = nullptr;
    if (pushed_) (void)driver_t::get().pop(&popped);
}

void beside_captures_t::exchange() {
    const driver_t &driver = driver_t::get();
    CUstreamCaptureMode mode = static_cast<CUstreamCaptureMode>(mode_);
    if (driver.complete && driver.exchange_mode(&mode) == CUDA_SUCCESS) mode_ = int(mode);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
