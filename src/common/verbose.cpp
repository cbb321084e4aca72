// SPDX-License-Identifier: Apache-2.0
#include "common/verbose.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "common/env.hpp"
#include "common/shown.hpp"

namespace mxdnn {
namespace impl {

namespace {

constexpr struct {
    const char *word;
    unsigned flags;
} words_list[] = {
        {"none", verbose_none},
        {"error", verbose_error},
        {"dispatch", verbose_dispatch},
        {"profile_create", verbose_profile_create},
        {"profile_exec", verbose_profile_exec},
        {"profile", verbose_profile_create | verbose_profile_exec},
        {"all", verbose_all},
        // oneDNN's numbers
        {"0", verbose_none},
        {"1", verbose_error | verbose_profile_exec},
        {"2", verbose_error | verbose_profile_exec | verbose_profile_create},
};

bool parse(const char *words, unsigned &flags, const char **bad) {
    flags = 0;
    for (const char *p = words; *p;) {
        const size_t n = std::strcspn(p, ",");
        bool known = n == 0;
        for (const auto &w : words_list)
            if (std::strlen(w.word) == n && std::strncmp(w.word, p, n) == 0) {
                flags |= w.flags;
                known = true;
            }
        if (!known) {
            *bad = p;
            return false;
        }
        p += n + (p[n] == ',');
    }
    return true;
}

std::atomic<unsigned> &flags() {
    static std::atomic<unsigned> f{[] {
        unsigned v = 0;
        const char *bad = nullptr;
        if (!parse(environment().verbose.c_str(), v, &bad)) {
            std::fprintf(stderr, "mxdnn: MXDNN_VERBOSE has the unknown word %s; possible are %s\n",
                    shown(bad).c_str(), verbose_words);
            v = 0;
        }
        return v;
    }()};
    return f;
}

} // namespace

bool verbose(verbose_flag_t kind) { return flags().load(std::memory_order_relaxed) & kind; }

bool set_verbose_words(const char *words, const char **bad) {
    unsigned v = 0;
    if (!parse(words, v, bad)) return false;
    flags().store(v, std::memory_order_relaxed);
    return true;
}

void verbose_line(const char *format, ...) {
    // One write per line, so that lines of several threads do not mix. Long lines are cut only if memory has
    // run out.
    char on_stack[1024];
    constexpr const char *head = "mxdnn_verbose,v1,";
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const size_t head_bytes = std::strlen(head),
                 needed = head_bytes + size_t(std::max(std::vsnprintf(nullptr, 0, format, args), 0)) + 2;
    va_end(args);
    const std::unique_ptr<char[]> large(
            needed > sizeof(on_stack) ? new (std::nothrow) char[needed] : nullptr);
    char *line = large ? large.get() : on_stack;
    const size_t room = large ? needed : sizeof(on_stack);
    std::memcpy(line, head, head_bytes);
    line[head_bytes] = 0;
    std::vsnprintf(line + head_bytes, room - head_bytes - 1, format, again);
    va_end(again);
    std::strcat(line, "\n");
    std::fputs(line, stdout);
    std::fflush(stdout);
}

double now_ms() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(clock::now().time_since_epoch()).count();
}

} // namespace impl
} // namespace mxdnn
