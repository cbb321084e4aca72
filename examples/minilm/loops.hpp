// SPDX-License-Identifier: Apache-2.0
// The loops that decide how fast the non-linear parts are, compiled for any x86-64 and once more for AVX2.
#pragma once

#include <cstdint>

namespace minilm {

struct loops_t {
    // Up to 16 columns of y = x w + bias (which may be null); w is [in][w_stride] and 16 of its columns are
    // read.
    void (*multiply16)(int64_t rows, int64_t in, const float *x, int64_t x_stride, const float *w,
            int64_t w_stride, const float *bias, int64_t columns, float *y, int64_t y_stride);
    void (*gelu)(int64_t n, float *x);
    // One row.
    void (*add_layer_norm)(int64_t n, const float *x, const float *residual, const float *gamma,
            const float *beta, float eps, float *y);
    // One head of one sentence; scratch holds attention_scratch() floats.
    void (*attention)(int64_t tokens, int64_t head_size, int64_t stride, const float *q, const float *k,
            const float *v, float *out, float *scratch);
    void (*round_to_bf16)(int64_t n, const float *x, uint16_t *y);
};

static inline int64_t attention_scratch(int64_t tokens, int64_t head_size) {
    return (head_size + tokens) * (tokens + 15) + tokens * (head_size + 15);
}

extern const loops_t loops_any, loops_avx2;

// Nearest even; NaN stays NaN.
static inline uint16_t bf16_of(float f) {
    uint32_t u;
    __builtin_memcpy(&u, &f, 4);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return uint16_t((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

} // namespace minilm
