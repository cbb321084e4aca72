// SPDX-License-Identifier: Apache-2.0
// Work runs on oneTBB's threads.
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "cpu/runtime/runtime.hpp"

// oneTBB is not instrumented, so ThreadSanitizer would report its synchronisation as races. Under
// ThreadSanitizer plain threads are used.
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
namespace runtime {

const char *const name = "TBB";
const unsigned kind = MXDNN_RUNTIME_TBB;
const bool has_threads = true;
const bool takes_threadpools = true;

int default_concurrency() { return oneapi::tbb::info::default_concurrency(); }

void run(int n, const body_t &body) {
#if defined(MXDNN_THREAD_SANITIZER)
    std::vector<std::thread> threads;
    for (int i = 1; i < n; i++) threads.emplace_back([&, i] { body(i, n); });
    body(0, n);
    for (std::thread &t : threads) t.join();
#else
    // Isolated: while the calling thread waits, it takes no task of its caller. Such a task could begin
    // another execution, wait for a lock that the caller holds, or take longer than this execution.
    oneapi::tbb::this_task_arena::isolate([&] {
        oneapi::tbb::parallel_for(
                0, n, [&](int i) { body(i, n); }, oneapi::tbb::static_partitioner());
    });
#endif
}

} // namespace runtime
} // namespace impl
} // namespace mxdnn
