// SPDX-License-Identifier: Apache-2.0
// Prefetching what comes next, a part at a time.
#pragma once

#include "cpu/x64/reorder/body_simd.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

MXDNN_INLINE void prefetch_line(const uint8_t *p) {
    _mm_prefetch(reinterpret_cast<const char *>(p), _MM_HINT_T0);
}

// Prefetches a part in each of some steps. More at once than there are buffers for lines would be waited for.
struct prefetcher_t {
    static constexpr int line = 64;
    const ahead_t a;
    const int steps, of_run = (a.bytes + line - 1) / line, all = of_run * a.runs;
    const uint8_t *at = a.data;
    int left = of_run, due = 0; // lines of this run; lines times `steps`

    prefetcher_t(const ahead_t &ahead, int n) : a(ahead), steps(n) {}
    void step() {
        for (due += all; due >= steps; due -= steps) {
            prefetch_line(at);
            at += line;
            if (--left) continue;
            at += a.apart - int64_t(of_run) * line;
            left = of_run;
        }
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
