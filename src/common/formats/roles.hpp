// SPDX-License-Identifier: Apache-2.0
// What a data type may be used for; every traits header states its roles, and the lists follow from them.
#pragma once

namespace mxdnn {
namespace impl {

enum role_t : unsigned {
    role_high_precision = 1u << 0, // type of a tensor that is not quantised
    role_mx_element = 1u << 1,     // codes under an e8m0 scale
    role_affine_element = 1u << 2, // codes under a floating-point scale per group
    role_scale = 1u << 3,
    role_zero_point = 1u << 4,
    role_index = 1u << 5 // counts, offsets and pointers: no arithmetic
};

} // namespace impl
} // namespace mxdnn
