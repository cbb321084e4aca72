// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/grouped_matmul/oracle.hpp"

namespace bench {
namespace grouped_matmul {

using namespace mxdnn::impl;

namespace {

std::vector<int64_t> rows_dims(const routing_t &r, int64_t rows, int64_t columns, bool by_group) {
    if (by_group && r.padded) return {r.groups(), r.group_rows, columns};
    return {rows, columns};
}

// Index of an element of source or destination.
void locate(const tensor_t &t, int64_t row, int64_t column, int64_t *idx) {
    if (t.dims.size() == 3) {
        idx[0] = row / t.dims[1];
        idx[1] = row % t.dims[1];
        idx[2] = column;
    } else {
        idx[0] = row;
        idx[1] = column;
    }
}

// A factor that is known in f32, or a product of few of them.
interval_t scaled(interval_t x, double f) { return rounded({x.v * f, x.e * std::fabs(f), x.or_nan}, 4); }

} // namespace

data_t make_data(const problem_t &p, const routing_t &r, uint32_t seed, bool one_expert) {
    rng_t rng(seed);
    data_t d;
    const std::vector<int64_t> s = rows_dims(r, r.src_rows, p.K, !p.gather);
    d.src = operand_t(tensor_t(s, p.strides(s, true), p.src_type.dt, p.src_type.dense), p.src_type,
            int(s.size()) - 1, p.scales_tag, p.gather ? std::vector<int64_t>() : r.swizzled_rows);
    fill_random(d.src, rng);
    if (p.special_values) poison_rows(d.src, rng);
    const std::vector<int64_t> w = {one_expert ? 1 : p.local, p.K, p.N};
    tensor_type_t type = p.wei_type;
    if (type.quant.global != global_scale_kind_t::none)
        type.quant.global = w[0] > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
    d.wei = quantised_t(tensor_t(w, strides_of(w, p.wtag == "any" ? "ba" : p.wtag, p.wei_type.dt),
                                p.wei_type.dt, p.wei_type.dense),
            type, 1, p.scales_tag);
    fill_random(d.wei, rng, p.special);
    if (p.bias) d.bias = random_tensor({p.local, p.N}, p.bias_dt, rng);
    if (p.alpha) d.alpha = random_tensor({p.local}, mxdnn_f32, rng);
    if (p.params != params_t::none) {
        const std::vector<int64_t> dims =
                p.params == params_t::shared ? std::vector<int64_t>{3} : std::vector<int64_t>{p.local, 3};
        d.params = tensor_t(dims, tensor_t::row_major(dims), mxdnn_f32);
        // Alpha around 1.7, beta around 1, a limit that some values reach.
        std::uniform_real_distribution<float> near(-.2f, .2f);
        const float middle[3] = {1.7f, 1.f, 4.f};
        for_each(dims, [&](const int64_t *idx) {
            d.params.set_code(idx, bits_of(middle[idx[dims.size() - 1]] * (1 + near(rng))));
        });
    }
    if (!p.topk_weights.empty()) {
        d.topk = tensor_t({int64_t(r.rows.size())}, {1}, p.topk_dt);
        for (int64_t i = 0; i < int64_t(r.rows.size()); i++)
            d.topk.set_code(&i, data_type_info(p.topk_dt)->encode(r.rows[size_t(i)].weight));
    }
    const std::vector<int64_t> o = rows_dims(r, r.dst_rows, p.dst_n(), p.scatter == scatter_t::none);
    d.old_dst = tensor_t(o, p.strides(o, false), p.dst_type.dt);
    fill_random(d.old_dst, rng);
    return d;
}

std::vector<interval_t> expected(
        const problem_t &p, const routing_t &r, const data_t &d, const arithmetic_t &a) {
    const size_t K = size_t(p.K), N = size_t(p.N), columns = size_t(p.dst_n());
    const bool scattered = p.scatter != scatter_t::none;
    const size_t dst_rows = size_t(r.dst_rows);
    std::vector<interval_t> result(dst_rows * columns, scattered ? interval_t{0, 0} : untouched);
    const sum_types_t types{p.src_type, p.wei_type, p.rounds_rows(), p.K, mxdnn_data_type_undef,
            p.sums == mxdnn_accumulation_mode_any};
    std::vector<double> x(K);
    std::vector<interval_t> row(N);
    std::vector<int> met(dst_rows, 0);
    for (int64_t e = 0; e < p.local; e++) {
        values_t w;
        for (size_t i = 0; i < r.rows.size(); i++) {
            const row_t &of = r.rows[i];
            if (of.expert != e || of.dst < 0) continue;
            int64_t idx[max_ndims] = {e};
            if (w.value.empty()) w = weights_of(d.wei, p.K, p.N, idx);
            double scale = 0;
            for (int64_t k = 0; k < p.K; k++) {
                locate(d.src.codes(), of.src, k, idx);
                x[size_t(k)] = of.src < 0 ? 0. : d.src.value(idx);
                if (of.src >= 0) scale = std::fmax(scale, d.src.scale(idx));
            }
            quantise_row({p.recipe, p.rounding}, x);
            dot_row(x.data(), scale, w, types, a, row);
            const bool on_input = p.topk_weights == "input";
            const double alpha = p.alpha ? d.alpha.value(&e) : 1.;
            if (p.alpha || on_input)
                for (interval_t &v : row) v = scaled(v, alpha * (on_input ? double(of.weight) : 1.));
            if (p.bias)
                for (int64_t n = 0; n < p.N; n++) {
                    const int64_t bi[2] = {e, n};
                    interval_t &v = row[size_t(n)];
                    v = rounded({v.v + d.bias.value(bi), v.e, v.or_nan});
                }
            size_t n = N;
            for (const auto &o : p.post_ops) {
                if (o.kind == mxdnn_eltwise)
                    for (size_t j = 0; j < n; j++) row[j] = eltwise(o.alg, row[j], o.alpha, o.beta);
                if (o.kind != mxdnn_gated) continue;
                double constants[3] = {o.alpha, 1, o.beta};
                for (int64_t c = 0; c < 3 && p.params != params_t::none; c++) {
                    const int64_t at[2] = {p.params == params_t::shared ? c : e, c};
                    constants[c] = d.params.value(at);
                }
                n /= 2;
                for (size_t j = 0; j < n; j++) {
                    const interval_t g = row[o.halves ? j : 2 * j], u = row[o.halves ? j + n : 2 * j + 1];
                    row[j] = gated(o.alg, g, u, constants[0], constants[2], constants[1]);
                }
            }
            if (p.topk_weights == "output")
                for (size_t j = 0; j < n; j++) row[j] = scaled(row[j], of.weight);
            interval_t *to = result.data() + size_t(of.dst) * columns;
            const bool first = met[size_t(of.dst)]++ == 0;
            for (size_t j = 0; j < n; j++)
                to[j] = first ? row[j]
                              : rounded({to[j].v + row[j].v, to[j].e + row[j].e,
                                      to[j].or_nan || row[j].or_nan});
        }
    }
    for (const auto &o : p.post_ops) {
        if (o.kind != mxdnn_sum) continue;
        for (size_t m = 0; m < dst_rows; m++) {
            if (!scattered && met[m] == 0) continue;
            for (size_t j = 0; j < columns; j++) {
                int64_t idx[max_ndims];
                locate(d.old_dst, int64_t(m), int64_t(j), idx);
                interval_t &v = result[m * columns + j];
                v = added_to(v, o, d.old_dst, idx);
            }
        }
    }
    return result;
}

} // namespace grouped_matmul
} // namespace bench
