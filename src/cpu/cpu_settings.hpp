// SPDX-License-Identifier: Apache-2.0
// Process-wide CPU settings: the ISA cap (environment, then the API) and the number of threads.
#pragma once

#include <string>

#include "cpu/x64/isa.hpp"

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

// All names that can be requested: "avx2 avx512_core ...".
std::string cpu_isa_names();
// The best ISA that the machine has and the cap allows. The cap cannot change after fix_cpu_isa(), which the
// first primitive descriptor calls.
x64::cpu_isa_t best_cpu_isa();
void fix_cpu_isa();
status_t set_max_cpu_isa(mxdnn_cpu_isa_t isa);
mxdnn_cpu_isa_t effective_cpu_isa();

// The number of threads that one execution may use.
int max_concurrency();
status_t set_max_concurrency(int threads); // 0: as many as the machine has

} // namespace impl
} // namespace mxdnn
