// SPDX-License-Identifier: Apache-2.0
// Bias and post-ops on one element at a time, in double.
#pragma once

#include "common/post_op_formulas.hpp"
#include "cpu/ref/tensor_view.hpp"

namespace mxdnn {
namespace impl {

// The element of a broadcast operand at an index of `ndims` dims. Dims are aligned at the end, each equal or
// 1.
inline float ref_broadcast_value(const memory_t &m, int ndims, const dim_t *idx) {
    dim_t own[max_ndims];
    for (int i = 0; i < m.md.ndims; i++) own[i] = m.md.dims[i] == 1 ? 0 : idx[ndims - m.md.ndims + i];
    return plain_view_t(m).value(own);
}

} // namespace impl
} // namespace mxdnn
