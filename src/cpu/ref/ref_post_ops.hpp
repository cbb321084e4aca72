// SPDX-License-Identifier: Apache-2.0
// Bias and post-ops on one element at a time, in double: the formulas, as they are documented.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/ref/tensor_view.hpp"

namespace mxdnn {
namespace impl {

inline double ref_sigmoid(double x) { return 1. / (1. + std::exp(-x)); }
// The limit at -Inf is 0, where the formulas say Inf * 0.
inline double ref_gelu_erf(double x) {
    return x == -INFINITY ? 0. : .5 * x * std::erfc(-x / std::sqrt(2.));
}
inline double ref_gelu_tanh(double x) {
    return x == -INFINITY ? 0. : .5 * x * (1. + std::tanh(std::sqrt(2. / M_PI) * (x + .044715 * x * x * x)));
}

inline double ref_eltwise(mxdnn_alg_kind_t alg, double x, double alpha, double beta) {
    switch (alg) {
    case mxdnn_eltwise_relu: return x > 0 || std::isnan(x) ? x : alpha * x;
    case mxdnn_eltwise_tanh: return std::tanh(x);
    case mxdnn_eltwise_square: return x * x;
    case mxdnn_eltwise_linear: return alpha * x + beta;
    case mxdnn_eltwise_logistic: return ref_sigmoid(x);
    case mxdnn_eltwise_gelu_tanh: return ref_gelu_tanh(x);
    case mxdnn_eltwise_swish: return x * ref_sigmoid(alpha * x);
    case mxdnn_eltwise_clip: return std::isnan(x) ? x : std::min(std::max(x, alpha), beta);
    case mxdnn_eltwise_gelu_erf: return ref_gelu_erf(x);
    case mxdnn_eltwise_relu2: return std::isnan(x) ? x : x > 0 ? x * x : 0;
    default: return x;
    }
}

// NaN in either operand is NaN.
inline double ref_binary(mxdnn_alg_kind_t alg, double x, double y) {
    switch (alg) {
    case mxdnn_binary_add: return x + y;
    case mxdnn_binary_mul: return x * y;
    case mxdnn_binary_max: return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y);
    case mxdnn_binary_min: return std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y);
    default: return x;
    }
}

// beta: what gpt-oss adds to up.
inline double ref_gated(mxdnn_alg_kind_t alg, double g, double u, double alpha, double limit, double beta = 1) {
    const bool clamp = limit > 0 && std::isfinite(limit);
    if (clamp && !std::isnan(g)) g = std::min(g, limit);
    if (clamp && !std::isnan(u)) u = std::min(std::max(u, -limit), limit);
    switch (alg) {
    case mxdnn_gated_silu: return g * ref_sigmoid(g) * u;
    case mxdnn_gated_swiglu: return g * ref_sigmoid(alpha * g) * (u + beta);
    case mxdnn_gated_gelu_erf: return ref_gelu_erf(g) * u;
    case mxdnn_gated_gelu_tanh: return ref_gelu_tanh(g) * u;
    default: return g;
    }
}

// The element of a broadcast operand (right-aligned dims, each equal or 1) at an index of `ndims` dims.
inline float ref_broadcast_value(const memory_t &m, int ndims, const dim_t *idx) {
    dim_t own[max_ndims];
    for (int i = 0; i < m.md.ndims; i++) own[i] = m.md.dims[i] == 1 ? 0 : idx[ndims - m.md.ndims + i];
    return plain_view_t(m).value(own);
}

} // namespace impl
} // namespace mxdnn
