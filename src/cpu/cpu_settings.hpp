// SPDX-License-Identifier: Apache-2.0
// Process-wide CPU settings: the ISA cap (environment, then the API) and the number of threads.
#pragma once

#include <string>

#include "cpu/x64/isa.hpp"

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

// Those that can be asked for: "avx2 avx512_core ...".
std::string cpu_isa_names();
// The best level that machine and cap allow. From the first call that fixes it (`fix_cpu_isa`, when
// the first primitive descriptor is created) the cap can no longer change.
x64::cpu_isa_t best_cpu_isa();
void fix_cpu_isa();
status_t set_max_cpu_isa(mxdnn_cpu_isa_t isa);
mxdnn_cpu_isa_t effective_cpu_isa();

// Threads that one execution may use, of those that its primitive descriptor was created for.
int max_concurrency();
status_t set_max_concurrency(int threads); // 0: the machine's

} // namespace impl
} // namespace mxdnn
