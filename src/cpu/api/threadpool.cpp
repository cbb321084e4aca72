// SPDX-License-Identifier: Apache-2.0
// Streams over the caller's threads.
#include <algorithm>
#include <memory>

#include "common/api/api.hpp"
#include "common/engine.hpp"
#include "cpu/pool_region.hpp"
#include "cpu/runtime/runtime.hpp"

using namespace mxdnn::impl;

namespace {

// No later version of the struct is larger. A larger number cannot be its size.
constexpr size_t max_struct_size = 1024;

// Copies the caller's struct in the form that this version knows.
mxdnn_status_t copy_threadpool(mxdnn_threadpool_t &to, const mxdnn_threadpool_t &from) {
    const size_t size = from.struct_size;
    if (size < sizeof(to) || size > max_struct_size)
        return fail(mxdnn_invalid_arguments,
                "the thread pool's struct_size is %zu; it is sizeof(mxdnn_threadpool_t), here %zu", size,
                sizeof(to));
    const char *bytes = reinterpret_cast<const char *>(&from);
    if (std::any_of(bytes + sizeof(to), bytes + size, [](char c) { return c != 0; }))
        return fail(mxdnn_invalid_arguments,
                "the thread pool has members beyond the %zu bytes that this libmxdnn knows, which are not zero; it is older than the caller's header",
                sizeof(to));
    if (from.flags & ~MXDNN_THREADPOOL_ASYNCHRONOUS)
        return fail(mxdnn_invalid_arguments, "thread pool flags 0x%llx; possible is ASYNCHRONOUS (0x1), or 0",
                (unsigned long long)from.flags);
    const char *missing = !from.get_num_threads   ? "get_num_threads"
                          : !from.get_in_parallel ? "get_in_parallel"
                          : !from.parallel_for    ? "parallel_for"
                                                  : nullptr;
    if (missing)
        return fail(mxdnn_invalid_arguments,
                "the thread pool's %s is a null pointer; get_num_threads, get_in_parallel and parallel_for are needed",
                missing);
    if (from.wait && !(from.flags & MXDNN_THREADPOOL_ASYNCHRONOUS))
        return fail(mxdnn_invalid_arguments,
                "the thread pool has a wait, but not the flag ASYNCHRONOUS; only such a pool is waited for");
    const int threads = from.get_num_threads(from.user);
    if (threads < 1)
        return fail(mxdnn_invalid_arguments, "the thread pool has %d threads; it has at least 1", threads);
    to = from;
    to.struct_size = sizeof(to);
    return mxdnn_success;
}

} // namespace

mxdnn_status_t mxdnn_threadpool_interop_stream_create(
        mxdnn_stream_t *stream, mxdnn_engine_t engine, const mxdnn_threadpool_t *threadpool) {
    MXDNN_CHECK_ARG(stream);
    MXDNN_CHECK_ARG(engine);
    MXDNN_CHECK_ARG(threadpool);
    if (engine->kind() != mxdnn_cpu)
        return fail(mxdnn_invalid_arguments, "a thread pool for engine %s; only cpu engines use one",
                engine->target->name);
    if (!runtime::takes_threadpools)
        return fail(mxdnn_unimplemented,
                "this libmxdnn was built with MXDNN_CPU_RUNTIME=%s, which has no streams over a thread pool; build it with TBB or THREADPOOL",
                runtime::name);
    return guarded(__func__, [&] {
        auto s = std::make_unique<stream_t>();
        s->engine = engine;
        MXDNN_CHECK(copy_threadpool(s->threadpool, *threadpool));
        prepare_pool_regions();
        *stream = s.release();
        return mxdnn_success;
    });
}
