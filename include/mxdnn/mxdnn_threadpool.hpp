// SPDX-License-Identifier: Apache-2.0
// Executing on the caller's threads: the interface of a pool, and a stream over it.
//
// The interface and its behaviour are those of oneDNN's threadpool, so a class written for one
// serves both with another base. Caller and library must be built with the same C++ standard
// library, since a std::function passes between them.
#ifndef MXDNN_THREADPOOL_HPP
#define MXDNN_THREADPOOL_HPP

#include <cstdint>
#include <functional>

#include "mxdnn/mxdnn.hpp"

namespace mxdnn {

/// A pool of threads. The caller derives from it and keeps the object alive longer than the
/// streams made over it. One object may be asked by several threads at once.
struct threadpool_iface {
    virtual ~threadpool_iface() = default;

    /// Threads that may work at once, the calling one included if it takes part.
    virtual int get_num_threads() const = 0;

    /// Whether the calling thread is one of the pool's that is working on a task just now; the
    /// library then does the work in this thread instead of waiting for others.
    virtual bool get_in_parallel() const = 0;

    /// Calls fn(i, n) once for every i from 0 to n - 1, in any order and in any threads. Unless the
    /// pool is asynchronous, returns after the last call has.
    virtual void parallel_for(int n, const std::function<void(int, int)> &fn) = 0;

    /// 0 or ASYNCHRONOUS.
    virtual uint64_t get_flags() const = 0;

    /// parallel_for() may return at once, with a copy of fn; the library waits for the calls itself.
    static constexpr uint64_t ASYNCHRONOUS = 1;
};

} // namespace mxdnn

extern "C" {

/** A stream of a CPU engine that executes on `threadpool`, a pointer to a
 * mxdnn::threadpool_iface that outlives the stream. */
mxdnn_status_t MXDNN_API mxdnn_threadpool_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, void *threadpool);
}

namespace mxdnn {
namespace threadpool_interop {

using mxdnn::threadpool_iface;

/// A stream that executes on the caller's threads.
inline stream make_stream(const engine &aengine, threadpool_iface *threadpool) {
    mxdnn_stream_t s = nullptr;
    error::wrap_c_api(mxdnn_threadpool_interop_stream_create(&s, aengine.get(), threadpool),
            "could not create a stream over a threadpool");
    return stream(s);
}

} // namespace threadpool_interop
} // namespace mxdnn

#endif
