// SPDX-License-Identifier: Apache-2.0
// Pieces of work on oneTBB's threads, which mxdnn's executions use, too. Who includes it links TBB::tbb.
#pragma once

#include <cstdint>

// oneTBB is not instrumented, so ThreadSanitizer would report its synchronisation as races. Under
// ThreadSanitizer plain threads are used.
#if defined(__SANITIZE_THREAD__)
#define MXDNN_PLAIN_THREADS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MXDNN_PLAIN_THREADS
#endif
#endif
#if defined(MXDNN_PLAIN_THREADS)
#include <algorithm>
#include <thread>
#include <vector>

#include <tbb/global_control.h>
#else
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#endif

// Calls body(begin, end) on pieces of [0, n), of at least `grain` items where there are so many.
template <typename F>
void on_threads(int64_t n, int64_t grain, const F &body) {
#if defined(MXDNN_PLAIN_THREADS)
    using limit = tbb::global_control;
    const auto most = int64_t(limit::active_value(limit::max_allowed_parallelism));
    const int64_t pieces = std::min(std::max<int64_t>(n / grain, 1), most);
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < pieces; i++)
        threads.emplace_back([&, i] { body(n * i / pieces, n * (i + 1) / pieces); });
    body(int64_t(0), n / pieces);
    for (std::thread &t : threads) t.join();
#else
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, n, size_t(grain)),
            [&](const tbb::blocked_range<int64_t> &r) { body(r.begin(), r.end()); });
#endif
}

#undef MXDNN_PLAIN_THREADS
