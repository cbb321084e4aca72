// SPDX-License-Identifier: Apache-2.0
// The operations of ops.hpp, cut into pieces for the threads.
#include "ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/on_threads.hpp"
#include "loops.hpp"

namespace minilm {

namespace {

const loops_t &loops() {
    static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return avx2 ? loops_avx2 : loops_any;
}

} // namespace

void parallel(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)> &body) {
    on_threads(n, grain, body);
}

void linear(
        int64_t rows, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y) {
    parallel((out + 15) / 16, 1, [&](int64_t begin, int64_t end) {
        std::vector<float> wt(size_t(in) * 16);
        for (int64_t b = begin; b < end; b++) {
            const int64_t columns = std::min<int64_t>(16, out - b * 16);
            for (int64_t c = 0; c < columns; c++)
                for (int64_t k = 0; k < in; k++) wt[size_t(k * 16 + c)] = w[(b * 16 + c) * in + k];
            loops().multiply16(rows, in, x, in, wt.data(), 16, bias + b * 16, columns, y + b * 16, out);
        }
    });
}

void gelu(int64_t n, float *x) {
    parallel(n, 4096, [&](int64_t begin, int64_t end) { loops().gelu(end - begin, x + begin); });
}

void add_layer_norm(int64_t rows, int64_t n, const float *x, const float *residual, const float *gamma,
        const float *beta, float eps, float *y) {
    parallel(rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++)
            loops().add_layer_norm(
                    n, x + r * n, residual ? residual + r * n : nullptr, gamma, beta, eps, y + r * n);
    });
}

void attention(int64_t tokens, int64_t head_size, int64_t stride, const float *q, const float *k,
        const float *v, float *out) {
    std::vector<float> scratch(size_t(attention_scratch(tokens, head_size)));
    loops().attention(tokens, head_size, stride, q, k, v, out, scratch.data());
}

uint16_t to_bf16(float f) { return bf16_of(f); }

float from_bf16(uint16_t b) {
    const uint32_t u = uint32_t(b) << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

void to_bf16(int64_t n, const float *x, uint16_t *y) {
    parallel(n, 1 << 15,
            [&](int64_t begin, int64_t end) { loops().round_to_bf16(end - begin, x + begin, y + begin); });
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
