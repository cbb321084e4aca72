// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt. It counts columns first: its A is the weights, transposed, its B the source,
// and what it calls rows of the result are columns here.
#include "gpu/cuda/runtime/cublaslt_matmul.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "gpu/cuda/runtime/on_device.hpp"

#if __has_include(<cublasLt.h>)
#include "gpu/cuda/runtime/cublaslt.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

static_assert(sizeof(cublaslt_kernel_t) == sizeof(cublasLtMatmulAlgo_t), "what a choice is made of");

// The handle of a device, and a zero in its memory: the summand of results that are not added to anything.
struct cublaslt_device_t {
    cublasLtHandle_t handle = nullptr;
    float *zero = nullptr;
};

result_t result_of(const cublaslt_t &lt, cublasStatus_t e) {
    if (e == CUBLAS_STATUS_SUCCESS) return success();
    return {e == CUBLAS_STATUS_ALLOC_FAILED ? mxdnn_out_of_memory : mxdnn_runtime_error, lt.status_text(e)};
}

// A separate stream. The legacy stream waits for every blocking stream, which breaks captures.
struct own_stream_t {
    cudaStream_t stream = nullptr;
    cudaError_t make() { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
    ~own_stream_t() {
        if (stream) cudaStreamDestroy(stream);
    }
};

// Only if cuBLASLt has a scale for each row and each column. A macro, because the header decides it.
#define MXDNN_VECTOR_SCALES_VERSION 120900

constexpr int max_devices = 64;
// Created once and never destroyed, because executions at exit may use them.
std::atomic<const cublaslt_device_t *> devices[max_devices];

result_t make_device(int device, const cublaslt_t &lt) {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (devices[device].load()) return success();
    const beside_captures_t beside;
    const on_device_t current(device);
    if (current.error() != cudaSuccess) return cuda::result_of(current.error());
    auto d = std::make_unique<cublaslt_device_t>();
    own_stream_t own;
    cudaError_t e = cudaMalloc(&d->zero, sizeof(float));
    if (e == cudaSuccess) e = own.make();
    if (e == cudaSuccess) e = cudaMemsetAsync(d->zero, 0, sizeof(float), own.stream);
    if (e == cudaSuccess) e = cudaStreamSynchronize(own.stream);
    const result_t made = e == cudaSuccess ? result_of(lt, lt.create(&d->handle)) : cuda::result_of(e);
    if (made.ok())
        devices[device] = d.release();
    else
        cudaFree(d->zero); // the next attempt begins again
    return made;
}

result_t open(int device, const cublaslt_t *&lt, const cublaslt_device_t *&d) {
    const char *why_not = nullptr;
    lt = open_cublaslt(&why_not);
    if (!lt) return {mxdnn_unimplemented, why_not};
    if (device >= max_devices) return {mxdnn_unimplemented, "devices beyond the 64th do without cuBLASLt"};
    d = devices[device].load(std::memory_order_acquire);
    if (d) return success();
    const result_t r = make_device(device, *lt);
    d = devices[device].load(std::memory_order_acquire);
    return r;
}

cudaDataType_t type_of(data_type_t dt) {
    switch (dt) {
    case mxdnn_f32: return CUDA_R_32F;
    case mxdnn_f16: return CUDA_R_16F;
    case mxdnn_f8_e4m3: return CUDA_R_8F_E4M3;
    default: return CUDA_R_16BF;
    }
}

// The description of a product for cuBLASLt. It is on the stack, so that nothing is allocated.
class description_t {
public:
    description_t(const cublaslt_t &functions, const cublaslt_matmul_t &m, const cublaslt_buffers_t &x)
        : lt(functions) {
        note(lt.init_desc(&op_, sizeof(op_), CUBLAS_COMPUTE_32F, CUDA_R_32F));
        set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE,
                m.bias   ? m.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS
                : m.relu ? CUBLASLT_EPILOGUE_RELU
                         : CUBLASLT_EPILOGUE_DEFAULT);
        const cudaDataType_t result = type_of(m.dst), factors = type_of(m.factors);
        if (m.bias) {
            set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, result);
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, x.bias);
        }
        if (factors == CUDA_R_8F_E4M3) {
            set_vector_scales();
            set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, x.column_scales);
            set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x.row_scales);
            // Sums of 14 bits become f32 as they go.
            set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t(0));
        }
        if (m.scaled) set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
        layout(a_, factors, m.depth, m.columns, m.weights_stride);
        layout(b_, factors, m.depth, m.rows, m.src_stride);
        layout(d_, result, m.columns, m.rows, m.dst_stride);
    }

    // The first suggestion that always adds up each result in the same order: in one place or, with parts, in
    // several and then in a second kernel.
    cublasStatus_t choose(cublasLtHandle_t handle, cublasLtMatmulAlgo_t &algo, bool parts) {
        cublasLtMatmulPreferenceOpaque_t preference;
        note(lt.init_preference(&preference, sizeof(preference)));
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
            note(lt.set_preference(&preference, what, &value, sizeof(value)));
        };
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(cublaslt_workspace_bytes));
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                uint32_t(parts ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE));
        for (const auto what : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
            prefer(what, uint32_t(cublaslt_align));
        if (status_ != CUBLAS_STATUS_SUCCESS) return status_;
        cublasLtMatmulHeuristicResult_t found;
        int count = 0;
        const cublasStatus_t e =
                lt.get_heuristic(handle, &op_, &a_, &b_, &d_, &d_, &preference, 1, &found, &count);
        if (e != CUBLAS_STATUS_SUCCESS) return e;
        if (count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
        algo = found.algo;
        return CUBLAS_STATUS_SUCCESS;
    }

    bool has_room(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t &algo) {
        cublasLtMatmulHeuristicResult_t found;
        return status_ == CUBLAS_STATUS_SUCCESS
               && lt.check(handle, &op_, &a_, &b_, &d_, &d_, &algo, &found) == CUBLAS_STATUS_SUCCESS
               && found.workspaceSize <= size_t(cublaslt_workspace_bytes);
    }

    cublasStatus_t launch(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t &algo,
            const cublaslt_buffers_t &x, const float *zero, cudaStream_t stream) {
        if (status_ != CUBLAS_STATUS_SUCCESS) return status_;
        constexpr float host_one = 1.f, host_zero = 0.f;
        return lt.matmul(handle, &op_, x.scale ? x.scale : &host_one, x.weights, &a_, x.src, &b_,
                x.scale ? zero : &host_zero, x.dst, &d_, x.dst, &d_, &algo, x.workspace,
                size_t(cublaslt_workspace_bytes), stream);
    }

private:
    void note(cublasStatus_t e) {
        if (status_ == CUBLAS_STATUS_SUCCESS) status_ = e;
    }
    template <typename T>
    void set(cublasLtMatmulDescAttributes_t what, T value) {
        note(lt.set_desc(&op_, what, &value, sizeof(value)));
    }
    void set_vector_scales() {
#if CUBLAS_VERSION >= MXDNN_VECTOR_SCALES_VERSION
        set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
        set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
#else
        note(CUBLAS_STATUS_NOT_SUPPORTED); // cublaslt_open() has said so
#endif
    }
    void layout(cublasLtMatrixLayoutOpaque_t &l, cudaDataType_t type, int64_t rows, int64_t columns,
            int64_t step) {
        note(lt.init_layout(&l, sizeof(l), type, uint64_t(rows), uint64_t(columns), step));
    }

    const cublaslt_t &lt;
    cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
    cublasLtMatmulDescOpaque_t op_;
    cublasLtMatrixLayoutOpaque_t a_, b_, d_;
};

// Zeros as input of a trial run, and its stream.
struct trial_t : own_stream_t {
    cublaslt_buffers_t buffers{};
    void *memory = nullptr;

    cudaError_t make(const cublaslt_matmul_t &m) {
        const auto size = [](int64_t rows, int64_t step, int width) {
            return (rows * step * width + 255) / 256 * 256;
        };
        const int64_t src = size(m.rows, m.src_stride, 2), weights = size(m.columns, m.weights_stride, 2),
                      dst = size(m.rows, m.dst_stride, 4), bias = size(1, std::max(m.rows, m.columns), 4);
        const int64_t bytes = src + weights + dst + bias + cublaslt_workspace_bytes;
        cudaError_t e = own_stream_t::make();
        if (e == cudaSuccess) e = cudaMalloc(&memory, size_t(bytes));
        if (e == cudaSuccess)
            e = cudaMemsetAsync(memory, 0, size_t(bytes - cublaslt_workspace_bytes), stream);
        char *p = static_cast<char *>(memory);
        const char *vector = p + src + weights + dst; // can be used for anything
        const float *scales = reinterpret_cast<const float *>(vector);
        buffers = {p, p + src, vector, nullptr, scales, scales, p + src + weights,
                p + src + weights + dst + bias};
        return e;
    }
    ~trial_t() {
        if (memory) cudaFree(memory);
    }
};

} // namespace

result_t cublaslt_open(int device, bool fp8) {
    const cublaslt_t *lt = nullptr;
    const cublaslt_device_t *d = nullptr;
    const result_t opened = open(device, lt, d);
    if (!opened.ok() || !fp8) return opened;
    if (CUBLAS_VERSION < MXDNN_VECTOR_SCALES_VERSION)
        return {mxdnn_unimplemented, "libmxdnn_cuda was built with a header older than 12.9's"};
    if (lt->version() < MXDNN_VECTOR_SCALES_VERSION) return {mxdnn_unimplemented, "it is older than 12.9"};
    return opened;
}

result_t cublaslt_choose(
        int device, const cublaslt_matmul_t &m, int64_t most_rows, cublaslt_kernel_t *kernel) {
    const cublaslt_t *lt = nullptr;
    const cublaslt_device_t *d = nullptr;
    const result_t opened = open(device, lt, d);
    if (!opened.ok()) return opened;
    const beside_captures_t beside;
    const on_device_t current(device);
    if (current.error() != cudaSuccess) return cuda::result_of(current.error());
    cublasLtMatmulAlgo_t algo;
    cublaslt_buffers_t some{};
    some.row_scales = some.column_scales = d->zero;
    cublaslt_matmul_t most = m;
    most.rows = most_rows;
    cublasStatus_t e = description_t(*lt, m, some).choose(d->handle, algo, most_rows > 0);
    if (most_rows > 0
            && (e != CUBLAS_STATUS_SUCCESS || !description_t(*lt, most, some).has_room(d->handle, algo)))
        e = description_t(*lt, m, some).choose(d->handle, algo, false);
    if (e != CUBLAS_STATUS_SUCCESS) return result_of(*lt, e);
    std::memcpy(kernel, &algo, sizeof(algo));
    // The first launch loads its code. So it is launched once here, with few rows.
    cublaslt_matmul_t few = m;
    few.rows = std::min<int64_t>(m.rows, 256);
    trial_t trial;
    cudaError_t made = trial.make(few);
    if (made != cudaSuccess) return cuda::result_of(made);
    if (m.scaled) trial.buffers.scale = d->zero;
    e = description_t(*lt, few, trial.buffers).launch(d->handle, algo, trial.buffers, d->zero, trial.stream);
    if (e != CUBLAS_STATUS_SUCCESS) return result_of(*lt, e);
    return cuda::result_of(cudaStreamSynchronize(trial.stream));
}

result_t cublaslt_launch(const launch_t &at, const cublaslt_matmul_t &m, const cublaslt_kernel_t &kernel,
        const cublaslt_buffers_t &buffers) {
    const cublaslt_t *lt = nullptr;
    const cublaslt_device_t *d = nullptr;
    const result_t opened = open(at.device, lt, d);
    if (!opened.ok()) return opened;
    const on_device_t current(at.device);
    if (current.error() != cudaSuccess) return cuda::result_of(current.error());
    cublasLtMatmulAlgo_t algo;
    std::memcpy(&algo, &kernel, sizeof(algo));
    return result_of(
            *lt, description_t(*lt, m, buffers).launch(d->handle, algo, buffers, d->zero, stream_of(at)));
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

#else

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {
constexpr result_t missing = {mxdnn_unimplemented, "libmxdnn_cuda was built without cuBLASLt's header"};
}

result_t cublaslt_open(int, bool) { return missing; }
result_t cublaslt_choose(int, const cublaslt_matmul_t &, int64_t, cublaslt_kernel_t *) { return missing; }
result_t cublaslt_launch(
        const launch_t &, const cublaslt_matmul_t &, const cublaslt_kernel_t &, const cublaslt_buffers_t &) {
    return missing;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn

#endif
