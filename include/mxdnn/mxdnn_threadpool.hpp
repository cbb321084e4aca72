// SPDX-License-Identifier: Apache-2.0
/// @file
/// Executing on the caller's threads, as a class: the interface of a pool, and a stream over it.
///
/// The interface and its behaviour are those of oneDNN's threadpool, so a class written for one
/// serves both with another base. Only the callbacks of mxdnn_threadpool.h reach the library.
#ifndef MXDNN_THREADPOOL_HPP
#define MXDNN_THREADPOOL_HPP

#include <cstdint>
#include <functional>

#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_threadpool.h"

namespace mxdnn {

/// A pool of threads. The caller derives from it and keeps the object alive longer than the
/// streams made over it. One object may be asked by several threads at once. What a member throws
/// ends the execution, as an error with its words.
struct threadpool_iface {
    virtual ~threadpool_iface() = default;

    /// Threads that may work at once, the calling one included if it takes part; at least 1.
    virtual int get_num_threads() const = 0;

    /// Whether the calling thread is one of the pool's that is working on a task just now; the
    /// library then does the work in this thread instead of waiting for others.
    virtual bool get_in_parallel() const = 0;

    /// Calls fn(i, n) once for every i from 0 to n - 1, in any order and in any threads. Unless the
    /// pool is asynchronous, returns after the last call has.
    virtual void parallel_for(int n, const std::function<void(int, int)> &fn) = 0;

    /// 0 or ASYNCHRONOUS; asked when a stream is made.
    virtual uint64_t get_flags() const = 0;

    /// Never called, since the library waits for its own calls: there for classes that override oneDNN's.
    virtual void wait() {}

    /// parallel_for() may return at once, with a copy of fn; the library waits for the calls itself.
    static constexpr uint64_t ASYNCHRONOUS = MXDNN_THREADPOOL_ASYNCHRONOUS;
};

/// Streams over the caller's threads.
namespace threadpool_interop {

using mxdnn::threadpool_iface;

/// The callbacks that stand for the object.
inline mxdnn_threadpool_t callbacks_of(threadpool_iface *threadpool) {
    mxdnn_threadpool_t p = {};
    p.struct_size = sizeof(p);
    p.flags = threadpool->get_flags();
    p.user = threadpool;
    p.get_num_threads = [](void *user) -> int {
        return static_cast<threadpool_iface *>(user)->get_num_threads();
    };
    p.get_in_parallel = [](void *user) -> int {
        return static_cast<threadpool_iface *>(user)->get_in_parallel();
    };
    p.parallel_for = [](void *user, int n, mxdnn_threadpool_body_t body, void *context) -> mxdnn_status_t {
        static_cast<threadpool_iface *>(user)->parallel_for(
                n, [body, context](int i, int) { body(context, i); });
        return mxdnn_success;
    };
    return p;
}

/// A stream that executes on the caller's threads.
inline stream make_stream(const engine &aengine, threadpool_iface *threadpool) {
    mxdnn_stream_t s = nullptr;
    mxdnn_threadpool_t p = {};
    if (threadpool) p = callbacks_of(threadpool);
    error::wrap_c_api(mxdnn_threadpool_interop_stream_create(&s, aengine.get(), threadpool ? &p : nullptr),
            "could not create a stream over a threadpool");
    return stream(s);
}

} // namespace threadpool_interop
} // namespace mxdnn

#endif
