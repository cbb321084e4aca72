// SPDX-License-Identifier: Apache-2.0
// Verbose lines: "mxdnn_verbose,v1,<component>,<event>,...", on standard output as oneDNN's are.
#pragma once

namespace mxdnn {
namespace impl {

enum verbose_flag_t : unsigned {
    verbose_none = 0,
    verbose_error = 1u << 0,
    verbose_dispatch = 1u << 1,
    verbose_profile_create = 1u << 2,
    verbose_profile_exec = 1u << 3,
    verbose_all = (1u << 4) - 1
};

// All words, for messages that refuse another.
constexpr const char *verbose_words = "none error dispatch profile_create profile_exec all, joined by commas";

// Whether lines of this kind are wanted. It is fast, because every execution asks.
bool verbose(verbose_flag_t kind);
// Sets comma-separated words. With an unknown word it returns false, changes nothing, and names the word in
// *bad.
bool set_verbose_words(const char *words, const char **bad);

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void verbose_line(const char *format, ...);

double now_ms();

} // namespace impl
} // namespace mxdnn
