// SPDX-License-Identifier: Apache-2.0
#include "cpu/threading.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <oneapi/tbb/parallel_for.h>

#include "mxdnn/mxdnn_threadpool.hpp"

// oneTBB is not instrumented, and ThreadSanitizer would take its ordering of threads for races: under it,
// work runs on plain threads.
#if defined(__SANITIZE_THREAD__)
#define MXDNN_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MXDNN_THREAD_SANITIZER
#endif
#endif
#if defined(MXDNN_THREAD_SANITIZER)
#include <thread>
#include <vector>
#endif

namespace mxdnn {
namespace impl {

int threads_of(const stream_t &stream, int limit) {
    int n = limit;
    if (stream.threadpool)
        n = stream.threadpool->get_in_parallel() ? 1 : std::min(n, stream.threadpool->get_num_threads());
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
#if defined(MXDNN_THREAD_SANITIZER)
    std::vector<std::thread> threads;
    for (int i = 1; i < nthr; i++) threads.emplace_back([&, i] { body(i, nthr); });
    body(0, nthr);
    for (std::thread &t : threads) t.join();
#else
    oneapi::tbb::parallel_for(
            0, nthr, [&](int i) { body(i, nthr); }, oneapi::tbb::static_partitioner());
#endif
}

} // namespace impl
} // namespace mxdnn
