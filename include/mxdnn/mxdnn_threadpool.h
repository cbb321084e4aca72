/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Executing on the caller's threads: a pool described by callbacks, and a stream over it. C++ programs may
 * derive a class from mxdnn::threadpool_iface instead (mxdnn_threadpool.hpp). */
#ifndef MXDNN_THREADPOOL_H
#define MXDNN_THREADPOOL_H

#include "mxdnn/mxdnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One part of the work; `context` is what parallel_for was given, `index` is from 0 to n - 1. Any thread may
 * call it. It returns when the part is done, and lets no exception out. */
typedef void (*mxdnn_threadpool_body_t)(void *context, int index);

/** mxdnn_threadpool_t::flags: parallel_for may return before the calls are made. */
#define MXDNN_THREADPOOL_ASYNCHRONOUS UINT64_C(1)

/** A pool of threads. The struct is copied into the stream; what `user` points to outlives the stream. All
 * callbacks may be called by several threads at once. */
typedef struct {
    /** sizeof(mxdnn_threadpool_t), by which later versions know which members there are. */
    size_t struct_size;
    /** 0 or MXDNN_THREADPOOL_ASYNCHRONOUS. */
    uint64_t flags;
    /** Passed to every callback; may be NULL. */
    void *user;
    /** Threads that may work at once, the calling one included if it takes part: at least 1 when the stream
     * is created. Asked in every execution, where less than 1 counts as 1. */
    int (*get_num_threads)(void *user);
    /** Non-zero: the calling thread is one of the pool's that is working on a task just now. The library then
     * works in this thread alone instead of waiting for others. */
    int (*get_in_parallel)(void *user);
    /** Calls body(context, i) once for every i from 0 to n - 1, in any order and in any threads, where n is
     * at least 2 and at most get_num_threads(). Returns mxdnn_success when all calls have returned, or, with
     * MXDNN_THREADPOOL_ASYNCHRONOUS, when it is certain that they will be made. Any other status says that
     * calls which have not begun will not be made; the execution fails with it. While it waits, the calling
     * thread may do other work of the pool, other executions too. */
    mxdnn_status_t (*parallel_for)(void *user, int n, mxdnn_threadpool_body_t body, void *context);
    /** Only with MXDNN_THREADPOOL_ASYNCHRONOUS, and optional: returns when the calls that this thread asked
     * for last have been made; may do work of the pool meanwhile. NULL: the library blocks the thread. */
    void (*wait)(void *user);
} mxdnn_threadpool_t;

/** A stream of a CPU engine that executes on the caller's threads. mxdnn_unimplemented where the library was
 * built with MXDNN_CPU_RUNTIME=SEQ.
 *
 * What a pool does wrong touches no memory that is not the execution's: a call with an index out of range,
 * for the second time, or after the execution has ended does nothing; the library waits for calls that have
 * begun before it returns. An execution for which indices were missing, or repeated, or out of range, is
 * mxdnn_runtime_error with a sentence that names one of them. A callback that throws ends the execution in
 * the same way. Its results are incomplete then. */
mxdnn_status_t MXDNN_API mxdnn_threadpool_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, const mxdnn_threadpool_t *threadpool);

#ifdef __cplusplus
}
#endif

#endif
