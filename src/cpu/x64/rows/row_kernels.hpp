// SPDX-License-Identifier: Apache-2.0
// Operations on short rows of f32 in cache: what surrounds the dot products. Compiled once per
// vector ISA from row_kernels_body.hpp; a plain loop each, which the compiler vectorises.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// A destination is prefetched so many rows before it is written. Rows are short and far apart, so hardware
// does not prefetch them. With a small K this matters.
constexpr int64_t rows_ahead = 8;

// Rows of sums, and the rows of a destination that they become.
struct linear_rows_t {
    const float *x;
    int64_t x_stride; // floats between rows
    void *dst;
    int64_t dst_stride; // bytes between rows
    int64_t rows, columns;
    float scale;
    const float *row_scales; // further factors of the rows, or null
    const float *bias;       // of the columns; -0 changes nothing
};

struct row_kernels_t {
    // out[i] = f32(src[i * stride]) for src of f32, bf16 or f16, stride in elements.
    void (*to_f32)(data_type_t dt, const void *src, int64_t stride, float *out, int64_t n);
    // dst[i * stride] = x[i] rounded to f32, bf16 or f16 (nearest even).
    void (*from_f32)(data_type_t dt, const float *x, void *dst, int64_t stride, int64_t n);
    // The same with stride 1, around the caches; a fence has to follow.
    void (*from_f32_around)(data_type_t dt, const float *x, void *dst, int64_t n);
    // dst[r][i] = x[r][i] * (scale * row_scales[r]) + bias[i], rounded as by from_f32
    void (*linear)(data_type_t dt, const linear_rows_t &rows);
    // out[i] = table[codes[i]] * scale
    void (*decode)(const uint8_t *codes, const float *table, float scale, float *out, int64_t n);
    // x[i] *= a
    void (*scale)(float *x, float a, int64_t n);
    // x[i] += a * (y[i] - zero)
    void (*add_scaled)(float *x, const float *y, float a, float zero, int64_t n);
    void (*eltwise)(mxdnn_alg_kind_t alg, float *x, float alpha, float beta, int64_t n);
    void (*binary)(mxdnn_alg_kind_t alg, float *x, const float *y, int64_t n);
    // out[i] = activation of gate[i * stride] and up[i * stride]. out may be gate. swiglu_oai adds beta to
    // up.
    void (*gated)(mxdnn_alg_kind_t alg, const float *gate, const float *up, int64_t stride, float *out,
            float alpha, float beta, float limit, int64_t n);
    float (*sum)(const float *x, int64_t n);

    // These take x of f32, or of bf16.
    // The largest magnitude_bits() as of f32. It is above every finite value if there is Inf or NaN.
    uint32_t (*amax_bits)(data_type_t dt, const void *x, int64_t n);
    // codes[i] = x[i] / step, rounded to the nearest integer (ties to even), at most 127 in magnitude. For
    // NaN the code may be anything.
    void (*to_s8)(data_type_t dt, const void *x, float step, uint8_t *codes, int64_t n);
    // Both for blocks of 32, of which the last one may be shorter; the steps are powers of two, or NaN.
    void (*amax_bits_of_blocks)(data_type_t dt, const void *x, uint32_t *amax, int64_t n);
    void (*blocks_to_s8)(data_type_t dt, const void *x, const float *steps, uint8_t *codes, int64_t n);
};

extern const row_kernels_t row_kernels_avx2, row_kernels_avx512;

// The kernels for this machine, which has at least AVX2.
const row_kernels_t &row_kernels();

} // namespace x64
} // namespace impl
} // namespace mxdnn
