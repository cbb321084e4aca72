// SPDX-License-Identifier: Apache-2.0
// Post-ops on one element, as they are documented: in double what every reference, on host and device,
// applies; in float what epilogues of kernels apply.
#pragma once

#include <cmath>

#include "common/formats/float_bits.hpp"
#include "common/types.hpp"

namespace mxdnn {
namespace impl {

// A parameter whose type another parameter determines.
template <typename T>
struct as_t {
    using type = T;
};
template <typename T>
using like_t = typename as_t<T>::type;

template <typename T>
MXDNN_HD inline T ref_sigmoid(T x) {
    return T(1) / (T(1) + exp(-x));
}
// At -Inf the limit is 0, but the formula would be Inf * 0.
template <typename T>
MXDNN_HD inline T ref_gelu_erf(T x) {
    return x == -T(HUGE_VAL) ? T(0) : T(.5) * x * erfc(x * T(-0.70710678118654752440));
}
// .5 x (1 + tanh(u)) = x sigmoid(2 u). This form does not cancel for negative x.
template <typename T>
MXDNN_HD inline T ref_gelu_tanh(T x) {
    const T two_u = T(1.59576912160573071176) * (x + T(.044715) * x * x * x); // 2 sqrt(2 / pi)
    return x == -T(HUGE_VAL) ? T(0) : x * ref_sigmoid(two_u);
}

template <typename T>
MXDNN_HD inline T ref_eltwise(mxdnn_alg_kind_t alg, T x, like_t<T> alpha, like_t<T> beta) {
    const bool nan = is_nan(float(x));
    switch (alg) {
    case mxdnn_eltwise_relu: return x > 0 || nan ? x : alpha * x;
    case mxdnn_eltwise_tanh: return tanh(x);
    case mxdnn_eltwise_square: return x * x;
    case mxdnn_eltwise_linear: return alpha * x + beta;
    case mxdnn_eltwise_logistic: return ref_sigmoid(x);
    case mxdnn_eltwise_gelu_tanh: return ref_gelu_tanh(x);
    case mxdnn_eltwise_swish: return x * ref_sigmoid(alpha * x);
    case mxdnn_eltwise_clip: {
        const T above = x < alpha ? alpha : x;
        return nan ? x : beta < above ? beta : above;
    }
    case mxdnn_eltwise_gelu_erf: return ref_gelu_erf(x);
    case mxdnn_eltwise_relu2: return nan ? x : x > 0 ? x * x : T(0);
    default: return x;
    }
}

// NaN in either operand is NaN.
template <typename T>
MXDNN_HD inline T ref_binary(mxdnn_alg_kind_t alg, T x, like_t<T> y) {
    const bool nan = is_nan(float(x)) || is_nan(float(y));
    switch (alg) {
    case mxdnn_binary_add: return x + y;
    case mxdnn_binary_mul: return x * y;
    case mxdnn_binary_max: return nan ? x + y : x < y ? y : x;
    case mxdnn_binary_min: return nan ? x + y : y < x ? y : x;
    default: return x;
    }
}

// beta is what gpt-oss adds to up.
template <typename T>
MXDNN_HD inline T ref_gated(
        mxdnn_alg_kind_t alg, T g, like_t<T> u, like_t<T> alpha, like_t<T> limit, like_t<T> beta = 1) {
    if (limit > 0 && limit < T(HUGE_VAL)) { // false for NaN
        if (g > limit) g = limit;
        if (u > limit) u = limit;
        if (u < -limit) u = -limit;
    }
    switch (alg) {
    case mxdnn_gated_silu: return g * ref_sigmoid(g) * u;
    case mxdnn_gated_swiglu_oai: return g * ref_sigmoid(alpha * g) * (u + beta);
    case mxdnn_gated_gelu_erf: return ref_gelu_erf(g) * u;
    case mxdnn_gated_gelu_tanh: return ref_gelu_tanh(g) * u;
    default: return g;
    }
}

} // namespace impl
} // namespace mxdnn
