// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <mxdnn/mxdnn.hpp>

namespace mxdnn_jax {

// For what a caller passes that can never be right.
[[noreturn]] inline void fail(const std::string &sentence) {
    throw mxdnn::error(mxdnn_invalid_arguments, sentence);
}

} // namespace mxdnn_jax
