// SPDX-License-Identifier: Apache-2.0
/// @file
/// Executing on the caller's threads: the interface of a thread pool as a class, and a stream over it.
///
/// The interface and its behaviour are those of oneDNN's threadpool. A class written for oneDNN's needs
/// another base class only. The library sees the callbacks of mxdnn_threadpool.h.
#ifndef MXDNN_THREADPOOL_HPP
#define MXDNN_THREADPOOL_HPP

#include <cstdint>
#include <functional>

#include "mxdnn/mxdnn.hpp"
#include "mxdnn/mxdnn_threadpool.h"

namespace mxdnn {

/// A pool of threads. The caller derives from it, and keeps the object alive longer than the streams over it.
/// Several threads may call it at the same time. An exception of a member function ends the execution as an
/// error with the exception's text.
struct threadpool_iface {
    virtual ~threadpool_iface() = default;

    /// The number of threads that may work at the same time, with the calling thread if it takes part; at
    /// least 1.
    virtual int get_num_threads() const = 0;

    /// True: the calling thread belongs to the pool and is executing one of its tasks. The library then does
    /// all work in this thread and does not wait for others.
    virtual bool get_in_parallel() const = 0;

    /// Calls fn(i, n) once for every i from 0 to n - 1, in any order and in any threads. Returns when all
    /// calls have returned, unless the pool is asynchronous.
    virtual void parallel_for(int n, const std::function<void(int, int)> &fn) = 0;

    /// 0 or ASYNCHRONOUS. The library asks when a stream is created.
    virtual uint64_t get_flags() const = 0;

    /// Never called, since the library waits for its own calls. It exists for classes that override oneDNN's
    /// function.
    virtual void wait() {}

    /// parallel_for() may return before the calls are made, and keeps a copy of fn. The library waits for the
    /// calls.
    static constexpr uint64_t ASYNCHRONOUS = MXDNN_THREADPOOL_ASYNCHRONOUS;
};

/// Streams over the caller's threads.
namespace threadpool_interop {

using mxdnn::threadpool_iface;

/// The callbacks of an object, which has to outlive them.
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

/// A stream of a CPU engine that executes on the caller's threads. The pool has to outlive the stream.
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
