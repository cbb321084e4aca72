// SPDX-License-Identifier: Apache-2.0
// A row of results in double on its way out: gating, conversion and quantisation, for every matmul.
#pragma once

#include "cpu/ref/ref_post_ops.hpp"

namespace mxdnn {
namespace impl {

// Applies the gated activation to a row in place: 2 * half columns become half. gpt-oss's form adds `beta` to
// up.
inline void ref_gate_row(
        const post_op_t &o, double alpha, double beta, double limit, double *row, dim_t half) {
    // Interleaved pairs are read at or behind the place where their result is written. Halves are read ahead.
    const bool halves = o.gated_layout == mxdnn_gated_halves;
    for (dim_t j = 0; j < half; j++) {
        const double g = row[halves ? j : 2 * j], u = row[halves ? j + half : 2 * j + 1];
        row[j] = ref_gated(o.alg, g, u, alpha, limit, beta);
    }
}

// Row m of the source as it is multiplied: its values, or the values of the codes that it is quantised to.
inline void ref_source_row(const matrix_view_t &src, const problem_t &p, dim_t m, dim_t K, double *to) {
    for (dim_t k = 0; k < K; k++) to[k] = src.value(m, k);
    const source_recipe_t recipe = source_recipe(p);
    if (recipe.kind == recipe_kind_t::none) return;
    for (dim_t first = 0; first < K; first += recipe.block(K)) {
        const dim_t last = std::min(first + recipe.block(K), K);
        uint32_t amax = 0;
        for (dim_t k = first; k < last; k++) amax = std::max(amax, magnitude_bits(float(to[k])));
        const uint32_t scale = recipe.scale(amax);
        for (dim_t k = first; k < last; k++) to[k] = recipe.value(float(to[k]), scale);
    }
}

// The largest finite magnitude of f32 results, for a global scale.
inline float ref_amax(const double *row, dim_t columns) {
    float a = 0;
    for (dim_t n = 0; n < columns; n++) a = nvfp4_global_amax(a, float(row[n]));
    return a;
}

// Row m of the selected matrix of `dst`, whose attributes are `attr`.
inline void ref_store_row(
        const matrix_view_t &dst, const arg_attr_t &attr, dim_t m, const double *row, dim_t columns) {
    if (!dst.quantised()) {
        const data_type_info_t *info = data_type_info(dst.dt());
        for (dim_t n = 0; n < columns; n++) dst.set_code(m, n, info->encode(float(row[n])));
        return;
    }
    const quant_t &q = dst.quant();
    for (dim_t first = 0; first < columns; first += q.block) {
        const int count = int(std::min(columns - first, q.block));
        float x[256];
        uint8_t codes[256];
        for (int i = 0; i < count; i++) x[i] = float(row[first + i]);
        if (attr.is_dynamic()) {
            dst.set_params(
                    m, first, quantize_block(dst.dt(), q, attr.rounding, dst.global(), x, count, codes));
        } else {
            const block_params_t params = dst.params(m, first);
            for (int i = 0; i < count; i++)
                codes[i] = uint8_t(quantize_element(dst.dt(), q, params, dst.global(), x[i]));
        }
        for (int i = 0; i < count; i++) dst.set_code(m, first + i, codes[i]);
    }
}

// Raises *to to the bits of x. Bits of non-negative floats have the order of integers.
inline void ref_atomic_max(uint32_t *to, float x) {
    const uint32_t mine = bits_of(x);
    uint32_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (seen < mine
            && !__atomic_compare_exchange_n(to, &seen, mine, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

} // namespace impl
} // namespace mxdnn
