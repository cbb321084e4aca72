// SPDX-License-Identifier: Apache-2.0
// The internal names of the public types, and the few helpers that every file needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mxdnn/mxdnn_types.h"

// CUDA device code includes headers of pure arithmetic, too.
#if defined(__CUDACC__)
#define MXDNN_HD __host__ __device__
#else
#define MXDNN_HD
#endif

namespace mxdnn {
namespace impl {

using status_t = mxdnn_status_t;
using data_type_t = mxdnn_data_type_t;
using dim_t = mxdnn_dim_t;
constexpr int max_ndims = MXDNN_MAX_NDIMS;
constexpr dim_t runtime_dim = MXDNN_RUNTIME_DIM_VAL;

// The largest dimension, and the largest size in bytes, of a descriptor. Products of two such values are
// checked (checked_mul). A sum with a small number cannot overflow.
constexpr dim_t max_dim = dim_t(1) << 40;
constexpr int64_t max_bytes = int64_t(1) << 50;

template <typename T, typename U>
MXDNN_HD constexpr T div_up(T a, U b) {
    return (a + T(b) - 1) / T(b);
}
template <typename T, typename U>
MXDNN_HD constexpr T round_up(T a, U b) {
    return div_up(a, b) * T(b);
}

// a * b for non-negative values; -1 if the product (or an operand) is larger than max_bytes.
MXDNN_HD constexpr int64_t checked_mul(int64_t a, int64_t b) {
    if (a < 0 || b < 0) return -1;
    if (a == 0 || b == 0) return 0;
    return a > max_bytes / b ? -1 : a * b;
}

} // namespace impl
} // namespace mxdnn
