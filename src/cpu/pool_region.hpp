// SPDX-License-Identifier: Apache-2.0
// Parallel work on a caller's thread pool, which is not trusted to make each call once and in time.
#pragma once

#include "cpu/body.hpp"
#include "mxdnn/mxdnn_threadpool.h"

namespace mxdnn {
namespace impl {

// The most threads of one execution.
constexpr int max_threads = 4096;

// body(i, n) for i in [0, n), 1 < n <= max_threads, on the pool's threads. Throws where a call was missing,
// repeated or out of range, and what the pool or the body threw: in any case when no call is running any
// more, and none will begin.
void run_on_pool(const mxdnn_threadpool_t &pool, int n, const body_t &body);

// So that the first execution on a pool allocates nothing.
void prepare_pool_regions();

} // namespace impl
} // namespace mxdnn
