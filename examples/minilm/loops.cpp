// SPDX-License-Identifier: Apache-2.0
// The inner loops of ops.cpp. Built twice, MINILM_LOOPS being the name of the result, so everything here is
// local and calls no template that another file could share. Inner loops run over contiguous floats without a
// carried sum: they vectorise under exact floating-point rules.
#include "loops.hpp"

#include <cmath>
#include <cstring>

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
    const float a = __builtin_fabsf(x), t = 1.f / (1.f + 0.3275911f * a);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    return __builtin_copysignf(1.f - p * t * fast_exp(-a * a), x);
}

// Carried sums are kept in this many parts, so that they vectorise.
constexpr int parts = 8;

void multiply16(int64_t rows, int64_t in, const float *x, int64_t x_stride, const float *w, int64_t w_stride,
        const float *bias, int64_t columns, float *y, int64_t y_stride) {
    for (int64_t r = 0; r < rows; r += 4) {
        const int64_t n = rows - r < 4 ? rows - r : 4;
        const float *x0 = x + r * x_stride, *x1 = x0 + (n > 1 ? x_stride : 0),
                    *x2 = x0 + (n > 2 ? 2 * x_stride : 0), *x3 = x0 + (n > 3 ? 3 * x_stride : 0);
        float sum[4][16] = {};
        for (int64_t k = 0; k < in; k++)
            for (int c = 0; c < 16; c++) {
                const float wk = w[k * w_stride + c];
                sum[0][c] += x0[k] * wk;
                sum[1][c] += x1[k] * wk;
                sum[2][c] += x2[k] * wk;
                sum[3][c] += x3[k] * wk;
            }
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < columns; c++)
                y[(r + i) * y_stride + c] = sum[i][c] + (bias ? bias[c] : 0.f);
    }
}

void gelu(int64_t n, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = 0.5f * x[i] * (1.f + fast_erf(x[i] * 0.70710678f));
}

void add_layer_norm(int64_t n, const float *x, const float *residual, const float *gamma, const float *beta,
        float eps, float *y) {
    double sum[parts] = {}, squares[parts] = {};
    for (int64_t i = 0; i < n; i++) y[i] = residual ? x[i] + residual[i] : x[i];
    for (int64_t i = 0; i < n / parts * parts; i += parts)
        for (int c = 0; c < parts; c++) sum[c] += y[i + c];
    for (int64_t i = n / parts * parts; i < n; i++) sum[0] += y[i];
    for (int c = 1; c < parts; c++) sum[0] += sum[c];
    const float mean = float(sum[0] / double(n));
    for (int64_t i = 0; i < n; i++) y[i] -= mean;
    for (int64_t i = 0; i < n / parts * parts; i += parts)
        for (int c = 0; c < parts; c++) squares[c] += double(y[i + c]) * y[i + c];
    for (int64_t i = n / parts * parts; i < n; i++) squares[0] += double(y[i]) * y[i];
    for (int c = 1; c < parts; c++) squares[0] += squares[c];
    const float scale = float(1 / std::sqrt(squares[0] / double(n) + eps));
    for (int64_t i = 0; i < n; i++) y[i] = y[i] * scale * gamma[i] + beta[i];
}

void attention(int64_t tokens, int64_t head_size, int64_t stride, const float *q, const float *k,
        const float *v, float *out, float *scratch) {
    const int64_t t16 = (tokens + 15) / 16 * 16, h16 = (head_size + 15) / 16 * 16;
    float *kt = scratch, *vc = kt + head_size * t16, *scores = vc + tokens * h16;
    const float scale = 1.f / std::sqrt(float(head_size));
    for (int64_t j = 0; j < t16; j++)
        for (int64_t d = 0; d < head_size; d++) kt[d * t16 + j] = j < tokens ? k[j * stride + d] * scale : 0;
    for (int64_t j = 0; j < tokens; j++)
        for (int64_t d = 0; d < h16; d++) vc[j * h16 + d] = d < head_size ? v[j * stride + d] : 0;
    for (int64_t j = 0; j < tokens; j += 16)
        multiply16(tokens, head_size, q, stride, kt + j, t16, nullptr, 16, scores + j, t16);
    for (int64_t i = 0; i < tokens; i++) {
        float *s = scores + i * t16, top[parts], sum[parts] = {};
        for (int64_t j = tokens; j < t16; j++) s[j] = s[0];
        for (int c = 0; c < parts; c++) top[c] = s[c];
        for (int64_t j = 0; j < t16; j += parts)
            for (int c = 0; c < parts; c++) top[c] = s[j + c] > top[c] ? s[j + c] : top[c];
        for (int c = 1; c < parts; c++) top[0] = top[c] > top[0] ? top[c] : top[0];
        for (int64_t j = 0; j < t16; j++) s[j] = fast_exp(s[j] - top[0]);
        for (int64_t j = tokens; j < t16; j++) s[j] = 0;
        for (int64_t j = 0; j < t16; j += parts)
            for (int c = 0; c < parts; c++) sum[c] += s[j + c];
        for (int c = 1; c < parts; c++) sum[0] += sum[c];
        for (int64_t j = 0; j < t16; j++) s[j] /= sum[0];
    }
    for (int64_t d = 0; d < head_size; d += 16)
        multiply16(tokens, tokens, scores, t16, vc + d, h16, nullptr, head_size - d < 16 ? head_size - d : 16,
                out + d, stride);
}

void round_to_bf16(int64_t n, const float *x, uint16_t *y) {
    for (int64_t i = 0; i < n; i++) y[i] = bf16_of(x[i]);
}

} // namespace

extern const loops_t MINILM_LOOPS = {multiply16, gelu, add_layer_norm, attention, round_to_bf16};

} // namespace minilm
