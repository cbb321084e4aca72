// SPDX-License-Identifier: Apache-2.0
// What every file of the C API uses: null checks with a sentence, and the wall that exceptions stop at.
#pragma once

#include <new>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "common/error.hpp"
#include "mxdnn/mxdnn.h"

namespace mxdnn {
namespace impl {

inline status_t check_not_null(const void *p, const char *function, const char *name) {
    return p ? mxdnn_success : fail(mxdnn_invalid_arguments, "%s: %s is a null pointer", function, name);
}

// Runs fn and turns exceptions into statuses. The library throws if memory has run out or parallel work
// fails. Callbacks of the caller, such as those of a thread pool, may throw anything.
template <typename F>
status_t guarded(const char *function, F &&fn) {
    try {
        return fn();
    } catch (const std::bad_alloc &) {
        return fail(mxdnn_out_of_memory, "%s: memory has run out", function);
    } catch (const failure_t &e) {
        return fail(e.status, "%s: %s", function, e.text);
    } catch (const std::exception &e) {
        return fail(mxdnn_runtime_error, "%s: %s", function, e.what());
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind &) {
        throw; // the thread is being cancelled; this must not be stopped
#endif
    } catch (...) {
        return fail(mxdnn_runtime_error,
                "%s: a callback of the caller's, such as a thread pool's, threw something that is no "
                "std::exception; what it throws has to be derived from that",
                function);
    }
}

} // namespace impl
} // namespace mxdnn

#define MXDNN_CHECK_ARG(p) MXDNN_CHECK(::mxdnn::impl::check_not_null(p, __func__, #p))
