// SPDX-License-Identifier: Apache-2.0
// The one way to refuse: a status and the sentence that mxdnn_get_last_error() returns.
#pragma once

#include <exception>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

// Stores the formatted sentence as the last error of this thread. Prints it if the verbose word `error` is
// set. Returns `status`.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
status_t
fail(status_t status, const char *format, ...);

// Stores the text as the last error of this thread although nothing failed: the reason for an answer.
void leave_reason(const char *text);

const char *last_error();

// The same where no status can be returned: in parallel work. The C API catches it like any exception.
struct failure_t : std::exception {
    status_t status;
    char text[256];
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    failure_t(status_t status, const char *format, ...);
    const char *what() const noexcept override { return text; }
};

// Whether an implementation takes a problem. If not: what was asked, what was found and what is needed. The
// text uses the caller's terms. It is built only if an implementation declines.
struct reason_t {
    status_t status = mxdnn_success;
    char text[232] = "";
    bool ok() const { return status == mxdnn_success; }
};

// "<what>: found <found>, needs <needed>"
reason_t no(const char *what, const char *found, const char *needed);
// An error of the caller. It ends the search, with its own status.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
reason_t
refuse(status_t status, const char *format, ...);
inline reason_t yes() { return {}; }

#define MXDNN_CHECK(expr)                                                                                    \
    do {                                                                                                     \
        const ::mxdnn::impl::status_t status_ = (expr);                                                      \
        if (status_ != mxdnn_success) return status_;                                                        \
    } while (0)

} // namespace impl
} // namespace mxdnn
