// SPDX-License-Identifier: Apache-2.0
// Threads: those of oneTBB, which mxdnn's executions use, too.
#pragma once

#include <cstdint>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

namespace llm {

// Calls body(begin, end) on pieces of [0, n), of at least `grain` items where there are so many.
template <typename F>
void parallel(int64_t n, int64_t grain, const F &body) {
    if (n <= grain) return n > 0 ? body(int64_t(0), n) : void();
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, n, size_t(grain)),
            [&](const tbb::blocked_range<int64_t> &r) { body(r.begin(), r.end()); });
}

} // namespace llm
