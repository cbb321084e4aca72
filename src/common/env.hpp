// SPDX-License-Identifier: Apache-2.0
// Every environment variable of the library, read once, here and nowhere else.
#pragma once

#include <string>

namespace mxdnn {
namespace impl {

struct environment_t {
    std::string verbose;                 // MXDNN_VERBOSE
    std::string max_cpu_isa;             // MXDNN_MAX_CPU_ISA
    bool jit_dump = false;               // MXDNN_JIT_DUMP
    bool jit_profile = false;            // MXDNN_JIT_PROFILE: writes a perf map of generated code
    int primitive_cache_capacity = 1024; // MXDNN_PRIMITIVE_CACHE_CAPACITY
    std::string cuda_library; // MXDNN_CUDA_LIBRARY: the file to open; empty: libmxdnn searches for it
};

const environment_t &environment();

} // namespace impl
} // namespace mxdnn
