// SPDX-License-Identifier: Apache-2.0
// The one way to refuse: a status and the sentence that mxdnn_get_last_error() returns.
#pragma once

#include <exception>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

// Stores the formatted sentence as this thread's last error, prints it when verbose mode has
// `error`, and returns `status`.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
status_t
fail(status_t status, const char *format, ...);

// Leaves the text as this thread's last error where nothing has failed: the reason for an answer.
void leave_reason(const char *text);

const char *last_error();

// The same from where no status can be returned: parallel work. Ends at the wall of the C API, as any
// exception.
struct failure_t : std::exception {
    status_t status;
    char text[256];
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    failure_t(status_t status, const char *format, ...);
    const char *what() const noexcept override { return text; }
};

// The outcome of asking an implementation whether it takes a problem: nothing, or what was asked,
// what was found and what is needed. Kept as text in the caller's terms; building it costs
// nothing unless an implementation declines.
struct reason_t {
    status_t status = mxdnn_success;
    char text[232] = "";
    bool ok() const { return status == mxdnn_success; }
};

// "<what>: found <found>, needs <needed>"
reason_t no(const char *what, const char *found, const char *needed);
// A decline that is the caller's mistake and ends the search, with its own status.
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
