// SPDX-License-Identifier: Apache-2.0
// Built several times, LLM_LOOPS being the name of the result, so everything here is local and calls no
// template that another file could share.
#include "loops.hpp"

#include <cmath>
#include <cstring>

namespace llm {

namespace {

#if defined(__AVX512F__)
constexpr int lanes = 16;
#else
constexpr int lanes = 8;
#endif
constexpr int vectors = int(panel) / lanes;
typedef float floats_t __attribute__((vector_size(lanes * 4)));
typedef uint32_t words_t __attribute__((vector_size(lanes * 4)));
typedef uint16_t halves_t __attribute__((vector_size(lanes * 2)));

inline floats_t load(const float *p) {
    floats_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
inline floats_t load(const uint16_t *p) {
    halves_t h;
    memcpy(&h, p, sizeof(h));
    const words_t w = __builtin_convertvector(h, words_t) << 16;
    floats_t v;
    memcpy(&v, &w, sizeof(v));
    return v;
}
inline void store(float *p, floats_t v) { memcpy(p, &v, sizeof(v)); }

// `rows` rows of sums stay in registers. With one row, sums of even and odd depth are apart, as a sum waits
// for the one before it.
template <int rows, typename W>
inline void multiply_rows(int64_t depth, const float *x, int64_t x_stride, const W *w, int64_t w_stride,
        float *y, int64_t y_stride, bool adds) {
    constexpr int apart = rows == 1 ? 4 : rows == 2 ? 2 : 1;
    floats_t sum[apart][rows][vectors] = {};
    int64_t k = 0;
    for (; k + apart <= depth; k += apart)
        for (int a = 0; a < apart; a++)
            for (int v = 0; v < vectors; v++) {
                const floats_t wk = load(w + (k + a) * w_stride + v * lanes);
                for (int r = 0; r < rows; r++) sum[a][r][v] += x[r * x_stride + k + a] * wk;
            }
    for (; k < depth; k++)
        for (int v = 0; v < vectors; v++) {
            const floats_t wk = load(w + k * w_stride + v * lanes);
            for (int r = 0; r < rows; r++) sum[0][r][v] += x[r * x_stride + k] * wk;
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            floats_t s = sum[0][r][v];
            for (int a = 1; a < apart; a++) s += sum[a][r][v];
            float *to = y + r * y_stride + v * lanes;
            store(to, adds ? load(to) + s : s);
        }
}

template <typename W>
void multiply(int64_t rows, int64_t depth, const float *x, int64_t x_stride, const W *w, int64_t w_stride,
        float *y, int64_t y_stride, bool adds) {
    constexpr int most = 6;
    for (; rows >= most; rows -= most, x += most * x_stride, y += most * y_stride)
        multiply_rows<most>(depth, x, x_stride, w, w_stride, y, y_stride, adds);
    switch (rows) {
    case 1: return multiply_rows<1>(depth, x, x_stride, w, w_stride, y, y_stride, adds);
    case 2: return multiply_rows<2>(depth, x, x_stride, w, w_stride, y, y_stride, adds);
    case 3: return multiply_rows<3>(depth, x, x_stride, w, w_stride, y, y_stride, adds);
    case 4: return multiply_rows<4>(depth, x, x_stride, w, w_stride, y, y_stride, adds);
    case 5: return multiply_rows<5>(depth, x, x_stride, w, w_stride, y, y_stride, adds);
    default: return;
    }
}

// e^x to about 1e-7 relative for x <= 88, 0 below -87: 2^n times a polynomial on [-ln2/2, ln2/2].
inline floats_t exp_of(floats_t x) {
    const floats_t least = floats_t{} - 87.f, most = floats_t{} + 88.f;
    x = x < least ? least : x > most ? most : x;
    const floats_t shifted = x * 1.44269504f + 12582912.f; // the nearest integer is in the low mantissa bits
    const floats_t n = shifted - 12582912.f;
    const floats_t r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    floats_t p = floats_t{} + 1.f / 720;
    p = p * r + 1.f / 120;
    p = p * r + 1.f / 24;
    p = p * r + 1.f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.f;
    p = p * r + 1.f;
    words_t exponent, bits;
    memcpy(&exponent, &shifted, sizeof(bits));
    memcpy(&bits, &p, sizeof(bits));
    bits += exponent << 23; // n moves into the exponent field; 12582912's own bits leave at the top
    memcpy(&p, &bits, sizeof(bits));
    return p;
}

inline float sum_of(floats_t v) {
    float s = 0;
    for (int i = 0; i < lanes; i++) s += v[i];
    return s;
}

float exp_below(int64_t n, float *x, float largest) {
    floats_t sum = {};
    for (int64_t i = 0; i < n; i += lanes) {
        const floats_t e = exp_of(load(x + i) - largest);
        sum += e;
        store(x + i, e);
    }
    return sum_of(sum);
}

float largest(int64_t n, const float *x) {
    floats_t top = load(x);
    for (int64_t i = lanes; i < n; i += lanes) {
        const floats_t v = load(x + i);
        top = v > top ? v : top;
    }
    float t = top[0];
    for (int i = 1; i < lanes; i++) t = top[i] > t ? top[i] : t;
    return t;
}

bool is_finite(int64_t n, const float *x) {
    floats_t sum = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) sum += load(x + i) * 0.f; // 0 of each number, else NaN
    float s = sum_of(sum);
    for (; i < n; i++) s += x[i] * 0.f;
    return s == 0.f;
}

void scale(int64_t n, float factor, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

void rms_norm(int64_t n, const float *x, const float *weight, float eps, float *y) {
    floats_t squares = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const floats_t v = load(x + i);
        squares += v * v;
    }
    float sum = sum_of(squares);
    for (; i < n; i++) sum += x[i] * x[i];
    const float factor = 1.f / std::sqrt(sum / float(n) + eps);
    for (i = 0; i < n; i++) y[i] = x[i] * factor * weight[i];
}

void silu(int64_t n, const float *gate, const float *up, float *y) {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const floats_t g = load(gate + i);
        store(y + i, g / (1.f + exp_of(-g)) * load(up + i));
    }
    for (; i < n; i++) y[i] = gate[i] / (1.f + std::exp(-gate[i])) * up[i];
}

void to_bf16(int64_t n, const float *x, uint16_t *y) {
    for (int64_t i = 0; i < n; i++) y[i] = bf16_of(x[i]);
}

void from_bf16(int64_t n, const uint16_t *x, float *y) {
    for (int64_t i = 0; i < n; i++) {
        const uint32_t u = uint32_t(x[i]) << 16;
        memcpy(y + i, &u, 4);
    }
}

} // namespace

extern const loops_t LLM_LOOPS = {multiply<uint16_t>, multiply<float>, exp_below, largest, is_finite, scale,
        rms_norm, silu, to_bf16, from_bf16};

} // namespace llm
