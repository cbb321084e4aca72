// SPDX-License-Identifier: Apache-2.0
#include "common/error.hpp"

#include <cstdarg>
#include <cstdio>

#include "common/verbose.hpp"

namespace mxdnn {
namespace impl {

namespace {
// A plain array: storing the message must work even if memory has run out.
thread_local char last_message[512] = "";
} // namespace

status_t fail(status_t status, const char *format, ...) {
    // Formatted into another buffer first, because an argument may be the last message itself.
    char message[sizeof(last_message)];
    va_list args;
    va_start(args, format);
    std::vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    std::snprintf(last_message, sizeof(last_message), "%s", message);
    if (verbose(verbose_error)) verbose_line("common,error,%s", last_message);
    return status;
}

void leave_reason(const char *text) { std::snprintf(last_message, sizeof(last_message), "%s", text); }

const char *last_error() { return last_message; }

failure_t::failure_t(status_t s, const char *format, ...) : status(s) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
}

reason_t no(const char *what, const char *found, const char *needed) {
    reason_t r;
    r.status = mxdnn_unimplemented;
    std::snprintf(r.text, sizeof(r.text), "%s: found %s, needs %s", what, found, needed);
    return r;
}

reason_t refuse(status_t status, const char *format, ...) {
    reason_t r;
    r.status = status;
    va_list args;
    va_start(args, format);
    std::vsnprintf(r.text, sizeof(r.text), format, args);
    va_end(args);
    return r;
}

} // namespace impl
} // namespace mxdnn
