// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/sums.hpp"

namespace bench {

using namespace mxdnn::impl;

namespace {
bool is_integer_affine(const quant_t &q) { return q.zp == zero_point_kind_t::u8; }

} // namespace

values_t weights_of(const quantised_t &w, int64_t K, int64_t N, int64_t *idx) {
    values_t v;
    v.value.resize(size_t(K * N));
    v.magnitude.resize(size_t(K * N));
    const size_t nd = w.codes.dims.size();
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) {
            idx[nd - 2] = k;
            idx[nd - 1] = n;
            const size_t at = size_t(k * N + n);
            v.value[at] = w.value(idx);
            v.magnitude[at] = std::fabs(v.value[at]);
            if (w.quant.zp == zero_point_kind_t::none) continue;
            // Code and zero may be multiplied apart: each counts with its own size.
            const block_params_t bp = w.params(idx);
            const double s = std::fabs(decode_value(w.quant.scale_dt, bp.scale));
            const double c = w.codes.code(idx);
            v.magnitude[at] = is_integer_affine(w.quant)
                                      ? s * (c + bp.zp)
                                      : s * std::fabs(c - code_of_added(w.quant.zp))
                                                + std::fabs(decode_value(w.quant.zp_dt, bp.zp));
        }
    return v;
}

arithmetic_t arithmetic_of(const std::string &impl_name) {
    arithmetic_t a;
    a.bf16_products =
            impl_name.find("bf16") != std::string::npos || impl_name.find("amx") != std::string::npos;
    a.bf16_values = impl_name == "cuda:sm_90" || impl_name == "rows:sm_80";
    a.bf16_rows = a.bf16_products || a.bf16_values;
    a.rounded_int4 = impl_name == "cuda:sm_90";
    a.f16_weights = impl_name == "cublaslt:f16";
    a.kept_sums = impl_name == "cuda:sm_90:f8_e4m3";
    a.fp8_sums = a.kept_sums || impl_name == "cublaslt:f8_e4m3";
    return a;
}

void quantise_row(const source_recipe_t &recipe, std::vector<double> &x) {
    if (recipe.kind == recipe_kind_t::none) return;
    const size_t block = size_t(recipe.block(int64_t(x.size())));
    for (size_t first = 0; first < x.size(); first += block) {
        const size_t last = std::min(first + block, x.size());
        uint32_t amax = 0;
        for (size_t k = first; k < last; k++) amax = std::max(amax, magnitude_bits(float(x[k])));
        const uint32_t scale = recipe.scale(amax);
        for (size_t k = first; k < last; k++) x[k] = recipe.value(float(x[k]), scale);
    }
}

void dot_row(const double *x, double scale, const values_t &w, const sum_types_t &t, const arithmetic_t &a,
        std::vector<interval_t> &sums) {
    // Every product and every addition rounds once at most; scales, global scales and the rescaling
    // of rows and blocks add a few roundings each.
    const double steps = double(t.K) + 16;
    const double gamma = steps * u32 / (1 - steps * u32);
    const bool affine = quant_family(t.wei.dt, t.wei.quant) == quant_family_t::affine;
    const double u_bf16 = 1. / 256, u_f16 = 1. / 2048; // half an ulp, relative, at most
    double per_product = gamma;
    if (a.bf16_products && affine) per_product += u_bf16;
    if (a.f16_weights && affine) per_product += u_f16;
    if (a.rounded_int4 && t.int4_as != mxdnn_data_type_undef && affine && data_type_info(t.wei.dt)->bits == 4
            && t.wei.quant.scale_dt != mxdnn_f32)
        per_product += t.int4_as == mxdnn_f16 ? u_f16 : u_bf16 + std::ldexp(1., -15);
    if (a.bf16_rows && t.fpmath_bf16 && !t.src.quantised && t.src.dt != mxdnn_bf16) per_product += u_bf16;
    const bool row_scale = t.src.dt == mxdnn_s8 && t.src.quant.block >= t.K; // applied to sums
    if (t.src.quantised && quant_family(t.src.dt, t.src.quant) == quant_family_t::affine && !row_scale)
        per_product += a.bf16_products ? u_bf16 : u32;
    // 32 products and the sum so far at a time, each cut off below the largest of them. Sums of four such
    // steps are below the magnitudes of their products; a sum that is kept is what it is, and what it lost.
    const double cut = 33 * std::ldexp(1., -13), per_stage = a.fp8_sums ? 4 * cut : 0;
    const bool keeps = a.kept_sums && t.any;
    const double lost = std::ldexp(1., -134);
    constexpr double flushed = 1.2e-38; // subnormal operands and results of bf16 dot products

    const size_t N = sums.size();
    std::vector<double> sum(N), bound(N), magnitudes(N); // of weights
    std::vector<double> largest(N), lost_of_kept(N);
    double largest_x = 0, all_x = 0;
    for (int64_t k = 0; k < t.K; k++) {
        largest_x = std::max(largest_x, std::fabs(x[k]));
        all_x += std::fabs(x[k]);
        const double *wv = w.value.data() + size_t(k) * N, *wm = w.magnitude.data() + size_t(k) * N;
        if (keeps)
            for (size_t n = 0; n < N; n++) {
                if (k % 32 == 0) {
                    lost_of_kept[n] += cut * largest[n];
                    largest[n] = std::fabs(sum[n]) + lost_of_kept[n];
                }
                largest[n] = std::fmax(largest[n], std::fabs(x[k] * wv[n]));
            }
        for (size_t n = 0; n < N; n++) {
            sum[n] += x[k] * wv[n];
            bound[n] += std::fabs(x[k]) * wm[n];
            magnitudes[n] += wm[n];
        }
    }
    for (size_t n = 0; n < N; n++) {
        const double short_sums = std::fmax(per_stage * bound[n], lost_of_kept[n] + cut * largest[n]);
        sums[n] = {sum[n], per_product * bound[n] + short_sums + double(t.K + 1) * tiny};
        if (a.bf16_products) sums[n].e += double(t.K) * flushed * (std::max(1., scale) + largest_x);
        if (a.bf16_values) sums[n].e += lost * (all_x + magnitudes[n]);
        if (std::isinf(sum[n])) sums[n] = {sum[n], 0, true};
    }
}

} // namespace bench
