// SPDX-License-Identifier: Apache-2.0
/// @file
/// Statuses, and the exception that a failed call throws.
#ifndef MXDNN_HPP_ERROR_HPP
#define MXDNN_HPP_ERROR_HPP

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "mxdnn/mxdnn.h"

/// @def MXDNN_ENABLE_EXCEPTIONS
/// 1: a failed call throws mxdnn::error. 0: it prints the sentence and ends the program.
#ifndef MXDNN_ENABLE_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define MXDNN_ENABLE_EXCEPTIONS 1
#else
#define MXDNN_ENABLE_EXCEPTIONS 0
#endif
#endif
namespace mxdnn {

/// The outcome of a call. Most calls throw mxdnn::error instead of returning it.
enum class status {
    success = mxdnn_success,
    out_of_memory = mxdnn_out_of_memory,
    invalid_arguments = mxdnn_invalid_arguments,
    unimplemented = mxdnn_unimplemented,
    last_impl_reached = mxdnn_last_impl_reached,
    runtime_error = mxdnn_runtime_error,
    not_required = mxdnn_not_required,
    invalid_shape = mxdnn_invalid_shape,
    invalid_data_type = mxdnn_invalid_data_type,
    corrupt_blob = mxdnn_corrupt_blob,
    incompatible_version = mxdnn_incompatible_version,
    incompatible_target = mxdnn_incompatible_target,
    device_unavailable = mxdnn_device_unavailable,
};

/// The name of a status, such as "success" or "invalid_arguments".
inline const char *status2str(status s) { return mxdnn_status2str(static_cast<mxdnn_status_t>(s)); }

/// The last failure of this thread in one sentence, or the reason for the verdict of the last check_blob().
/// Empty if there was none.
inline std::string get_last_error() { return mxdnn_get_last_error(); }

/// Thrown when a call fails. It has the status, and the sentence that says what was wrong.
struct error : public std::exception {
    /// The status of the call.
    mxdnn_status_t status;
    /// The sentence of get_last_error().
    std::string message;

    /// From a status and a sentence.
    error(mxdnn_status_t astatus, std::string amessage) : status(astatus), message(std::move(amessage)) {}

    /// The sentence.
    const char *what() const noexcept override { return message.c_str(); }

    /// Throws for anything but success. `what` names the attempt; it is used if the library has no sentence.
    static void wrap_c_api(mxdnn_status_t status, const char *what) {
        if (status == mxdnn_success) return;
        std::string text = mxdnn_get_last_error();
        if (text.empty()) text = std::string(what) + ": " + mxdnn_status2str(status);
        raise(status, text);
    }

    /// Throws; without exceptions prints the message and ends the program.
    [[noreturn]] static void raise(mxdnn_status_t astatus, const std::string &amessage) {
#if MXDNN_ENABLE_EXCEPTIONS
        throw error(astatus, amessage);
#else
        std::fprintf(stderr, "mxdnn: %s: %s\n", mxdnn_status2str(astatus), amessage.c_str());
        std::abort();
#endif
    }
};

} // namespace mxdnn

#endif
