// SPDX-License-Identifier: Apache-2.0
// The arithmetic of moe_route, one rounding after the other. Every implementation follows it operation by
// operation, so that all of them choose the same experts and give the same weights, bit for bit: two scores
// that differ in their last bit must not be ranked differently by another ISA or number of threads.
//
// Always inlined: these functions are compiled for several ISAs, and the linker must not merge them.
#pragma once

#include "common/exp_f32.hpp"

namespace mxdnn {
namespace impl {
namespace route_rules {

#define MXDNN_RULE MXDNN_HD static inline __attribute__((always_inline))

using exp_rule::bits;
using exp_rule::real;

MXDNN_RULE float sigmoid(float x) { return 1.f / (1.f + exp_f32(-x)); }

MXDNN_RULE float larger(float most, float x) { return x > most ? x : most; }

// Sums over all experts consist of this many partial sums. Expert i belongs to partial sum i % sums. These
// are added in halves: j and j + 8, then j and j + 4, and so on.
constexpr int sums = 16;
MXDNN_RULE float add_sums(float *s) {
    for (int half = sums / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) s[j] += s[j + half];
    return s[0];
}

// A key for each score: larger keys rank higher, and equal keys are ties (the lower index wins). Both zeros
// have one key. NaN is below every number, and what cannot be chosen is below NaN.
constexpr int32_t no_key = INT32_MIN, nan_key = INT32_MIN + 1;
MXDNN_RULE int32_t key_of(float score) {
    const float x = score + 0.f;
    const int32_t u = int32_t(bits(x));
    return x != x ? nan_key : u ^ (u >> 31 & 0x7fffffff);
}
MXDNN_RULE float score_of(int32_t key) { return real(uint32_t(key ^ (key >> 31 & 0x7fffffff))); }

// The score of a group: its best key, or the sum of its two best scores (`second` is no_key in a group of
// one).
MXDNN_RULE int32_t group_key(int32_t best, int32_t second) {
    return second == no_key ? best : key_of(score_of(best) + score_of(second));
}

// Renormalising divides by the sum of the chosen weights. A sum of sigmoids may be 0.
constexpr float sum_guard = 1e-20f;

#undef MXDNN_RULE

} // namespace route_rules
} // namespace impl
} // namespace mxdnn
