// SPDX-License-Identifier: Apache-2.0
#include "cpu/threading.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <oneapi/tbb/parallel_for.h>

#include "mxdnn/mxdnn_threadpool.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace mxdnn {
namespace impl {

namespace {

#if defined(__SANITIZE_THREAD__)
void happens_before(void *token) { __tsan_release(token); }
void happens_after(void *token) { __tsan_acquire(token); }
#else
void happens_before(void *) {}
void happens_after(void *) {}
#endif

} // namespace

int threads_of(const stream_t &stream, int limit) {
    int n = limit;
    if (stream.threadpool) n = stream.threadpool->get_in_parallel() ? 1 : std::min(n, stream.threadpool->get_num_threads());
    return std::max(n, 1);
}

void parallel_on_threads(const stream_t &stream, int nthr, const std::function<void(int, int)> &body) {
    if (stream.threadpool) {
        threadpool_iface &pool = *stream.threadpool;
        if (!(pool.get_flags() & threadpool_iface::ASYNCHRONOUS)) return pool.parallel_for(nthr, body);
        // An asynchronous pool is waited for here: CPU executions return when they are done.
        std::mutex mutex;
        std::condition_variable done;
        int left = nthr;
        pool.parallel_for(nthr, [&](int i, int n) {
            body(i, n);
            const std::lock_guard<std::mutex> lock(mutex);
            if (--left == 0) done.notify_one();
        });
        std::unique_lock<std::mutex> lock(mutex);
        done.wait(lock, [&] { return left == 0; });
        return;
    }
    // ThreadSanitizer does not see how oneTBB, which is not instrumented, orders its threads: it is told.
    char began = 0, ended = 0;
    happens_before(&began);
    oneapi::tbb::parallel_for(
            0, nthr,
            [&](int i) {
                happens_after(&began);
                body(i, nthr);
                happens_before(&ended);
            },
            oneapi::tbb::static_partitioner());
    happens_after(&ended);
}

} // namespace impl
} // namespace mxdnn
