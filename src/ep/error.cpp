// SPDX-License-Identifier: Apache-2.0
#include "ep/error.hpp"

#include <cstdarg>
#include <cstdio>

namespace mxdnn {
namespace ep {
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
    return status;
}

const char *last_error() { return last_message; }

status_t pass_on(status_t status, const char *what) {
    if (status == mxdnn_success) return status;
    const char *sentence = mxdnn_get_last_error();
    return fail(status, "%s: %s", what, *sentence ? sentence : mxdnn_status2str(status));
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
