// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <chrono>
#include <cstdio>

#include <unistd.h>

namespace llm {

model_t load_model(const options_t &o) {
    using clock = std::chrono::steady_clock;
    const bool is_terminal = isatty(STDERR_FILENO);
    auto last = clock::now();
    bool has_bar = false;
    model_t m = load(o.model, o.load, [&](size_t done, size_t all) {
        const auto now = clock::now();
        if (now - last < std::chrono::milliseconds(is_terminal ? 100 : 2000)) return;
        last = now;
        fprintf(stderr, "%sloading: %zu of %zu layers%s", is_terminal ? "\r" : "", done, all,
                is_terminal ? "" : "\n");
        has_bar = is_terminal;
    });
    if (has_bar) fprintf(stderr, "\r\033[K");
    return m;
}

} // namespace llm
