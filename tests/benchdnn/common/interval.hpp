// SPDX-License-Identifier: Apache-2.0
// A result with the error that its computation may have: how bounds pass through post-ops.
// doc/concepts/accuracy.md derives each rule.
#pragma once

#include <algorithm>
#include <cmath>

#include "common/post_op_formulas.hpp"

namespace bench {

struct interval_t {
    double v = 0;        // exact
    double e = 0;        // |computed - v| is at most this, where v is finite
    bool or_nan = false; // computed with an Inf, which gives NaN in another order of the arithmetic
};

// An Inf is one exactly.
inline interval_t interval(double v, double e, bool or_nan) { return {v, std::isinf(v) ? 0 : e, or_nan}; }

constexpr double u32 = 1. / (1 << 24); // unit roundoff of f32
constexpr double tiny = 1.4e-45;       // one subnormal step of f32
// Elementary functions of the library are this accurate, relative to their value and absolutely.
constexpr double function_ulps = 32 * u32;

// One rounding to f32 on top.
inline interval_t rounded(interval_t x, double steps = 1) {
    return interval(x.v, x.e + steps * (u32 * (std::fabs(x.v) + x.e) + tiny), x.or_nan);
}

// Largest slope of an eltwise within [v - e, v + e].
inline double slope(mxdnn_alg_kind_t alg, const interval_t &x, double alpha) {
    switch (alg) {
    case mxdnn_eltwise_relu: return std::max(1., std::fabs(alpha));
    case mxdnn_eltwise_linear: return std::fabs(alpha);
    case mxdnn_eltwise_logistic: return .25;
    case mxdnn_eltwise_square:
    case mxdnn_eltwise_relu2: return 2 * (std::fabs(x.v) + x.e);
    case mxdnn_eltwise_gelu_erf:
    case mxdnn_eltwise_gelu_tanh: return 1.13;
    case mxdnn_eltwise_swish: return 1.1; // sigmoid(t) + t sigmoid'(t), whatever alpha scales t by
    default: return 1;
    }
}

// The largest difference of two of its results.
inline double width(mxdnn_alg_kind_t alg, double alpha, double beta) {
    switch (alg) {
    case mxdnn_eltwise_clip: return std::fabs(beta - alpha);
    case mxdnn_eltwise_logistic: return 1;
    case mxdnn_eltwise_tanh: return 2;
    default: return HUGE_VAL;
    }
}

// Rounding inside a function's formula, relative to what it handles.
inline double function_error(mxdnn_alg_kind_t alg, double x, double y, double alpha, double beta) {
    switch (alg) {
    case mxdnn_eltwise_relu:
    case mxdnn_eltwise_square:
    case mxdnn_eltwise_clip:
    case mxdnn_eltwise_relu2: return u32 * std::fabs(y) + tiny;
    case mxdnn_eltwise_linear: return 2 * u32 * (std::fabs(alpha * x) + std::fabs(beta)) + tiny;
    // The argument of the exponential carries a rounding of its own size into the result.
    default:
        return function_ulps * std::fabs(y)
                       * (1 + std::min(std::fabs(x) * std::max(1., std::fabs(alpha)), 104.))
               + 4e-38;
    }
}

inline interval_t eltwise(mxdnn_alg_kind_t alg, interval_t x, double alpha, double beta) {
    const double y = mxdnn::impl::ref_eltwise(alg, x.v, alpha, beta);
    // relu of -Inf is 0 if it takes the larger of x and 0; it is NaN if it multiplies 0 by -Inf.
    if (std::isinf(x.v) && alg == mxdnn_eltwise_relu && x.v < 0 && alpha == 0) return {0, 0, true};
    if (std::isinf(x.v)) return interval(y, function_error(alg, 0, y, alpha, beta), x.or_nan);
    const double e = std::min(slope(alg, x, alpha) * x.e, width(alg, alpha, beta));
    return interval(y, e + function_error(alg, std::fabs(x.v) + x.e, y, alpha, beta), x.or_nan);
}

inline interval_t binary(mxdnn_alg_kind_t alg, interval_t x, double b) {
    const double y = mxdnn::impl::ref_binary(alg, x.v, b);
    switch (alg) {
    case mxdnn_binary_add: return rounded({y, x.e, x.or_nan});
    case mxdnn_binary_mul: return rounded({y, x.e * std::fabs(b), x.or_nan});
    default: return interval(y, x.e, x.or_nan); // the larger or the smaller moves by no more than x
    }
}

// f(g) * h(u) with f of slope at most 1.13 and h of slope 1.
inline interval_t gated(
        mxdnn_alg_kind_t alg, interval_t g, interval_t u, double alpha, double limit, double beta = 1) {
    const double y = mxdnn::impl::ref_gated(alg, g.v, u.v, alpha, limit, beta);
    const bool clamp = limit > 0 && std::isfinite(limit);
    const double gv = clamp ? std::min(g.v, limit) : g.v,
                 uv = clamp ? std::min(std::fabs(u.v), limit) : std::fabs(u.v);
    // What is finite of an infinite gate is 0.
    const double f = std::isinf(gv) ? 0 : std::fabs(gv) + 1.13 * g.e,
                 h = uv + u.e + std::max(1., std::fabs(beta));
    const double e =
            1.13 * g.e * h + f * u.e
            + function_ulps * f * h * (1 + std::min(std::fabs(gv) * std::max(1., std::fabs(alpha)), 104.))
            + 4e-38;
    return interval(y, e, g.or_nan || u.or_nan);
}

} // namespace bench
