// SPDX-License-Identifier: Apache-2.0
// The table that libmxdnn works through: devices, memory, streams and launches on the CUDA runtime, which is
// linked statically and finds the driver itself.
#include <cstdio>
#include <cstring>

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/interface/cuda_table.hpp"
#include "gpu/cuda/runtime/cublaslt_matmul.hpp"
#include "gpu/cuda/runtime/on_device.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

result_t device_count(int *count) {
    *count = 0;
    const cudaError_t e = cudaGetDeviceCount(count);
    if (e == cudaSuccess) return success();
    (void)cudaGetLastError();
    *count = 0;
    static char text[200];
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        std::snprintf(text, sizeof(text), "no CUDA driver is installed (libcuda.so.1 is not found)");
    else if (e == cudaErrorInsufficientDriver)
        std::snprintf(text, sizeof(text),
                "the CUDA driver supports CUDA %d.%d, and mxdnn needs %d.%d; install a newer driver",
                driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else
        std::snprintf(text, sizeof(text), "the CUDA driver reports: %s", cudaGetErrorString(e));
    return {mxdnn_device_unavailable, text};
}

result_t device_info(int device, device_info_t *info) {
    cudaDeviceProp p;
    const cudaError_t e = cudaGetDeviceProperties(&p, device);
    if (e != cudaSuccess) return result_of(e);
    *info = {};
    info->compute_major = p.major;
    info->compute_minor = p.minor;
    info->sm_count = p.multiProcessorCount;
    info->shared_bytes = int(p.sharedMemPerBlockOptin);
    info->l2_bytes = p.l2CacheSize;
    std::snprintf(info->name, sizeof(info->name), "%.63s", p.name);
    return success();
}

result_t allocate(int device, void **p, size_t bytes) {
    const beside_captures_t beside;
    return on_device(device, [&] { return cudaMalloc(p, bytes); });
}

result_t release_memory(int device, void *p) {
    const beside_captures_t beside;
    return on_device(device, [&] { return cudaFree(p); });
}

result_t pointer_device(int device, const void *p, int *owner) {
    cudaPointerAttributes a{};
    const result_t r = on_device(device, [&] { return cudaPointerGetAttributes(&a, p); });
    *owner = a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged ? a.device : -1;
    return r;
}

result_t copy(const launch_t &at, void *dst, const void *src, size_t bytes) {
    return on_device(
            at.device, [&] { return cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_of(at)); });
}

result_t copy_now(int device, void *dst, const void *src, size_t bytes) {
    const beside_captures_t beside;
    return on_device(device, [&] {
        const cudaError_t e = cudaDeviceSynchronize();
        if (e != cudaSuccess) return e;
        const cudaError_t copied = cudaMemcpy(dst, src, bytes, cudaMemcpyDefault);
        // With pageable memory, the copy above may not be complete yet.
        return copied == cudaSuccess ? cudaStreamSynchronize(cudaStreamLegacy) : copied;
    });
}

result_t stream_create(int device, void **stream) {
    return on_device(device, [&] {
        cudaStream_t s = nullptr;
        const cudaError_t e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        *stream = s;
        return e;
    });
}

result_t stream_destroy(int device, void *stream) {
    return on_device(device, [&] { return cudaStreamDestroy(static_cast<cudaStream_t>(stream)); });
}

result_t stream_wait(int device, void *stream) {
    return on_device(device, [&] { return cudaStreamSynchronize(static_cast<cudaStream_t>(stream)); });
}

result_t stream_is_capturing(int device, void *stream, bool *capturing) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const result_t r = on_device(device, [&] {
        const cudaError_t e = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
        if (e != cudaErrorStreamCaptureImplicit) return e;
        // The legacy stream, while a stream that it waits for is being captured.
        (void)cudaGetLastError();
        status = cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
    *capturing = status != cudaStreamCaptureStatusNone;
    return r;
}

result_t stream_device(int device, void *stream, int *owner) {
#if CUDART_VERSION >= 12080
    // To ask a stream that is being captured ends its capture. Launches on one of another device fail.
    bool capturing = false;
    const result_t r = stream_is_capturing(device, stream, &capturing);
    if (!r.ok() || capturing) {
        *owner = device;
        return r;
    }
    return on_device(device, [&] { return cudaStreamGetDevice(static_cast<cudaStream_t>(stream), owner); });
#else
    (void)device;
    (void)stream;
    return result_of(
            cudaGetDevice(owner)); // older runtimes do not know; usually it is the caller's current device
#endif
}

result_t prepare(int device, kernel_id_t id, const void *args, size_t bytes) {
    const kernel_entry_t *k = find_kernel(id);
    if (!k || (args && k->args_bytes != bytes))
        return {mxdnn_runtime_error, "libmxdnn_cuda has no such kernel, or another form of it"};
    const beside_captures_t beside;
    return on_device(device, [&] { return k->prepare(args); });
}

result_t launch(const launch_t &at, kernel_id_t id, const void *args, size_t bytes) {
    const kernel_entry_t *k = find_kernel(id);
    if (!k || k->args_bytes != bytes)
        return {mxdnn_runtime_error, "libmxdnn_cuda has no such kernel, or another form of it"};
    return on_device(at.device, [&] { return k->launch(at, args); });
}

constexpr table_t make_table() {
    table_t t{};
    t.version = table_version;
    t.kernels = uint32_t(kernel_id_t::count);
    t.release = MXDNN_RELEASE;
    t.device_count = device_count;
    t.device_info = device_info;
    t.allocate = allocate;
    t.release_memory = release_memory;
    t.pointer_device = pointer_device;
    t.copy = copy;
    t.copy_now = copy_now;
    t.stream_create = stream_create;
    t.stream_destroy = stream_destroy;
    t.stream_wait = stream_wait;
    t.stream_device = stream_device;
    t.stream_is_capturing = stream_is_capturing;
    t.prepare = prepare;
    t.launch = launch;
    t.cublaslt_open = cublaslt_open;
    t.cublaslt_choose = cublaslt_choose;
    t.cublaslt_launch = cublaslt_launch;
    t.least_capability = MXDNN_CUDA_LEAST;
    t.has_kernels_of = has_kernels_of;
    t.loaded_kernels = loaded_kernels;
    return t;
}
constexpr table_t table = make_table();

} // namespace

} // namespace cuda
} // namespace impl
} // namespace mxdnn

extern "C" __attribute__((visibility("default"))) const mxdnn::impl::cuda::table_t *mxdnn_cuda_get_table(
        uint32_t version);
const mxdnn::impl::cuda::table_t *mxdnn_cuda_get_table(uint32_t version) {
    return version == mxdnn::impl::cuda::table_version ? &mxdnn::impl::cuda::table : nullptr;
}
