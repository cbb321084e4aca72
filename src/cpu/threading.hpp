// SPDX-License-Identifier: Apache-2.0
// Running work on several threads: the library's (cpu/runtime), the caller's pool, or the calling thread
// alone.
#pragma once

#include <algorithm>

#include "common/primitive.hpp"
#include "cpu/body.hpp"

namespace mxdnn {
namespace impl {

// The number of threads that an execution on this stream may use. It is at most `limit`, for which the
// scratchpad is sized, and at most the present max_concurrency().
int threads_of(const stream_t &stream, int limit);

// Runs on the threads of the stream; nthr > 1. Throws what the caller's pool or the body throws, after all
// parts have ended.
void parallel_on_threads(const stream_t &stream, int nthr, const body_t &body);

// Calls body(ithr, nthr) for ithr in [0, nthr) in parallel, and returns when all are done. nthr comes from
// threads_of(). 1 runs in the calling thread without a scheduler. Meanwhile the calling thread may execute
// other primitives, as tasks of a pool that it helps. So no state of an execution may be in a thread_local or
// in the processor (tiles) across this call.
template <typename F>
void parallel(const exec_ctx_t &ctx, int nthr, const F &body) {
    if (nthr <= 1) return body(0, 1);
    if (ctx.record) ctx.record->threads = std::max(ctx.record->threads, nthr);
    parallel_on_threads(ctx.stream, nthr, body_of(body));
}

// The part of [0, n) that belongs to thread ithr: from its first element to that of the next thread. Parts
// differ by at most one.
inline int64_t first_of_share(int64_t n, int nthr, int ithr) {
    return n / nthr * ithr + std::min<int64_t>(n % nthr, ithr);
}
inline void balance(int64_t n, int nthr, int ithr, int64_t &begin, int64_t &end) {
    begin = first_of_share(n, nthr, ithr);
    end = first_of_share(n, nthr, ithr + 1);
}

} // namespace impl
} // namespace mxdnn
