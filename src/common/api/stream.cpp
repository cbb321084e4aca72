// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"
#include "common/engine.hpp"
#include "gpu/cuda/cuda_table.hpp"
#include "mxdnn/mxdnn_threadpool.hpp"

using namespace mxdnn::impl;

namespace {
mxdnn_status_t create_stream(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, mxdnn::threadpool_iface *threadpool) {
    return guarded("mxdnn_stream_create", [&] {
        if (engine->kind() == mxdnn_cuda) threadpool = nullptr;
        auto s = std::make_unique<stream_t>();
        s->engine = engine;
        s->threadpool = threadpool;
        if (const cuda::device_t *d = engine->device) {
            void *handle = nullptr;
            MXDNN_CHECK(cuda::check(d->table->stream_create(d->index, &handle), "mxdnn_stream_create"));
            MXDNN_CHECK(cuda::stream_state_t::create(s->cuda, *d, handle, true));
        }
        *stream = s.release();
        return mxdnn_success;
    });
}
} // namespace

mxdnn_status_t mxdnn_stream_create(mxdnn_stream_t *stream, mxdnn_engine_t engine, unsigned flags) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    if (flags != mxdnn_stream_in_order)
        return fail(mxdnn_invalid_arguments, "stream flags 0x%x; possible is in_order (0x1)", flags);
    return create_stream(stream, engine, nullptr);
}

mxdnn_status_t mxdnn_threadpool_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, void *threadpool) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(threadpool);
    if (engine->kind() != mxdnn_cpu)
        return fail(mxdnn_invalid_arguments, "a thread pool for engine %s; only cpu engines use one",
                engine->target->name);
    return create_stream(stream, engine, static_cast<mxdnn::threadpool_iface *>(threadpool));
}

mxdnn_status_t mxdnn_stream_get_engine(mxdnn_stream_t stream, mxdnn_engine_t *engine) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    *engine = const_cast<engine_t *>(stream->engine);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_stream_wait(mxdnn_stream_t stream) {
    MXDNN_CHECK_ARG(stream);
    if (!stream->cuda) return mxdnn_success; // executions on the host return when they are done
    const cuda::device_t &d = stream->cuda->device();
    return cuda::check(d.table->stream_wait(d.index, stream->cuda->handle()), "mxdnn_stream_wait");
}

mxdnn_status_t mxdnn_stream_destroy(mxdnn_stream_t stream) {
    delete stream;
    return mxdnn_success;
}
