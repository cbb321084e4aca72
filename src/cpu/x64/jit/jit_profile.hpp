// SPDX-License-Identifier: Apache-2.0
// Tells perf the names of generated code.
#pragma once

#include <cstddef>

namespace mxdnn {
namespace impl {
namespace x64 {

// Off until set; the environment module sets it from MXDNN_JIT_PROFILE.
void set_jit_profile(bool on);

// If on, adds a line to perf's map of this process, /tmp/perf-<pid>.map. A failure to write is ignored.
void jit_profile(const char *name, const void *code, size_t size);

} // namespace x64
} // namespace impl
} // namespace mxdnn
