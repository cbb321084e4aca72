/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Executing on the caller's threads: a thread pool as a set of callbacks, and a stream over it. In C++
 * a class derived from mxdnn::threadpool_iface (mxdnn_threadpool.hpp) does the same. */
#ifndef MXDNN_THREADPOOL_H
#define MXDNN_THREADPOOL_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One part of the work. `context` is the pointer that parallel_for got. `index` is from 0 to n - 1. Any
 * thread may call the function. It returns when the part is done, and throws no exception. */
typedef void (*mxdnn_threadpool_body_t)(void *context, int index);

/** mxdnn_threadpool_t::flags: parallel_for may return before the calls are made. */
#define MXDNN_THREADPOOL_ASYNCHRONOUS UINT64_C(1)

/** A pool of threads. The stream copies the struct. The object behind `user` has to live longer than the
 * stream. Several threads may call the callbacks at the same time. */
typedef struct {
    /** sizeof(mxdnn_threadpool_t). Later versions of the library learn from it which members there are. */
    size_t struct_size;
    /** 0 or MXDNN_THREADPOOL_ASYNCHRONOUS. */
    uint64_t flags;
    /** Passed to every callback; may be NULL. */
    void *user;
    /** The number of threads that may work at the same time, with the calling thread if it takes part. It is
     * at least 1 when the stream is created. The library asks in every execution; less than 1 then counts as
     * 1. */
    int (*get_num_threads)(void *user);
    /** Non-zero: the calling thread belongs to the pool and is executing one of its tasks. The library then
     * does all work in this thread and does not wait for others. */
    int (*get_in_parallel)(void *user);
    /** Calls body(context, i) once for every i from 0 to n - 1, in any order and in any threads. n is from 2
     * to get_num_threads(). Returns mxdnn_success when all calls have returned. With
     * MXDNN_THREADPOOL_ASYNCHRONOUS it may return as soon as it is certain that they will be made. Any other
     * status says that calls which have not begun will not be made; the execution then fails with that
     * status. While the calling thread waits, it may do other work of the pool, also other executions. */
    mxdnn_status_t (*parallel_for)(void *user, int n, mxdnn_threadpool_body_t body, void *context);
    /** Only with MXDNN_THREADPOOL_ASYNCHRONOUS, and optional. Returns when all calls of this thread's last
     * parallel_for have been made. Meanwhile it may do other work of the pool. With NULL the library blocks
     * the thread. */
    void (*wait)(void *user);
} mxdnn_threadpool_t;

/** Creates a stream of a CPU engine that executes on the caller's threads. mxdnn_invalid_arguments: another
 * engine, or a struct that is not valid. mxdnn_unimplemented: the library was built with
 * MXDNN_CPU_RUNTIME=SEQ.
 *
 * A pool with errors cannot make the library touch memory of others. A call does nothing if its index is out
 * of range, if it is the second call for an index, or if the execution has ended. The library waits for calls
 * that have begun before it returns. If a call is missing, repeated or out of range, the execution is
 * mxdnn_runtime_error, and the sentence names one such index. A callback that throws has the same effect. The
 * results are incomplete then. */
mxdnn_status_t MXDNN_API mxdnn_threadpool_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, const mxdnn_threadpool_t *threadpool);

#ifdef __cplusplus
}
#endif

#endif
