// SPDX-License-Identifier: Apache-2.0
// What every file of the C API uses: null checks with a sentence, and the wall that exceptions stop at.
#pragma once

#include <new>

#include "common/error.hpp"
#include "mxdnn/mxdnn.h"

namespace mxdnn {
namespace impl {

inline status_t check_not_null(const void *p, const char *function, const char *name) {
    return p ? mxdnn_success : fail(mxdnn_invalid_arguments, "%s: %s is a null pointer", function, name);
}

// Runs fn; the only exception that the library lets happen is memory that has run out.
template <typename F>
status_t guarded(const char *function, F &&fn) {
    try {
        return fn();
    } catch (const std::bad_alloc &) {
        return fail(mxdnn_out_of_memory, "%s: memory has run out", function);
    } catch (const std::exception &e) {
        return fail(mxdnn_runtime_error, "%s: %s", function, e.what());
    }
}

} // namespace impl
} // namespace mxdnn

#define MXDNN_CHECK_ARG(p) MXDNN_CHECK(::mxdnn::impl::check_not_null(p, __func__, #p))
