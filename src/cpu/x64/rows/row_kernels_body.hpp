// SPDX-License-Identifier: Apache-2.0
// The body of row_kernels_avx2.cpp and row_kernels_avx512.cpp. Everything here has internal
// linkage or is always inlined: code compiled for one ISA must not be merged by the
// linker with code for another.
#pragma once

#include <immintrin.h>

#include "common/exp_f32.hpp"
#include "cpu/x64/rows/row_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

#define MXDNN_INLINE static inline __attribute__((always_inline))

MXDNN_INLINE uint32_t bits(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}
MXDNN_INLINE float real(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}
MXDNN_INLINE float min_of(float a, float b) { return a < b ? a : b; }
MXDNN_INLINE float max_of(float a, float b) { return a > b ? a : b; }

// ---- conversions ----

MXDNN_INLINE float f32_of_bf16(uint16_t h) { return real(uint32_t(h) << 16); }
// Rounds to nearest even. NaN stays NaN (quiet).
MXDNN_INLINE uint16_t bf16_of_f32(float x) {
    const uint32_t u = bits(x);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return uint16_t((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded);
}

void to_f32(data_type_t dt, const void *src, int64_t stride, float *out, int64_t n) {
    if (dt == mxdnn_f32) {
        const float *s = static_cast<const float *>(src);
        if (stride == 1)
            for (int64_t i = 0; i < n; i++) out[i] = s[i];
        else
            for (int64_t i = 0; i < n; i++) out[i] = s[i * stride];
    } else if (dt == mxdnn_bf16) {
        const uint16_t *s = static_cast<const uint16_t *>(src);
        if (stride == 1)
            for (int64_t i = 0; i < n; i++) out[i] = f32_of_bf16(s[i]);
        else
            for (int64_t i = 0; i < n; i++) out[i] = f32_of_bf16(s[i * stride]);
    } else {
        const uint16_t *s = static_cast<const uint16_t *>(src);
        int64_t i = 0;
        if (stride == 1)
            for (; i + 8 <= n; i += 8)
                _mm256_storeu_ps(
                        out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(s + i))));
        for (; i < n; i++) out[i] = _cvtsh_ss(s[i * stride]);
    }
}

void from_f32(data_type_t dt, const float *x, void *dst, int64_t stride, int64_t n) {
    if (dt == mxdnn_f32) {
        float *d = static_cast<float *>(dst);
        if (stride == 1)
            for (int64_t i = 0; i < n; i++) d[i] = x[i];
        else
            for (int64_t i = 0; i < n; i++) d[i * stride] = x[i];
    } else if (dt == mxdnn_bf16) {
        uint16_t *d = static_cast<uint16_t *>(dst);
        if (stride == 1)
            for (int64_t i = 0; i < n; i++) d[i] = bf16_of_f32(x[i]);
        else
            for (int64_t i = 0; i < n; i++) d[i * stride] = bf16_of_f32(x[i]);
    } else {
        uint16_t *d = static_cast<uint16_t *>(dst);
        int64_t i = 0;
        if (stride == 1)
            for (; i + 8 <= n; i += 8)
                _mm_storeu_si128(reinterpret_cast<__m128i *>(d + i),
                        _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
        for (; i < n; i++) d[i * stride] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
    }
}

void from_f32_around(data_type_t dt, const float *x, void *dst, int64_t n) {
    constexpr int64_t line = 64;
    const int64_t size = dt == mxdnn_f32 ? 4 : 2, step = line / size;
    uint8_t *d = static_cast<uint8_t *>(dst);
    // The first elements, up to a whole line, and the last ones.
    const int64_t bytes_before = int64_t(-reinterpret_cast<uintptr_t>(d) % line),
                  before = bytes_before % size == 0 ? bytes_before / size : n;
    int64_t i = before < n ? before : n;
    from_f32(dt, x, d, 1, i);
    for (; i + step <= n; i += step) {
        alignas(line) uint8_t values[line];
        from_f32(dt, x + i, values, 1, step);
        for (int64_t b = 0; b < line; b += 32)
            _mm256_stream_si256(reinterpret_cast<__m256i *>(d + i * size + b),
                    _mm256_load_si256(reinterpret_cast<const __m256i *>(values + b)));
    }
    from_f32(dt, x + i, d + i * size, 1, n - i);
}

// `convert` gets the address of a row of the destination, the scale, and the sums.
template <typename F>
MXDNN_INLINE void each_linear_row(const linear_rows_t &l, int64_t bytes, F convert) {
    for (int64_t r = 0; r < l.rows; r++) {
        char *dst = static_cast<char *>(l.dst) + r * l.dst_stride;
        if (r + rows_ahead < l.rows)
            for (int64_t i = 0; i < bytes; i += 64)
                __builtin_prefetch(dst + rows_ahead * l.dst_stride + i, 1);
        convert(dst, l.row_scales ? l.scale * l.row_scales[r] : l.scale, l.x + r * l.x_stride);
    }
}

// The number of columns of most calls is known to the compiler.
template <typename T, typename F>
MXDNN_INLINE void linear_as(const linear_rows_t &l, F convert) {
    constexpr int64_t usual = 64;
    const auto row = [&](void *dst, float scale, const float *x, int64_t n) {
        T *d = static_cast<T *>(dst);
        for (int64_t i = 0; i < n; i++) d[i] = convert(x[i] * scale + l.bias[i]);
    };
    if (l.columns == usual)
        each_linear_row(l, usual * int64_t(sizeof(T)),
                [&](void *dst, float scale, const float *x) { row(dst, scale, x, usual); });
    else
        each_linear_row(l, l.columns * int64_t(sizeof(T)),
                [&](void *dst, float scale, const float *x) { row(dst, scale, x, l.columns); });
}

void linear(data_type_t dt, const linear_rows_t &l) {
    if (dt == mxdnn_f32) return linear_as<float>(l, [](float x) { return x; });
    if (dt == mxdnn_bf16) return linear_as<uint16_t>(l, [](float x) { return bf16_of_f32(x); });
    each_linear_row(l, l.columns * 2, [&](void *dst, float scale, const float *x) {
        float sums[64];
        for (int64_t i = 0; i < l.columns; i += 64) {
            const int64_t n = l.columns - i < 64 ? l.columns - i : 64;
            for (int64_t j = 0; j < n; j++) sums[j] = x[i + j] * scale + l.bias[i + j];
            from_f32(dt, sums, static_cast<uint16_t *>(dst) + i, 1, n);
        }
    });
}

void decode(const uint8_t *codes, const float *table, float scale, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = table[codes[i]] * scale;
}

// ---- elementary functions: f32 in and out, a few ulp (bounds: doc/concepts/accuracy.md) ----

MXDNN_INLINE float sigmoid_of(float x) { return 1.f / (1.f + exp_f32(-x)); }

// An odd series where 1 - 2 / (e^2x + 1) would cancel.
MXDNN_INLINE float tanh_of(float x) {
    const float q = x * x;
    float p = 21844.f / 6081075;
    p = __builtin_fmaf(p, -q, 1382.f / 155925);
    p = __builtin_fmaf(p, -q, 62.f / 2835);
    p = __builtin_fmaf(p, -q, 17.f / 315);
    p = __builtin_fmaf(p, -q, 2.f / 15);
    p = __builtin_fmaf(p, -q, 1.f / 3);
    const float small = x - x * q * p;
    const float large = 1.f - 2.f / (exp_f32(2.f * x) + 1.f);
    return q < .16f ? small : large;
}

// erfc(z) for z >= 0 is e^(-z^2) t P(t), t = 1 / (1 + 0.4 z). P is a minimax fit on z in [0, 14] with a
// relative error of 2e-8. z^2 is split, since e^(-z^2) magnifies its rounding error.
MXDNN_INLINE float erfc_of(float z) {
    const float t = 1.f / __builtin_fmaf(.4f, z, 1.f);
    float p = -0.023103423416614532f;
    p = __builtin_fmaf(p, t, 0.16341586410999298f);
    p = __builtin_fmaf(p, t, -0.4191703796386719f);
    p = __builtin_fmaf(p, t, 0.4437742531299591f);
    p = __builtin_fmaf(p, t, -0.20050756633281708f);
    p = __builtin_fmaf(p, t, 0.22845645248889923f);
    p = __builtin_fmaf(p, t, 0.14422062039375305f);
    p = __builtin_fmaf(p, t, 0.21192842721939087f);
    p = __builtin_fmaf(p, t, 0.22529564797878265f);
    p = __builtin_fmaf(p, t, 0.22569012641906738f);
    const float square = z * z, error = __builtin_fmaf(z, z, -square);
    const float e = exp_f32(-square) * (1.f - error);
    return z > 14.f ? 0.f : e * t * p;
}

MXDNN_INLINE float gelu_erf_of(float x) {
    const float z = x * 0.70710678f;
    const float half = .5f * erfc_of(z < 0 ? -z : z); // the smaller tail
    return x != x ? x : x < 0 ? (x < -20.f ? 0.f : x * half) : x * (1.f - half);
}
MXDNN_INLINE float gelu_tanh_of(float x) {
    // 0.5 (1 + tanh u) is sigmoid(2u). This form keeps its relative accuracy for negative u.
    const float u = 0.797884561f * x * __builtin_fmaf(.044715f * x, x, 1.f);
    return x < -20.f ? 0.f : x * sigmoid_of(2.f * u);
}
MXDNN_INLINE float swish_of(float x, float alpha) { return x * sigmoid_of(alpha * x); }

// ---- post-ops ----

void scale(float *x, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= a;
}

void add_scaled(float *x, const float *y, float a, float zero, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] += a * (y[i] - zero);
}

template <typename F>
MXDNN_INLINE void map(float *x, int64_t n, F f) {
    for (int64_t i = 0; i < n; i++) x[i] = f(x[i]);
}

void eltwise(mxdnn_alg_kind_t alg, float *x, float alpha, float beta, int64_t n) {
    switch (alg) {
    case mxdnn_eltwise_relu: return map(x, n, [=](float v) { return v > 0 ? v : v != v ? v : alpha * v; });
    case mxdnn_eltwise_tanh: return map(x, n, [](float v) { return tanh_of(v); });
    case mxdnn_eltwise_square: return map(x, n, [](float v) { return v * v; });
    case mxdnn_eltwise_linear: return map(x, n, [=](float v) { return __builtin_fmaf(alpha, v, beta); });
    case mxdnn_eltwise_logistic: return map(x, n, [](float v) { return sigmoid_of(v); });
    case mxdnn_eltwise_gelu_tanh: return map(x, n, [](float v) { return gelu_tanh_of(v); });
    case mxdnn_eltwise_swish: return map(x, n, [=](float v) { return swish_of(v, alpha); });
    case mxdnn_eltwise_clip:
        return map(x, n, [=](float v) { return v != v ? v : min_of(max_of(v, alpha), beta); });
    case mxdnn_eltwise_gelu_erf: return map(x, n, [](float v) { return gelu_erf_of(v); });
    case mxdnn_eltwise_relu2: return map(x, n, [](float v) { return v > 0 ? v * v : v != v ? v : 0.f; });
    default: return;
    }
}

template <typename F>
MXDNN_INLINE void zip(float *x, const float *y, int64_t n, F f) {
    for (int64_t i = 0; i < n; i++) x[i] = f(x[i], y[i]);
}

void binary(mxdnn_alg_kind_t alg, float *x, const float *y, int64_t n) {
    switch (alg) {
    case mxdnn_binary_add: return zip(x, y, n, [](float a, float b) { return a + b; });
    case mxdnn_binary_mul: return zip(x, y, n, [](float a, float b) { return a * b; });
    // NaN in either operand gives NaN. A comparison would lose one of them.
    case mxdnn_binary_max:
        return zip(x, y, n, [](float a, float b) { return a != a || b != b ? a + b : max_of(a, b); });
    case mxdnn_binary_min:
        return zip(x, y, n, [](float a, float b) { return a != a || b != b ? a + b : min_of(a, b); });
    default: return;
    }
}

// min and max that keep a NaN of x.
MXDNN_INLINE float at_most(float x, float limit) { return x > limit ? limit : x; }
MXDNN_INLINE float at_least(float x, float limit) { return x < limit ? limit : x; }

template <typename F>
MXDNN_INLINE void gate(
        const float *g, const float *u, int64_t stride, float *out, float limit, int64_t n, F f) {
    // Ascending indices, because out may be the gate itself.
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            out[i] = f(at_most(g[i], limit), at_least(at_most(u[i], limit), -limit));
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = f(at_most(g[2 * i], limit), at_least(at_most(u[2 * i], limit), -limit));
}

void gated(mxdnn_alg_kind_t alg, const float *g, const float *u, int64_t stride, float *out, float alpha,
        float beta, float limit, int64_t n) {
    // Without a limit, the limit is one that nothing exceeds.
    const float most = limit > 0 && limit <= 3.402823466e38f ? limit : real(0x7f800000);
    switch (alg) {
    case mxdnn_gated_silu:
        return gate(g, u, stride, out, most, n, [](float a, float b) { return swish_of(a, 1.f) * b; });
    case mxdnn_gated_swiglu_oai:
        return gate(g, u, stride, out, most, n,
                [=](float a, float b) { return swish_of(a, alpha) * (b + beta); });
    case mxdnn_gated_gelu_erf:
        return gate(g, u, stride, out, most, n, [](float a, float b) { return gelu_erf_of(a) * b; });
    case mxdnn_gated_gelu_tanh:
        return gate(g, u, stride, out, most, n, [](float a, float b) { return gelu_tanh_of(a) * b; });
    default: return;
    }
}

// Eight partial sums, added in a fixed order.
float sum(const float *x, int64_t n) {
    float s[8] = {};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) s[j] += x[i + j];
    for (; i < n; i++) s[i & 7] += x[i];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// ---- quantising ----

// Values of f32, and of bf16 as f32.
struct f32_values_t {
    using word_t = uint32_t;
    const float *x;
    float operator[](int64_t i) const { return x[i]; }
    word_t magnitude(int64_t i) const { return bits(x[i]) & 0x7fffffff; }
    static uint32_t bits_of(word_t magnitude) { return magnitude; }
    f32_values_t from(int64_t i) const { return {x + i}; }
#ifdef __AVX512F__
    __m512 vector(int64_t i) const { return _mm512_loadu_ps(x + i); }
#endif
};
struct bf16_values_t {
    using word_t = uint16_t;
    const uint16_t *x;
    float operator[](int64_t i) const { return f32_of_bf16(x[i]); }
    word_t magnitude(int64_t i) const { return word_t(x[i] & 0x7fff); }
    static uint32_t bits_of(word_t magnitude) { return uint32_t(magnitude) << 16; }
    bf16_values_t from(int64_t i) const { return {x + i}; }
#ifdef __AVX512F__
    __m512 vector(int64_t i) const {
        const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x + i));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
    }
#endif
};
template <typename F>
MXDNN_INLINE auto with_values(data_type_t dt, const void *x, F f) {
    return dt == mxdnn_bf16 ? f(bf16_values_t{static_cast<const uint16_t *>(x)})
                            : f(f32_values_t{static_cast<const float *>(x)});
}

template <typename V>
MXDNN_INLINE uint32_t amax_of(V x, int64_t n) {
    typename V::word_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const typename V::word_t b = x.magnitude(i);
        most = b > most ? b : most;
    }
    return V::bits_of(most);
}
uint32_t amax_bits(data_type_t dt, const void *x, int64_t n) {
    return with_values(dt, x, [=](auto values) { return amax_of(values, n); });
}

template <typename V>
MXDNN_INLINE void values_to_s8(V x, float step, uint8_t *codes, int64_t n) {
    int64_t i = 0;
#ifdef __AVX512F__
    // A division takes longer than everything else. A product with the reciprocal is off by less than 2^-15.
    // This matters only if the result is that close to the middle between two integers.
    const __m512 most = _mm512_set1_ps(127.f), least = _mm512_set1_ps(-127.f),
                 inverse = _mm512_set1_ps(1.f / step), sure = _mm512_set1_ps(0.5f - 1.f / 16384);
    const bool normal = step >= 0x1p-125f && step <= 0x1p125f; // and so is the reciprocal
    for (; normal && i + 16 <= n; i += 16) {
        const auto clamp = [&](__m512 q) { return _mm512_max_ps(_mm512_min_ps(q, most), least); };
        const __m512 values = x.vector(i);
        __m512 q = clamp(_mm512_mul_ps(values, inverse));
        __m512i rounded = _mm512_cvtps_epi32(q);
        const __m512 off = _mm512_abs_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(rounded), q));
        if (_mm512_cmp_ps_mask(off, sure, _CMP_NLT_UQ)) {
            q = clamp(_mm512_div_ps(values, _mm512_set1_ps(step)));
            rounded = _mm512_cvtps_epi32(q);
        }
        _mm_storeu_si128(reinterpret_cast<__m128i *>(codes + i), _mm512_cvtepi32_epi8(rounded));
    }
#endif
    // Adding a small number to 1.5 * 2^23 rounds it to an integer, which is then in the lowest bits.
    for (; i < n; i++) codes[i] = uint8_t(bits(max_of(min_of(x[i] / step, 127.f), -127.f) + 12582912.f));
}
void to_s8(data_type_t dt, const void *x, float step, uint8_t *codes, int64_t n) {
    with_values(dt, x, [=](auto values) { values_to_s8(values, step, codes, n); });
}

constexpr int64_t s8_block = 32;

void amax_bits_of_blocks(data_type_t dt, const void *x, uint32_t *amax, int64_t n) {
    with_values(dt, x, [=](auto values) {
        const int64_t blocks = n / s8_block;
        for (int64_t b = 0; b < blocks; b++) amax[b] = amax_of(values.from(b * s8_block), s8_block);
        if (n % s8_block) amax[blocks] = amax_of(values.from(blocks * s8_block), n % s8_block);
    });
}

template <typename V>
MXDNN_INLINE void block_to_s8(V x, float step, uint8_t *codes, int64_t n) {
#ifdef __AVX512F__
    // The reciprocal is exact, too. A product that overflows or underflows is beyond 127, or rounds to 0.
    if (n == s8_block && step >= 0x1p-125f && step <= 0x1p125f) {
        const __m512 most = _mm512_set1_ps(127.f), least = _mm512_set1_ps(-127.f),
                     inverse = _mm512_set1_ps(1.f / step);
        for (int64_t i = 0; i < s8_block; i += 16) {
            const __m512 q = _mm512_mul_ps(x.vector(i), inverse);
            const __m512i rounded = _mm512_cvtps_epi32(_mm512_max_ps(_mm512_min_ps(q, most), least));
            _mm_storeu_si128(reinterpret_cast<__m128i *>(codes + i), _mm512_cvtepi32_epi8(rounded));
        }
        return;
    }
#endif
    values_to_s8(x, step, codes, n);
}
void blocks_to_s8(data_type_t dt, const void *x, const float *steps, uint8_t *codes, int64_t n) {
    with_values(dt, x, [=](auto values) {
        for (int64_t i = 0, b = 0; i < n; i += s8_block, b++)
            block_to_s8(values.from(i), steps[b], codes + i, n - i < s8_block ? n - i : s8_block);
    });
}

} // namespace

extern const row_kernels_t MXDNN_ROW_KERNELS;
const row_kernels_t MXDNN_ROW_KERNELS = {to_f32, from_f32, from_f32_around, linear, decode, scale, add_scaled,
        eltwise, binary, gated, sum, amax_bits, to_s8, amax_bits_of_blocks, blocks_to_s8};

} // namespace x64
} // namespace impl
} // namespace mxdnn
