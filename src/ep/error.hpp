// SPDX-License-Identifier: Apache-2.0
// A status and the sentence that mxdnn_ep_get_last_error() returns, and the wall that exceptions stop at.
#pragma once

#include <new>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "mxdnn/mxdnn.hpp"

namespace mxdnn {
namespace ep {
namespace impl {

using status_t = mxdnn_status_t;

// Stores the formatted sentence as the last error of this thread. Returns `status`.
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
status_t
fail(status_t status, const char *format, ...);

const char *last_error();

// Passes on a failure of libmxdnn with its sentence.
status_t pass_on(status_t status, const char *what);

#define MXDNN_EP_CHECK(expr)                                                                                 \
    do {                                                                                                     \
        const ::mxdnn::ep::impl::status_t status_ = (expr);                                                  \
        if (status_ != mxdnn_success) return status_;                                                        \
    } while (0)

// Runs fn and turns exceptions into statuses: those of mxdnn.hpp, of memory that has run out, and whatever a
// callback throws.
template <typename F>
status_t guarded(const char *function, F &&fn) {
    try {
        return fn();
    } catch (const std::bad_alloc &) {
        return fail(mxdnn_out_of_memory, "%s: memory has run out", function);
    } catch (const mxdnn::error &e) {
        return fail(e.status, "%s: %s", function, e.what());
    } catch (const std::exception &e) {
        return fail(mxdnn_runtime_error, "%s: %s", function, e.what());
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind &) {
        throw; // the thread is being cancelled; this must not be stopped
#endif
    } catch (...) { // of a callback
        return fail(mxdnn_runtime_error, "%s: an exception that is none of the C++ library's", function);
    }
}

} // namespace impl
} // namespace ep
} // namespace mxdnn
