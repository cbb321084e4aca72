// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_matmul/oracle.hpp"

namespace bench {
namespace mx_matmul {

using namespace mxdnn::impl;

data_t make_data(const problem_t &p, uint32_t seed) {
    rng_t rng(seed);
    data_t d;
    d.src = operand_t(tensor_t(p.src, p.src_strides(), p.src_type.dt, p.src_type.dense), p.src_type,
            int(p.nd()) - 1, p.scales_tag);
    fill_random(d.src, rng);
    if (p.special_values) poison_rows(d.src, rng);
    const std::string tag = p.wtag == "any" ? "ba" : p.wtag;
    d.wei = quantised_t(
            tensor_t(p.wei, strides_of(p.wei, tag, p.wei_type.dt), p.wei_type.dt, p.wei_type.dense),
            p.wei_type, int(p.nd()) - 2, p.scales_tag);
    fill_random(d.wei, rng, p.special);
    if (p.bias) d.bias = random_tensor(p.bias_dims(), p.bias_dt, rng);
    for (size_t i = 0; i < p.post_ops.size(); i++) {
        d.binary.emplace_back();
        if (p.post_ops[i].kind == mxdnn_binary)
            d.binary.back() = random_tensor(p.binary_dims(i), p.post_ops[i].dt, rng);
    }
    d.old_dst = tensor_t(p.dst, p.dst_strides(), p.dst_type.dt);
    fill_random(d.old_dst, rng);
    return d;
}

// The type of the rows that kernels multiply, if they may round int4 weights to it: of more than 16 rows.
static mxdnn_data_type_t int4_as(const problem_t &p) {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < p.dst.size(); i++) rows *= p.dst[i];
    const bool as_given = !p.src_type.quantised && p.recipe == recipe_kind_t::none;
    const mxdnn_data_type_t type = p.src_type.dt;
    if (rows <= 16 || (as_given && type == mxdnn_f32 && !p.rounds_rows())) return mxdnn_data_type_undef;
    return as_given && type == mxdnn_f16 ? mxdnn_f16 : mxdnn_bf16;
}

std::vector<interval_t> expected(const problem_t &p, const data_t &d, const arithmetic_t &a) {
    const size_t nd = p.nd();
    const int64_t M = p.M(), K = p.K(), N = p.N(), dst_n = p.dst.back();
    std::vector<interval_t> result;
    const sum_types_t types{
            p.src_type, p.wei_type, p.rounds_rows(), K, int4_as(p), p.sums == mxdnn_accumulation_mode_any};
    std::vector<int64_t> batch(p.dst.begin(), p.dst.end() - 2);
    if (batch.empty()) batch.push_back(1);
    for_each(batch, [&](const int64_t *b) {
        int64_t di[max_ndims] = {}, wi[max_ndims] = {}, si[max_ndims] = {};
        for (size_t i = 0; i + 2 < nd; i++) {
            di[i] = b[i];
            wi[i] = p.wei[i] == 1 ? 0 : b[i];
            si[i] = p.src[i] == 1 ? 0 : b[i];
        }
        const values_t w = weights_of(d.wei, K, N, wi);
        std::vector<double> x(static_cast<size_t>(K));
        std::vector<interval_t> row(static_cast<size_t>(N));
        for (int64_t m = 0; m < M; m++) {
            si[nd - 2] = di[nd - 2] = m;
            double scale = 0;
            for (int64_t k = 0; k < K; k++) {
                si[nd - 1] = k;
                x[size_t(k)] = d.src.value(si);
                scale = std::fmax(scale, d.src.scale(si));
            }
            quantise_row({p.recipe, p.rounding}, x);
            dot_row(x.data(), scale, w, types, a, row);
            for (int64_t n = 0; n < N; n++) {
                interval_t &r = row[size_t(n)];
                if (p.bias) {
                    int64_t bi[max_ndims] = {};
                    for (size_t i = 0; i + 1 < nd; i++) bi[i] = d.bias.dims[i] == 1 ? 0 : di[i];
                    bi[nd - 1] = d.bias.dims[nd - 1] == 1 ? 0 : n;
                    r = rounded({r.v + d.bias.value(bi), r.e, r.or_nan});
                }
            }
            int64_t columns = N;
            for (size_t i = 0; i < p.post_ops.size(); i++) {
                const auto &o = p.post_ops[i];
                if (o.kind == mxdnn_gated) {
                    columns /= 2;
                    for (int64_t j = 0; j < columns; j++) {
                        const interval_t g = row[size_t(o.halves ? j : 2 * j)],
                                         u = row[size_t(o.halves ? j + columns : 2 * j + 1)];
                        row[size_t(j)] = gated(o.alg, g, u, o.alpha, o.beta);
                    }
                    continue;
                }
                for (int64_t n = 0; n < columns; n++) {
                    interval_t &r = row[size_t(n)];
                    di[nd - 1] = n;
                    if (o.kind == mxdnn_eltwise) {
                        r = eltwise(o.alg, r, o.alpha, o.beta);
                    } else if (o.kind == mxdnn_binary) {
                        int64_t bi[max_ndims];
                        for (size_t j = 0; j < nd; j++) bi[j] = d.binary[i].dims[j] == 1 ? 0 : di[j];
                        r = binary(o.alg, r, d.binary[i].value(bi));
                    } else {
                        r = added_to(r, o, d.old_dst, di);
                    }
                }
            }
            result.insert(result.end(), row.begin(), row.begin() + dst_n);
        }
    });
    return result;
}

} // namespace mx_matmul
} // namespace bench
