// SPDX-License-Identifier: Apache-2.0
// What every implementation of mx_reorder asks of a problem.
#pragma once

#include "common/problem.hpp"

namespace mxdnn {
namespace impl {

// True if codes, scales and zero points move unchanged, because both sides have the same format.
bool moves_codes(const problem_t &p);

} // namespace impl
} // namespace mxdnn
