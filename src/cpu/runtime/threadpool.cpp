// SPDX-License-Identifier: Apache-2.0
// Work runs on callers' thread pools, and on a stream without one in the calling thread alone.
#include <thread>

#include "cpu/runtime/runtime.hpp"

namespace mxdnn {
namespace impl {
namespace runtime {

const char *const name = "THREADPOOL";
const unsigned kind = MXDNN_RUNTIME_THREADPOOL;
const bool has_threads = false;
const bool takes_threadpools = true;

// Scratchpads are sized for this many threads: the most that a pool can use with the affinity mask.
int default_concurrency() {
    const unsigned n = std::thread::hardware_concurrency();
    return n > 0 ? int(n) : 1;
}

void run(int n, const body_t &body) {
    for (int i = 0; i < n; i++) body(i, n);
}

} // namespace runtime
} // namespace impl
} // namespace mxdnn
