// SPDX-License-Identifier: Apache-2.0
// Process-wide settings of the CPU.
#include "cpu/cpu_settings.hpp"
#include "cpu/x64/jit/jit_dump.hpp"
#include "mxdnn/mxdnn.h"

using namespace mxdnn::impl;

mxdnn_status_t mxdnn_set_max_cpu_isa(mxdnn_cpu_isa_t isa) { return set_max_cpu_isa(isa); }
mxdnn_cpu_isa_t mxdnn_get_effective_cpu_isa(void) { return effective_cpu_isa(); }
mxdnn_status_t mxdnn_set_max_concurrency(int threads) { return set_max_concurrency(threads); }
int mxdnn_get_max_concurrency(void) { return max_concurrency(); }

mxdnn_status_t mxdnn_set_jit_dump(int enable) {
    x64::set_jit_dump(enable != 0);
    return mxdnn_success;
}
