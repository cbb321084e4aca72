// SPDX-License-Identifier: Apache-2.0
// What every implementation of mx_reorder asks of a problem.
#pragma once

#include "common/problem.hpp"

namespace mxdnn {
namespace impl {

// True if codes, scales and zero points move unchanged, because both sides have the same format.
bool moves_codes(const problem_t &p);

// One of two destinations that is packed, and whose blocks run along the last dim, gets the transposed
// matrix, in which they run along the dim before it. reorder_to() gives the reorder of that matrix.
bool is_turned(const memory_desc_t &dst, const arg_attr_t &a);

} // namespace impl
} // namespace mxdnn
