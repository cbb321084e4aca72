// SPDX-License-Identifier: Apache-2.0
// Parallel work on a caller's thread pool, which is not trusted to make each call once and in time.
#pragma once

#include "cpu/body.hpp"
#include "mxdnn/mxdnn_threadpool.h"

namespace mxdnn {
namespace impl {

// The largest number of threads of one execution.
constexpr int max_threads = 4096;

// Calls body(i, n) for i in [0, n), 1 < n <= max_threads, on the threads of the pool. Throws if a call is
// missing, repeated or out of range, and passes on what the pool or the body throws. In every case no call is
// running then, and none will begin.
void run_on_pool(const mxdnn_threadpool_t &pool, int n, const body_t &body);

// Makes the first execution on a pool free of allocations.
void prepare_pool_regions();

} // namespace impl
} // namespace mxdnn
