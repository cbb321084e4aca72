// SPDX-License-Identifier: Apache-2.0
// The body of moe_kernels_avx2.cpp and moe_kernels_avx512.cpp. Everything here has internal linkage: code
// compiled for one ISA must not be merged by the linker with code for another. Element-wise loops are
// left to the compiler; reductions are written with vectors.
#pragma once

#include <immintrin.h>

#include "common/route_rules.hpp"
#include "cpu/x64/moe/moe_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

using namespace route_rules;

#define MXDNN_INLINE static inline __attribute__((always_inline))

// Half of the 16 partial results of a reduction. Compilers split wider vectors into elements if the ISA does
// not have them.
typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t s32x8 __attribute__((vector_size(32)));
constexpr int half = 8;
static_assert(2 * half == sums && 2 * half == route_pad);

constexpr float infinity = __builtin_inff();

template <typename V, typename T>
MXDNN_INLINE V load(const T *p) {
    V v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
}

// ---- moe_route ----

// Softmax of x[0, n), n a multiple of 16. Padding is -Inf and becomes 0.
MXDNN_INLINE void softmax(float *x, int n) {
    // NaN never compares as larger. It appears in the sum.
    f32x8 most = load<f32x8>(x);
    for (int j = 0; j < half; j++) most[j] = larger(-infinity, most[j]);
    for (int i = half; i < n; i += half) {
        const f32x8 v = load<f32x8>(x + i);
        most = v > most ? v : most;
    }
    float top = -infinity;
    for (int j = 0; j < half; j++) top = larger(top, most[j]);
    for (int i = 0; i < n; i++) x[i] = exp_f32(x[i] - top);
    f32x8 low = {}, high = {};
    for (int i = 0; i < n; i += 2 * half) {
        low += load<f32x8>(x + i);
        high += load<f32x8>(x + i + half);
    }
    float s[sums];
    __builtin_memcpy(s, &low, sizeof(low));
    __builtin_memcpy(s + half, &high, sizeof(high));
    const float total = add_sums(s);
    for (int i = 0; i < n; i++) x[i] /= total;
}

// The index of the largest of n keys, n a multiple of 16; of equal ones the lowest.
MXDNN_INLINE int best_of(const int32_t *keys, int n) {
    s32x8 index = {0, 1, 2, 3, 4, 5, 6, 7}, best[2], at[2];
    for (int h = 0; h < 2; h++) {
        best[h] = load<s32x8>(keys + h * half);
        at[h] = index + h * half;
    }
    for (int i = 2 * half; i < n; i += 2 * half)
        for (int h = 0; h < 2; h++) {
            const s32x8 v = load<s32x8>(keys + i + h * half), better = v > best[h];
            best[h] = better ? v : best[h];
            at[h] = better ? index + (i + h * half) : at[h];
        }
    const s32x8 other = (best[1] > best[0]) | ((best[1] == best[0]) & (at[1] < at[0]));
    const s32x8 b = other ? best[1] : best[0], a = other ? at[1] : at[0];
    int32_t top = b[0], where = a[0];
    for (int j = 1; j < half; j++) {
        const bool better = b[j] > top || (b[j] == top && a[j] < where);
        top = better ? b[j] : top;
        where = better ? a[j] : where;
    }
    return where;
}

MXDNN_INLINE void keep_two(int32_t &best, int32_t &second, int32_t k) {
    const int32_t lesser = best < k ? best : k;
    second = second > lesser ? second : lesser;
    best = best > k ? best : k;
}

// The best two of n keys.
MXDNN_INLINE void best_two(const int32_t *keys, int n, int32_t &best, int32_t &second) {
    best = second = no_key;
    int i = 0;
    if (n >= 2 * half) {
        s32x8 b = load<s32x8>(keys), s = b;
        for (int j = 0; j < half; j++) s[j] = no_key;
        for (i = half; i + half <= n; i += half) {
            const s32x8 v = load<s32x8>(keys + i), lesser = b < v ? b : v;
            s = s > lesser ? s : lesser;
            b = b > v ? b : v;
        }
        for (int j = 0; j < half; j++) keep_two(best, second, b[j]), keep_two(best, second, s[j]);
    }
    for (; i < n; i++) keep_two(best, second, keys[i]);
}

// Experts outside the best groups cannot be chosen. `choice` has the keys that decide about groups.
MXDNN_INLINE void close_groups(
        const route_params_t &p, const int32_t *choice, int32_t *key, int32_t *of_group) {
    const int groups = int(p.route.expert_groups), n = p.experts / groups;
    const int padded = (groups + route_pad - 1) / route_pad * route_pad;
    for (int g = 0; g < groups; g++) {
        int32_t best, second;
        best_two(choice + g * n, n, best, second);
        of_group[g] = p.route.flags & mxdnn_route_group_max ? best : group_key(best, second);
    }
    for (int g = groups; g < padded; g++) of_group[g] = no_key;
    constexpr int few = 64;
    bool open[few] = {};
    if (groups <= few) {
        for (int i = 0; i < p.route.topk_groups; i++) {
            const int g = best_of(of_group, padded);
            of_group[g] = no_key; // key of a group that cannot be chosen
            open[g] = true;
        }
        for (int g = 0; g < groups; g++)
            if (!open[g])
                for (int e = g * n; e < (g + 1) * n; e++) key[e] = no_key;
        return;
    }
    // Many groups: each counts the better ones.
    for (int g = 0; g < groups; g++) {
        int ahead = 0;
        for (int o = 0; o < groups; o++)
            ahead += of_group[o] > of_group[g] || (of_group[o] == of_group[g] && o < g);
        if (ahead >= p.route.topk_groups)
            for (int e = g * n; e < (g + 1) * n; e++) key[e] = no_key;
    }
}

void route(const route_params_t &p, float *score, int32_t *key, int32_t *group_key, int32_t *ids,
        float *weights) {
    const int E = p.experts, n = p.padded, k = int(p.route.topk);
    const bool grouped = p.route.topk_groups < p.route.expert_groups;
    for (int i = E; i < n; i++) score[i] = -infinity;
    if (!p.bias)
        for (int i = 0; i < n; i++) key[i] = key_of(score[i]);
    if (p.route.scoring == mxdnn_route_softmax_topk) softmax(score, n);
    if (p.route.scoring == mxdnn_route_sigmoid)
        for (int i = 0; i < n; i++) score[i] = sigmoid(score[i]);
    if (p.bias)
        for (int i = 0; i < n; i++) key[i] = key_of(score[i] + p.bias[i]);
    for (int i = E; i < n; i++) key[i] = no_key;
    if (grouped) {
        // Groups are compared by scores. Without a bias the keys are those of the logits, so the second half
        // of group_key [2 * padded] gets the keys of the scores.
        int32_t *choice = key;
        if (!p.bias) {
            choice = group_key + n;
            for (int i = 0; i < n; i++) choice[i] = key_of(score[i]);
        }
        close_groups(p, choice, key, group_key);
    }
    for (int j = 0; j < k; j++) {
        ids[j] = best_of(key, n);
        key[ids[j]] = no_key;
        weights[j] = score[ids[j]];
    }
    if (p.route.scoring == mxdnn_route_topk_softmax) {
        float most = -infinity;
        for (int j = 0; j < k; j++) most = larger(most, weights[j]);
        for (int j = 0; j < k; j++) weights[j] = exp_f32(weights[j] - most);
    }
    if (p.route.scoring == mxdnn_route_topk_softmax || p.route.renormalizes()) {
        float sum = 0;
        for (int j = 0; j < k; j++) sum += weights[j];
        if (p.route.scoring == mxdnn_route_sigmoid) sum += sum_guard;
        for (int j = 0; j < k; j++) weights[j] /= sum;
    }
    for (int j = 0; j < k; j++) weights[j] *= p.factor;
}

// ---- moe_unpermute ----

// Columns that are summed together; the sums stay in the first-level cache.
constexpr int combine_cols = 1024;

// A row of the source and its weight.
struct term_t {
    const uint8_t *row;
    float weight;
};
// The number of terms that are added in one pass over the columns, which are as many streams from memory.
constexpr int max_terms = 4;

MXDNN_INLINE float load_f32(const uint8_t *row, int i) { return reinterpret_cast<const float *>(row)[i]; }
MXDNN_INLINE float load_bf16(const uint8_t *row, int i) {
    return real(uint32_t(reinterpret_cast<const uint16_t *>(row)[i]) << 16);
}

// sum = sum + t[0] + t[1] + ..., one multiply-add after the other. The very first term is a product.
template <int terms, typename F>
MXDNN_INLINE void add_terms(bool first, const term_t *t, F load_one, float *sum, int n) {
    term_t own[terms];
    for (int j = 0; j < terms; j++) own[j] = t[j];
    const auto rest = [&](float s, int i) {
        for (int j = 1; j < terms; j++) s = __builtin_fmaf(own[j].weight, load_one(own[j].row, i), s);
        return s;
    };
    if (first)
        for (int i = 0; i < n; i++) sum[i] = rest(own[0].weight * load_one(own[0].row, i), i);
    else
        for (int i = 0; i < n; i++)
            sum[i] = rest(__builtin_fmaf(own[0].weight, load_one(own[0].row, i), sum[i]), i);
}

template <typename F>
MXDNN_INLINE void add_terms(bool first, const term_t *t, int terms, F load_one, float *sum, int n) {
    switch (terms) {
    case 1: return add_terms<1>(first, t, load_one, sum, n);
    case 2: return add_terms<2>(first, t, load_one, sum, n);
    case 3: return add_terms<3>(first, t, load_one, sum, n);
    default: return add_terms<4>(first, t, load_one, sum, n);
    }
}

MXDNN_INLINE void add_terms(data_type_t dt, bool first, const term_t *t, int terms, float *sum, int n) {
    if (dt == mxdnn_f32)
        return add_terms(
                first, t, terms, [](const uint8_t *row, int i) { return load_f32(row, i); }, sum, n);
    if (dt == mxdnn_bf16)
        return add_terms(
                first, t, terms, [](const uint8_t *row, int i) { return load_bf16(row, i); }, sum, n);
    for (int j = 0; j < terms; j++) {
        const uint16_t *x = reinterpret_cast<const uint16_t *>(t[j].row);
        float values[combine_cols];
        int i = 0;
        for (; i + 8 <= n; i += 8)
            _mm256_storeu_ps(
                    values + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(x + i))));
        for (; i < n; i++) values[i] = _cvtsh_ss(x[i]);
        add_terms<1>(
                first && j == 0, t + j, [&](const uint8_t *, int c) { return values[c]; }, sum, n);
    }
}

// Rounds to nearest even. NaN stays NaN (quiet).
MXDNN_INLINE uint16_t to_bf16(float x) {
    const uint32_t u = bits(x);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return uint16_t((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded);
}

MXDNN_INLINE void store_row(data_type_t dt, const float *sum, void *dst, int64_t col, int n) {
    if (dt == mxdnn_f32) {
        float *d = static_cast<float *>(dst) + col;
        for (int i = 0; i < n; i++) d[i] = sum[i];
    } else if (dt == mxdnn_bf16) {
        uint16_t *d = static_cast<uint16_t *>(dst) + col;
        for (int i = 0; i < n; i++) d[i] = to_bf16(sum[i]);
    } else {
        uint16_t *d = static_cast<uint16_t *>(dst) + col;
        int i = 0;
        for (; i + 8 <= n; i += 8)
            _mm_storeu_si128(reinterpret_cast<__m128i *>(d + i),
                    _mm256_cvtps_ph(_mm256_loadu_ps(sum + i), _MM_FROUND_TO_NEAREST_INT));
        for (; i < n; i++) d[i] = _cvtss_sh(sum[i], _MM_FROUND_TO_NEAREST_INT);
    }
}

MXDNN_INLINE float weight_of(const combine_params_t &p, int64_t entry) {
    if (!p.weights) return 1.f;
    return p.weights_dt == mxdnn_f32 ? static_cast<const float *>(p.weights)[entry]
                                     : real(uint32_t(static_cast<const uint16_t *>(p.weights)[entry]) << 16);
}

void combine(const combine_params_t &p, const int32_t *from, int64_t entry, void *dst) {
    alignas(64) float sum[combine_cols];
    const int width = p.src_dt == mxdnn_f32 ? 4 : 2;
    for (int64_t col = 0; col < p.cols; col += combine_cols) {
        const int n = int(p.cols - col < combine_cols ? p.cols - col : combine_cols);
        term_t t[max_terms];
        int terms = 0;
        bool first = true;
        for (int j = 0; j < p.k; j++) {
            if (from[j] < 0) continue;
            t[terms++] = {p.src + from[j] * p.src_pitch + col * width, weight_of(p, entry + j)};
            if (terms < max_terms) continue;
            add_terms(p.src_dt, first, t, terms, sum, n);
            first = false;
            terms = 0;
        }
        if (terms > 0)
            add_terms(p.src_dt, first, t, terms, sum, n);
        else if (first)
            for (int i = 0; i < n; i++) sum[i] = 0.f;
        store_row(p.dst_dt, sum, dst, col, n);
    }
}

} // namespace

extern const moe_kernels_t MXDNN_MOE_KERNELS;
const moe_kernels_t MXDNN_MOE_KERNELS = {route, combine};

} // namespace x64
} // namespace impl
} // namespace mxdnn
