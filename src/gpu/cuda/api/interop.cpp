// SPDX-License-Identifier: Apache-2.0
#include "mxdnn/mxdnn_cuda.h"

#include "common/api/api.hpp"
#include "common/engine.hpp"
#include "gpu/cuda/device.hpp"
#include "gpu/cuda/interface/cuda_table.hpp"

using namespace mxdnn::impl;

namespace {

status_t check_device(const char *function, const engine_t &engine) {
    if (engine.device) return mxdnn_success;
    return fail(mxdnn_invalid_arguments,
            "%s: engine %s is no CUDA device; make one with mxdnn_engine_create(mxdnn_cuda)", function,
            engine.target->name);
}

// The handle of the per-thread default stream in CUDA.
CUstream_st *const per_thread_stream = reinterpret_cast<CUstream_st *>(2);

} // namespace

mxdnn_status_t mxdnn_cuda_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, struct CUstream_st *cuda_stream) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    return guarded(__func__, [&] {
        MXDNN_CHECK(check_device("mxdnn_cuda_interop_stream_create", *engine));
        const cuda::device_t &d = *cuda::device_of(*engine);
        int device = d.index;
        // The scratchpad of a stream is for executions that run one after the other.
        if (cuda_stream == per_thread_stream)
            return fail(mxdnn_invalid_arguments,
                    "cudaStreamPerThread is another stream in every thread; make a stream of your own");
        if (cuda_stream)
            MXDNN_CHECK(
                    cuda::check(d.table->stream_device(d.index, cuda_stream, &device), "the CUDA stream"));
        if (device != d.index)
            return fail(mxdnn_invalid_arguments,
                    "the CUDA stream belongs to device %d, the engine is device %d", device, d.index);
        auto s = std::make_unique<stream_t>();
        s->engine = engine;
        MXDNN_CHECK(cuda::cuda_stream_t::create(s->device, d, cuda_stream, false));
        *stream = s.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_cuda_interop_stream_get_stream(mxdnn_stream_t stream, struct CUstream_st **cuda_stream) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(cuda_stream);
    MXDNN_CHECK(check_device(__func__, *stream->engine));
    *cuda_stream = static_cast<struct CUstream_st *>(cuda::cuda_stream_of(*stream).handle());
    return mxdnn_success;
}

mxdnn_status_t mxdnn_cuda_interop_memory_create(
        mxdnn_memory_t *memory, const_mxdnn_memory_desc_t md, mxdnn_engine_t engine, void *device_pointer) {
    MXDNN_CHECK_ARG(memory);
    MXDNN_CHECK_ARG(md);
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(device_pointer);
    MXDNN_CHECK(check_device(__func__, *engine));
    const cuda::device_t &d = *cuda::device_of(*engine);
    int device = -1;
    MXDNN_CHECK(cuda::check(d.table->pointer_device(d.index, device_pointer, &device), "the device pointer"));
    if (device != d.index)
        return fail(mxdnn_invalid_arguments, "%p is %s, the engine is device %d", device_pointer,
                device < 0 ? "no device memory" : "memory of another device", d.index);
    return mxdnn_memory_create(memory, md, engine, device_pointer);
}

mxdnn_status_t mxdnn_cuda_interop_copy(mxdnn_stream_t stream, void *dst, const void *src, size_t bytes) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK(check_device(__func__, *stream->engine));
    if (bytes == 0) return mxdnn_success;
    MXDNN_CHECK_ARG(dst);
    MXDNN_CHECK_ARG(src);
    const cuda::cuda_stream_t &s = cuda::cuda_stream_of(*stream);
    return cuda::check(s.device().table->copy(s.launch(), dst, src, bytes), __func__);
}
