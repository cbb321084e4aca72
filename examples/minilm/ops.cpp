// SPDX-License-Identifier: Apache-2.0
// The loops of ops.hpp. Inner loops run over contiguous floats without a carried sum, so that they vectorise
// under exact floating-point rules.
#include "ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

// One binary for every x86-64, the loops compiled once more for AVX2. Sanitizers are not ready when the
// choice is made (before main), so their builds keep the plain code.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)                               \
        && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define MINILM_CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define MINILM_CLONES
#endif

namespace minilm {

namespace {

// e^x to about 1e-7 relative for x <= 88, 0 below -87: 2^n times a polynomial on [-ln2/2, ln2/2].
inline float fast_exp(float x) {
    x = x < -87.f ? -87.f : x;
    const float shifted = x * 1.44269504f + 12582912.f; // the nearest integer is now in the low mantissa bits
    const float n = shifted - 12582912.f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.f / 720;
    p = p * r + 1.f / 120;
    p = p * r + 1.f / 24;
    p = p * r + 1.f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.f;
    p = p * r + 1.f;
    uint32_t exponent, mantissa;
    memcpy(&exponent, &shifted, 4);
    memcpy(&mantissa, &p, 4);
    mantissa += exponent << 23; // n moves into the exponent field; 12582912's own bits leave at the top
    memcpy(&p, &mantissa, 4);
    return p;
}

// erf to 1.5e-7 absolute (Abramowitz and Stegun 7.1.26).
inline float fast_erf(float x) {
    const float a = std::fabs(x), t = 1.f / (1.f + 0.3275911f * a);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    return std::copysign(1.f - p * t * fast_exp(-a * a), x);
}

// Rows [0, rows) of y = x w^T + bias for 16 columns; wt is [in][16].
MINILM_CLONES void linear_columns(int64_t rows, int64_t in, int64_t out, const float *x, const float *wt,
        const float *bias, int64_t columns, float *y) {
    for (int64_t r = 0; r < rows; r += 4) {
        const int64_t n = std::min<int64_t>(4, rows - r);
        const float *x0 = x + r * in, *x1 = x0 + (n > 1 ? in : 0), *x2 = x0 + (n > 2 ? 2 * in : 0),
                    *x3 = x0 + (n > 3 ? 3 * in : 0);
        float sum[4][16] = {};
        for (int64_t k = 0; k < in; k++)
            for (int c = 0; c < 16; c++) {
                const float w = wt[k * 16 + c];
                sum[0][c] += x0[k] * w;
                sum[1][c] += x1[k] * w;
                sum[2][c] += x2[k] * w;
                sum[3][c] += x3[k] * w;
            }
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < columns; c++) y[(r + i) * out + c] = sum[i][c] + bias[c];
    }
}

MINILM_CLONES void gelu_piece(int64_t n, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = 0.5f * x[i] * (1.f + fast_erf(x[i] * 0.70710678f));
}

MINILM_CLONES void add_layer_norm_row(int64_t n, const float *x, const float *residual, const float *gamma,
        const float *beta, float eps, float *y) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) y[i] = residual ? x[i] + residual[i] : x[i];
    for (int64_t i = 0; i < n; i++) sum += y[i];
    const float mean = float(sum / double(n));
    for (int64_t i = 0; i < n; i++) {
        y[i] -= mean;
        squares += double(y[i]) * y[i];
    }
    const float scale = float(1 / std::sqrt(squares / double(n) + eps));
    for (int64_t i = 0; i < n; i++) y[i] = y[i] * scale * gamma[i] + beta[i];
}

// scores and kt are scratch of tokens and head_size x tokens.
MINILM_CLONES void attention_head(int64_t tokens, int64_t head_size, int64_t stride, const float *q,
        const float *k, const float *v, float *out, float *scores, float *kt) {
    for (int64_t j = 0; j < tokens; j++)
        for (int64_t d = 0; d < head_size; d++) kt[d * tokens + j] = k[j * stride + d];
    const float scale = 1.f / std::sqrt(float(head_size));
    for (int64_t i = 0; i < tokens; i++) {
        std::fill(scores, scores + tokens, 0.f);
        for (int64_t d = 0; d < head_size; d++) {
            const float qd = q[i * stride + d] * scale;
            const float *kd = kt + d * tokens;
            for (int64_t j = 0; j < tokens; j++) scores[j] += qd * kd[j];
        }
        float top = scores[0], sum = 0;
        for (int64_t j = 1; j < tokens; j++) top = scores[j] > top ? scores[j] : top;
        for (int64_t j = 0; j < tokens; j++) scores[j] = fast_exp(scores[j] - top);
        for (int64_t j = 0; j < tokens; j++) sum += scores[j];
        float *o = out + i * stride;
        std::fill(o, o + head_size, 0.f);
        for (int64_t j = 0; j < tokens; j++) {
            const float p = scores[j] / sum;
            const float *vj = v + j * stride;
            for (int64_t d = 0; d < head_size; d++) o[d] += p * vj[d];
        }
    }
}

MINILM_CLONES void bf16_piece(int64_t n, const float *x, uint16_t *y) {
    for (int64_t i = 0; i < n; i++) y[i] = to_bf16(x[i]);
}

} // namespace

void parallel(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)> &body) {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, n, size_t(grain)),
            [&](const tbb::blocked_range<int64_t> &r) { body(r.begin(), r.end()); });
}

void linear(
        int64_t rows, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y) {
    parallel((out + 15) / 16, 1, [&](int64_t begin, int64_t end) {
        std::vector<float> wt(size_t(in) * 16);
        for (int64_t b = begin; b < end; b++) {
            const int64_t columns = std::min<int64_t>(16, out - b * 16);
            for (int64_t c = 0; c < columns; c++)
                for (int64_t k = 0; k < in; k++) wt[size_t(k * 16 + c)] = w[(b * 16 + c) * in + k];
            linear_columns(rows, in, out, x, wt.data(), bias + b * 16, columns, y + b * 16);
        }
    });
}

void gelu(int64_t n, float *x) {
    parallel(n, 4096, [&](int64_t begin, int64_t end) { gelu_piece(end - begin, x + begin); });
}

void add_layer_norm(int64_t rows, int64_t n, const float *x, const float *residual, const float *gamma,
        const float *beta, float eps, float *y) {
    parallel(rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++)
            add_layer_norm_row(
                    n, x + r * n, residual ? residual + r * n : nullptr, gamma, beta, eps, y + r * n);
    });
}

void attention(int64_t tokens, int64_t head_size, int64_t stride, const float *q, const float *k,
        const float *v, float *out) {
    std::vector<float> scratch(size_t(tokens * (head_size + 1)));
    attention_head(tokens, head_size, stride, q, k, v, out, scratch.data(), scratch.data() + tokens);
}

uint16_t to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return uint16_t((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

float from_bf16(uint16_t b) {
    const uint32_t u = uint32_t(b) << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

void to_bf16(int64_t n, const float *x, uint16_t *y) {
    parallel(n, 1 << 15, [&](int64_t begin, int64_t end) { bf16_piece(end - begin, x + begin, y + begin); });
}

double dot(int64_t n, const float *a, const float *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += double(a[i]) * b[i];
    return sum;
}

void normalise(int64_t n, float *x) {
    const float length = float(std::sqrt(dot(n, x, x)));
    for (int64_t i = 0; i < n && length > 0; i++) x[i] /= length;
}

} // namespace minilm
