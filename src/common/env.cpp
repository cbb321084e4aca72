// SPDX-License-Identifier: Apache-2.0
#include "common/env.hpp"

#include <cstdio>
#include <cstdlib>

namespace mxdnn {
namespace impl {

namespace {

std::string text(const char *name) {
    const char *v = std::getenv(name);
    return v ? v : "";
}

// Words that may be written in upper case, too, as oneDNN's may.
std::string words(const char *name) {
    std::string v = text(name);
    for (char &c : v)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return v;
}

bool flag(const char *name) {
    const std::string v = words(name);
    return !v.empty() && v != "0" && v != "off";
}

int number(const char *name, int otherwise) {
    const std::string v = text(name);
    if (v.empty()) return otherwise;
    constexpr int most = 1 << 30;
    char *end = nullptr;
    const long n = std::strtol(v.c_str(), &end, 10);
    if (*end == '\0' && n >= 0 && n <= most) return int(n);
    fprintf(stderr, "mxdnn: %s is '%s'; it is a whole number from 0 to %d\n", name, v.c_str(), most);
    return otherwise;
}

environment_t read_environment() {
    environment_t e;
    e.verbose = words("MXDNN_VERBOSE");
    e.max_cpu_isa = words("MXDNN_MAX_CPU_ISA");
    e.jit_dump = flag("MXDNN_JIT_DUMP");
    e.jit_profile = flag("MXDNN_JIT_PROFILE");
    e.primitive_cache_capacity = number("MXDNN_PRIMITIVE_CACHE_CAPACITY", e.primitive_cache_capacity);
    e.cuda_library = text("MXDNN_CUDA_LIBRARY");
    return e;
}

} // namespace

const environment_t &environment() {
    static const environment_t e = read_environment();
    return e;
}

} // namespace impl
} // namespace mxdnn
