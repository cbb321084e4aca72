// SPDX-License-Identifier: Apache-2.0
// The library's own threads: one of the files in this folder is built, as MXDNN_CPU_RUNTIME says.
#pragma once

#include "cpu/body.hpp"
#include "mxdnn/mxdnn_types.h"

namespace mxdnn {
namespace impl {
namespace runtime {

extern const char *const name;       // as MXDNN_CPU_RUNTIME says it
extern const unsigned kind;          // as mxdnn_version() says it
extern const bool has_threads;       // it has threads of its own
extern const bool takes_threadpools; // callers may pass a thread pool

// The number of threads that an execution may use unless set_max_concurrency() says less.
int default_concurrency();

// Calls body(i, n) for i in [0, n), n > 1.
void run(int n, const body_t &body);

} // namespace runtime
} // namespace impl
} // namespace mxdnn
