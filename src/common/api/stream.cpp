// SPDX-License-Identifier: Apache-2.0
#include "common/api/api.hpp"
#include "common/engine.hpp"

using namespace mxdnn::impl;

mxdnn_status_t mxdnn_stream_create(mxdnn_stream_t *stream, mxdnn_engine_t engine, unsigned flags) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    if (flags != mxdnn_stream_in_order)
        return fail(mxdnn_invalid_arguments, "stream flags 0x%x; possible is in_order (0x1)", flags);
    return guarded(__func__, [&] {
        auto s = std::make_unique<stream_t>();
        s->engine = engine;
        if (engine->device) MXDNN_CHECK(engine->device->create_stream(s->device));
        *stream = s.release();
        return mxdnn_success;
    });
}

mxdnn_status_t mxdnn_stream_get_engine(mxdnn_stream_t stream, mxdnn_engine_t *engine) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    *engine = const_cast<engine_t *>(stream->engine);
    return mxdnn_success;
}

mxdnn_status_t mxdnn_stream_wait(mxdnn_stream_t stream) {
    MXDNN_CHECK_ARG(stream);
    // Executions on the host return when they are done.
    return stream->device ? stream->device->wait() : mxdnn_success;
}

mxdnn_status_t mxdnn_stream_destroy(mxdnn_stream_t stream) {
    delete stream;
    return mxdnn_success;
}
