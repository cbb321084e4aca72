// SPDX-License-Identifier: Apache-2.0
/// @file
/// Streams: the order of executions.
#ifndef MXDNN_HPP_STREAM_HPP
#define MXDNN_HPP_STREAM_HPP

#include "mxdnn/hpp/engine.hpp"

namespace mxdnn {

template <>
struct handle_traits<mxdnn_stream_t> {
    static void destroy(mxdnn_stream_t p) { mxdnn_stream_destroy(p); }
};

/// The order of executions. On a CPU engine an execution returns when it is done.
struct stream : public handle<mxdnn_stream_t> {
    /// How executions of a stream follow one another.
    enum class flags : unsigned {
        in_order = mxdnn_stream_in_order,
        default_flags = mxdnn_stream_default_flags,
    };

    /// Empty.
    stream() = default;
    /// Owns a C handle from now on; when `weak`, only refers to it.
    explicit stream(mxdnn_stream_t s, bool weak = false) : handle(s, weak) {}

    /// A stream of an engine.
    explicit stream(const engine &aengine, flags aflags = flags::default_flags) {
        mxdnn_stream_t s = nullptr;
        error::wrap_c_api(mxdnn_stream_create(&s, aengine.get(), static_cast<unsigned>(aflags)),
                "could not create a stream");
        reset(s);
    }

    /// The engine. Engines are never freed.
    engine get_engine() const {
        mxdnn_engine_t e = nullptr;
        error::wrap_c_api(mxdnn_stream_get_engine(get(), &e), "could not get the engine of a stream");
        return engine(e, true);
    }

    /// Returns when all work that was put into the stream has ended.
    stream &wait() {
        error::wrap_c_api(mxdnn_stream_wait(get()), "could not wait on a stream");
        return *this;
    }
};

} // namespace mxdnn

#endif
