// SPDX-License-Identifier: Apache-2.0
// Running work on several threads: oneTBB's, the caller's pool, or the calling thread alone.
#pragma once

#include <functional>

#include "common/engine.hpp"

namespace mxdnn {
namespace impl {

// Threads that an execution on this stream may use, at most `limit`.
int threads_of(const stream_t &stream, int limit);

// Runs on the stream's threads; nthr > 1.
void parallel_on_threads(const stream_t &stream, int nthr, const std::function<void(int, int)> &body);

// body(ithr, nthr) for ithr in [0, nthr), in parallel, and returns when all are done. nthr as
// threads_of() gave it; 1 runs in the calling thread without touching a scheduler.
template <typename F>
void parallel(const stream_t &stream, int nthr, const F &body) {
    if (nthr <= 1) return body(0, 1);
    // A function of a reference holds no copy of the body, and so allocates nothing.
    parallel_on_threads(stream, nthr, std::function<void(int, int)>(std::cref(body)));
}

// The part of [0, n) that belongs to thread ithr: parts differ by one at most.
inline void balance(int64_t n, int nthr, int ithr, int64_t &begin, int64_t &end) {
    const int64_t base = n / nthr, extra = n % nthr;
    begin = ithr * base + (ithr < extra ? ithr : extra);
    end = begin + base + (ithr < extra);
}

} // namespace impl
} // namespace mxdnn
