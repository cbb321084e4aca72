// SPDX-License-Identifier: Apache-2.0
// The loops that decide how fast the CPU engine is, compiled once for each vector instruction set. Weights
// and the cache lie in panels of 16 columns, so that one loop serves linear layers, scores and sums of
// attention.
#pragma once

#include <cstdint>

namespace llm {

constexpr int64_t panel = 16;

struct loops_t {
    // y[rows][16] (+)= x[rows][depth] * w[depth][16]; the rows of w are w_stride elements apart. w is bf16,
    // or f32.
    void (*multiply_bf16)(int64_t rows, int64_t depth, const float *x, int64_t x_stride, const uint16_t *w,
            int64_t w_stride, float *y, int64_t y_stride, bool adds);
    void (*multiply_f32)(int64_t rows, int64_t depth, const float *x, int64_t x_stride, const float *w,
            int64_t w_stride, float *y, int64_t y_stride, bool adds);
    // x = exp(x - largest) for n values, a multiple of 16; returns their sum.
    float (*exp_below)(int64_t n, float *x, float largest);
    float (*largest)(int64_t n, const float *x);  // n is a multiple of 16
    bool (*is_finite)(int64_t n, const float *x); // all of them
    void (*scale)(int64_t n, float factor, float *x);
    // y = x * weight / sqrt(mean(x^2) + eps)
    void (*rms_norm)(int64_t n, const float *x, const float *weight, float eps, float *y);
    // y = silu(gate) * up
    void (*silu)(int64_t n, const float *gate, const float *up, float *y);
    void (*to_bf16)(int64_t n, const float *x, uint16_t *y);
    void (*from_bf16)(int64_t n, const uint16_t *x, float *y);
};

extern const loops_t loops_any, loops_avx2, loops_avx512;
// The best that the machine has.
const loops_t &loops();

// Nearest even; NaN stays NaN.
static inline uint16_t bf16_of(float f) {
    uint32_t u;
    __builtin_memcpy(&u, &f, 4);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return uint16_t((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

} // namespace llm
