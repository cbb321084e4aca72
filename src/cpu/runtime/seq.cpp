// SPDX-License-Identifier: Apache-2.0
// Work runs in the calling thread alone.
#include "cpu/runtime/runtime.hpp"

namespace mxdnn {
namespace impl {
namespace runtime {

const char *const name = "SEQ";
const unsigned kind = MXDNN_RUNTIME_SEQ;
const bool has_threads = false;
const bool takes_threadpools = false;

int default_concurrency() { return 1; }

void run(int n, const body_t &body) {
    for (int i = 0; i < n; i++) body(i, n);
}

} // namespace runtime
} // namespace impl
} // namespace mxdnn
