// SPDX-License-Identifier: Apache-2.0
// Running work on several threads: the library's (cpu/runtime), the caller's pool, or the calling thread
// alone.
#pragma once

#include <algorithm>

#include "common/primitive.hpp"
#include "cpu/body.hpp"

namespace mxdnn {
namespace impl {

// Threads that an execution on this stream may use: at most `limit`, for which its scratchpad is, and what
// max_concurrency() is now.
int threads_of(const stream_t &stream, int limit);

// Runs on the stream's threads; nthr > 1. Throws what a caller's pool or the body throws, when nothing of the
// work is running any more.
void parallel_on_threads(const stream_t &stream, int nthr, const body_t &body);

// body(ithr, nthr) for ithr in [0, nthr), in parallel, and returns when all are done. nthr as
// threads_of() gave it; 1 runs in the calling thread without touching a scheduler. The calling thread may
// execute other primitives meanwhile, as tasks of a pool that it helps: nothing of one execution may be in a
// thread_local, nor in the processor's state (tiles), across this.
template <typename F>
void parallel(const exec_ctx_t &ctx, int nthr, const F &body) {
    if (nthr <= 1) return body(0, 1);
    if (ctx.record) ctx.record->threads = std::max(ctx.record->threads, nthr);
    parallel_on_threads(ctx.stream, nthr, body_of(body));
}

// The part of [0, n) that belongs to thread ithr: parts differ by one at most.
inline void balance(int64_t n, int nthr, int ithr, int64_t &begin, int64_t &end) {
    const int64_t base = n / nthr, extra = n % nthr;
    begin = ithr * base + (ithr < extra ? ithr : extra);
    end = begin + base + (ithr < extra);
}

} // namespace impl
} // namespace mxdnn
