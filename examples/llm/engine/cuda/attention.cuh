// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention share.
#pragma once

#include <cfloat>
#include <cmath>

#include "attention.hpp"
#include "device.cuh"

namespace llm::cuda {

// The largest score before there is one, and the score of a key that is not seen: their differences are
// numbers or minus infinity.
constexpr float no_score = -FLT_MAX, unseen = -INFINITY;

__device__ inline int first_seen(const attention_t &a, int position) {
    const int window = int(a.window);
    return window && position >= window ? position - window + 1 : 0;
}

// Pair `pair` of a head, turned by its position.
struct turn_t {
    float cosine, sine;

    __device__ turn_t(const attention_t &a, int position, int pair) {
        sincosf(float(position) * a.frequencies[pair], &sine, &cosine);
        cosine *= a.turn_factor;
        sine *= a.turn_factor;
    }
    __device__ float2 of(float v, float w) const {
        return make_float2(v * cosine - w * sine, w * cosine + v * sine);
    }
};
// Elements of a pair: the first, and the distance of the second.
__device__ inline int first_of_pair(const attention_t &a, int pair) {
    return a.is_interleaved ? 2 * pair : pair;
}
__device__ inline int pair_distance(const attention_t &a) {
    return a.is_interleaved ? 1 : int(a.head_size / 2);
}

// Adds the sink of a head, by scores in powers of 2: what the sum of weights becomes, and what sums are to be
// multiplied by.
__device__ inline float add_sink(const attention_t &a, int64_t head, float top, float &sum) {
    if (!a.sinks) return 1;
    const float sink = a.sinks[head] * log2_of_e, most = fmaxf(top, sink), factor = power_of_2(top - most);
    sum = sum * factor + power_of_2(sink - most);
    return factor;
}

} // namespace llm::cuda
