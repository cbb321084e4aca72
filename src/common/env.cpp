// SPDX-License-Identifier: Apache-2.0
#include "common/env.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/shown.hpp"

namespace mxdnn {
namespace impl {

namespace {

std::string text(const char *name) {
    // A program with more rights than who started it takes nothing from their environment: a variable names a
    // library to load.
    const char *v = secure_getenv(name);
    return v ? v : "";
}

// Values that may be in upper case, as in oneDNN.
std::string words(const char *name) {
    std::string v = text(name);
    for (char &c : v)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return v;
}

bool flag(const char *name) {
    constexpr struct {
        const char *word;
        bool on;
    } known[] = {{"", false}, {"0", false}, {"off", false}, {"false", false}, {"no", false}, {"1", true},
            {"on", true}, {"true", true}, {"yes", true}};
    const std::string v = words(name);
    for (const auto &k : known)
        if (v == k.word) return k.on;
    fprintf(stderr, "mxdnn: %s is %s; it is 0 or 1\n", name, shown(v).c_str());
    return false;
}

int number(const char *name, int otherwise) {
    const std::string v = text(name);
    if (v.empty()) return otherwise;
    constexpr int most = 1 << 30;
    int64_t n = 0;
    const bool digits = std::all_of(v.begin(), v.end(), [&](char c) {
        if (c < '0' || c > '9') return false;
        n = std::min<int64_t>(n * 10 + (c - '0'), int64_t(most) + 1);
        return true;
    });
    if (digits && n <= most) return int(n);
    fprintf(stderr, "mxdnn: %s is %s; it is a whole number from 0 to %d\n", name, shown(v).c_str(), most);
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
