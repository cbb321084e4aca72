// SPDX-License-Identifier: Apache-2.0
// Everything in the encoder that is not a linear layer, as plain loops over f32 rows that compilers
// vectorise.
#pragma once

#include <cstdint>
#include <functional>

namespace minilm {

// Calls body(begin, end) on pieces of [0, n) from several threads; pieces have at least `grain` items.
void parallel(int64_t n, int64_t grain, const std::function<void(int64_t begin, int64_t end)> &body);

// y = x * w^T + bias; w is [out, in] as frameworks store it. The plain counterpart of the measured linear
// layers.
void linear(
        int64_t rows, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y);

void gelu(int64_t n, float *x); // 0.5 x (1 + erf(x / sqrt 2))

// y = layer_norm(x + residual) * gamma + beta over rows of n; residual may be null, y may be x.
void add_layer_norm(int64_t rows, int64_t n, const float *x, const float *residual, const float *gamma,
        const float *beta, float eps, float *y);

// Self-attention of one head within one sentence of `tokens` rows; q, k, v and out point at the head's first
// column of matrices whose rows are `stride` long.
void attention(int64_t tokens, int64_t head_size, int64_t stride, const float *q, const float *k,
        const float *v, float *out);

uint16_t to_bf16(float f); // nearest even, NaN stays NaN
float from_bf16(uint16_t b);
void to_bf16(int64_t n, const float *x, uint16_t *y);

double dot(int64_t n, const float *a, const float *b); // in double
void normalise(int64_t n, float *x);                   // to length 1

} // namespace minilm
