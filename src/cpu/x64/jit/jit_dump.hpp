// SPDX-License-Identifier: Apache-2.0
// Writes generated code to files, for a disassembler.
#pragma once

#include <cstddef>

namespace mxdnn {
namespace impl {
namespace x64 {

// Off until set; the environment module sets it from MXDNN_JIT_DUMP.
void set_jit_dump(bool on);

// If on, writes mxdnn_dump_<name>.<n>.bin to the current directory. n counts all kernels of the process. A
// failure to write is ignored.
void jit_dump(const char *name, const void *code, size_t size);

} // namespace x64
} // namespace impl
} // namespace mxdnn
