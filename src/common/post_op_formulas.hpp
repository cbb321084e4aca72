// SPDX-License-Identifier: Apache-2.0
// Post-ops on one element in double, as they are documented: what every reference, on host and device, applies.
#pragma once

#include <cmath>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

MXDNN_HD inline double ref_sigmoid(double x) { return 1. / (1. + exp(-x)); }
// The limit at -Inf is 0, where the formulas say Inf * 0.
MXDNN_HD inline double ref_gelu_erf(double x) { return x == -HUGE_VAL ? 0. : .5 * x * erfc(-x / sqrt(2.)); }
MXDNN_HD inline double ref_gelu_tanh(double x) {
    constexpr double pi = 3.14159265358979323846;
    return x == -HUGE_VAL ? 0. : .5 * x * (1. + tanh(sqrt(2. / pi) * (x + .044715 * x * x * x)));
}

MXDNN_HD inline double ref_eltwise(mxdnn_alg_kind_t alg, double x, double alpha, double beta) {
    const bool nan = x != x;
    switch (alg) {
    case mxdnn_eltwise_relu: return x > 0 || nan ? x : alpha * x;
    case mxdnn_eltwise_tanh: return tanh(x);
    case mxdnn_eltwise_square: return x * x;
    case mxdnn_eltwise_linear: return alpha * x + beta;
    case mxdnn_eltwise_logistic: return ref_sigmoid(x);
    case mxdnn_eltwise_gelu_tanh: return ref_gelu_tanh(x);
    case mxdnn_eltwise_swish: return x * ref_sigmoid(alpha * x);
    case mxdnn_eltwise_clip: {
        const double above = x < alpha ? alpha : x;
        return nan ? x : beta < above ? beta : above;
    }
    case mxdnn_eltwise_gelu_erf: return ref_gelu_erf(x);
    case mxdnn_eltwise_relu2: return nan ? x : x > 0 ? x * x : 0;
    default: return x;
    }
}

// NaN in either operand is NaN.
MXDNN_HD inline double ref_binary(mxdnn_alg_kind_t alg, double x, double y) {
    const bool nan = x != x || y != y;
    switch (alg) {
    case mxdnn_binary_add: return x + y;
    case mxdnn_binary_mul: return x * y;
    case mxdnn_binary_max: return nan ? x + y : x < y ? y : x;
    case mxdnn_binary_min: return nan ? x + y : y < x ? y : x;
    default: return x;
    }
}

// beta: what gpt-oss adds to up.
MXDNN_HD inline double ref_gated(mxdnn_alg_kind_t alg, double g, double u, double alpha, double limit, double beta = 1) {
    if (limit > 0 && limit < HUGE_VAL) { // NaN compares false and stays
        if (g > limit) g = limit;
        if (u > limit) u = limit;
        if (u < -limit) u = -limit;
    }
    switch (alg) {
    case mxdnn_gated_silu: return g * ref_sigmoid(g) * u;
    case mxdnn_gated_swiglu: return g * ref_sigmoid(alpha * g) * (u + beta);
    case mxdnn_gated_gelu_erf: return ref_gelu_erf(g) * u;
    case mxdnn_gated_gelu_tanh: return ref_gelu_tanh(g) * u;
    default: return g;
    }
}

} // namespace impl
} // namespace mxdnn
