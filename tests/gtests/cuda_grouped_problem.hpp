// SPDX-License-Identifier: Apache-2.0
// Random problems of grouped_matmul on a device, and their expected results: double arithmetic over the
// packed bytes. Groupings, routings, attributes and sizes are random, and some rows belong to no group. The
// error bound is derived from the arithmetic.
#pragma once

#include <cmath>

#include "common/row_groups.hpp"
#include "cuda_call.hpp"

namespace cuda_test {
namespace grouped {

using namespace mxdnn::impl;

enum class act_t { none, swiglu_oai, silu, relu, relu2 };
// Kinds of random problems, in order: small; many rows; many rows of many tokens, which are summed; few rows,
// with so many experts and columns that each multiprocessor has several items; more rows, with more items
// than gemm lists at its start; many rows of f8_e4m3, with block scales that are close together or far apart.
enum class kind_t { small, many, tokens, wide, turns, fp8 };

template <typename T>
bytes_t bytes_of(const std::vector<T> &v) {
    bytes_t b(v.size() * sizeof(T));
    if (!v.empty()) std::memcpy(b.data(), v.data(), b.size());
    return b;
}

inline size_t width_of(dt t) { return t == dt::f32 ? 4 : 2; }

inline bytes_t encode_all(dt type, const std::vector<float> &v) {
    bytes_t b(v.size() * width_of(type));
    for (size_t i = 0; i < v.size(); i++) {
        const uint32_t code = encode_value(mxdnn_data_type_t(type), v[i]);
        std::memcpy(&b[i * width_of(type)], &code, width_of(type));
    }
    return b;
}
inline std::vector<float> decode_all(dt type, const bytes_t &b) {
    std::vector<float> v(b.size() / width_of(type));
    for (size_t i = 0; i < v.size(); i++) {
        uint32_t code = 0;
        std::memcpy(&code, &b[i * width_of(type)], width_of(type));
        v[i] = decode_value(mxdnn_data_type_t(type), code);
    }
    return v;
}

struct value_t {
    double x = 0, bound = 0;
};

// A random problem with its data and expected results.
struct problem_of_test_t {
    dice_t d;
    int64_t E, K, N, G, rows = 0, src_rows, dst_rows, group_rows = 0;
    dt src_type = dt::bf16, dst_type = dt::f32, bias_type = dt::undef, topk_type = dt::undef;
    mxdnn::row_grouping grouping = mxdnn::row_grouping::ends;
    act_t act = act_t::none;
    bool halves = false, gathers = false, scatters = false, topk_input = false, pointers = false;
    float old_scale = 0, alpha = 1.702f, limit = 0;
    std::vector<int32_t> bounds, ids, map, gather, scatter;
    std::vector<float> src, weights, magnitudes, bias, topk, expert_alpha, params, old;
    bytes_t packed;
    int64_t params_stride = 0;
    // Rows of f8_e4m3: their codes and scales, or none, where bf16 ones are quantised in execute.
    bool fp8 = false;
    bool for_fp8 = false; // weights in the layout that any weights get then, not in that of all others
    bytes_t codes;
    std::vector<float> row_scales;
    uint32_t scale_spread = 10;
    bool special_scales = false;
    // The weights.
    dt wei_type = dt::f4_e2m1, scale_type = dt::e8m0, zero_type = dt::undef;
    memory::dim block = 32;

    bool gated() const { return act == act_t::swiglu_oai || act == act_t::silu; }
    int64_t columns() const { return gated() ? N / 2 : N; }

    int64_t check_step = 1; // one row of this many is checked
    int64_t rows_hint = 0;

    // int4: with such weights, of any type.
    problem_of_test_t(unsigned seed, kind_t kind, bool int4 = false) : d(seed) {
        const bool tokens = kind == kind_t::tokens, many = kind == kind_t::many || tokens,
                   wide = kind == kind_t::wide, turns = kind == kind_t::turns;
        fp8 = kind == kind_t::fp8;
        for_fp8 = fp8 && seed % 2;
        const int64_t ks[] = {8, 40, 64, 136, 320, 648}, ns[] = {6, 64, 100, 128, 130, 256, 384},
                      wide_ns[] = {1100, 1280, 1536}, tokens_ns[] = {20, 1030, 2056, 3074, 6146};
        const int sizes[] = {0, 0, 1, 2, 5, 8, 9, 17, 33, 40, 70, 130}, large[] = {0, 90, 160, 350},
                  sparse[] = {0, 1, 2, 3, 9}, larger[] = {1, 40, 250, 256, 270, 530};
        // More sums than there is room for at once.
        const bool huge = many && !tokens && d.below(4) == 0;
        if (huge) check_step = 23;
        if (tokens) check_step = 61;
        if (wide) check_step = 3;
        if (turns) check_step = 97;
        if (fp8) check_step = 7;
        const dt types[] = {dt::f32, dt::bf16, dt::f16};
        // Exact sums of bf16 rows.
        if (!fp8 && seed % 3) src_type = seed % 3 == 1 ? dt::f16 : dt::f32;
        E = turns ? 300 : tokens ? 8 : huge || wide ? 40 : 1 + d.below(fp8 || d.coin() ? 5 : 40);
        K = many ? 64 : turns ? 8 : d.one_of(ks);
        N = tokens  ? d.one_of(tokens_ns)
            : many  ? 64 * (1 + d.below(4)) * (huge ? 5 : 1)
            : wide  ? d.one_of(wide_ns)
            : turns ? 4616
                    : d.one_of(ns);
        dst_type = d.one_of(types);
        act = act_t(d.below(5));
        halves = gated() && N % 128 == 0 && d.coin();
        if (d.coin()) limit = 3.f;
        if (d.coin()) bias_type = d.one_of(types);
        if (d.coin()) topk_type = d.coin() ? dt::f32 : dt::bf16;
        topk_input = d.coin();
        const mxdnn::row_grouping groupings[] = {
                mxdnn::row_grouping::ends, mxdnn::row_grouping::starts, mxdnn::row_grouping::padded};
        grouping = d.one_of(groupings);
        G = huge || wide || turns || tokens || d.coin() ? E : 1 + d.below(9);
        if (G != E || d.coin()) {
            const bool mapped = d.coin();
            const int global = mapped ? int(E) + d.below(4) : int(E);
            for (int i = 0; i < global && mapped; i++) map.push_back(d.below(int(E) + 1) - 1);
            for (int64_t g = 0; g < G; g++) ids.push_back(d.below(5) ? d.below(global) : -1);
        }
        std::vector<int> counts;
        for (int64_t g = 0; g < G; g++)
            counts.push_back(fp8      ? (g == 0    ? 700
                                          : g == 1 ? 0
                                                   : d.one_of(larger))
                             : tokens ? 400 + d.below(3)
                             : many   ? d.one_of(large) * (huge ? 9 : 1)
                             : wide   ? d.one_of(sparse)
                             : turns  ? 17 + d.below(4)
                                      : d.one_of(sizes));
        if (grouping == mxdnn::row_grouping::padded) {
            group_rows = *std::max_element(counts.begin(), counts.end()) + d.below(3);
            bounds.assign(counts.begin(), counts.end());
            rows = group_rows * G;
        } else {
            if (grouping == mxdnn::row_grouping::starts) bounds.push_back(rows = d.below(3));
            for (int c : counts) bounds.push_back(int32_t(rows += c));
            rows += d.below(4);
        }
        if (rows == 0)
            rows = 1, group_rows = 0, grouping = mxdnn::row_grouping::ends, bounds.assign(size_t(G), 0);
        gathers = d.coin();
        src_rows = gathers ? 1 + d.below(50) : rows;
        for (int64_t r = 0; r < rows && gathers; r++) gather.push_back(d.below(int(src_rows) + 1) - 1);
        scatters = many || (!turns && d.coin());
        dst_rows = scatters ? (tokens ? 2048 : 1) + d.below(many ? 900 : 60) : rows;
        for (int64_t r = 0; r < rows && scatters; r++)
            scatter.push_back(d.below(7) ? d.below(int(dst_rows)) : -1);
        if (d.below(3) == 0) old_scale = .5f;
        pointers = d.below(3) == 0;
        make_source();
        if (bias_type != dt::undef)
            for (int64_t i = 0; i < E * N; i++) bias.push_back(d.small());
        if (topk_type != dt::undef)
            for (int64_t i = 0; i < rows; i++) topk.push_back(float(1 + d.below(16)) / 16);
        if (d.below(3) == 0)
            for (int64_t i = 0; i < E; i++) expert_alpha.push_back(float(1 + d.below(8)) / 4);
        if (gated() && d.below(3) == 0) {
            params_stride = d.coin() ? 3 : 0;
            for (int64_t e = 0; e < (params_stride ? E : 1); e++)
                for (float v : {.5f + float(d.below(3)), float(d.below(2)), float(d.below(3))})
                    params.push_back(v);
        }
        for (int64_t i = 0; i < dst_rows * columns(); i++) old.push_back(d.small());
        if (d.coin() && !fp8 && !turns) rows_hint = 1 + d.below(200);
        if (int4) {
            const dt zeros[] = {dt::undef, dt::u8, dt::u8, dt::f16, dt::bf16, dt::f32};
            const memory::dim blocks[] = {32, 64, 128, 256};
            wei_type = d.below(3) ? dt::u4 : dt::s4;
            scale_type = d.one_of(types);
            if (wei_type == dt::u4) zero_type = d.one_of(zeros);
            block = d.one_of(blocks);
        }
    }

    void make_source() {
        const bool given = fp8 && d.coin();
        if (fp8) scale_spread = d.coin() ? 10 : 60;
        for (int64_t r = 0; r < src_rows; r++) {
            const float scale = float(1 + d.below(20)) / 64;
            if (given) row_scales.push_back(scale);
            for (int64_t k = 0; k < K; k++) {
                if (!given) {
                    src.push_back(src_type == dt::bf16  ? d.small()
                                  : src_type == dt::f16 ? float(d.below(4095) - 2047) / 512
                                                        : float(d.below(1 << 24) - (1 << 23)) / (1 << 21));
                    continue;
                }
                codes.push_back(uint8_t(d.below(2) * 128 + d.below(127)));
                src.push_back(decode_value(mxdnn_f8_e4m3, codes.back()) * scale);
            }
        }
        // The values that the kernels multiply.
        for (int64_t r = 0; fp8 && !given && r < src_rows; r++) {
            source_recipe_t recipe;
            recipe.kind = recipe_kind_t::row_fp8;
            uint32_t amax = 0;
            for (int64_t k = 0; k < K; k++) amax = std::max(amax, magnitude_bits(src[size_t(r * K + k)]));
            for (int64_t k = 0; k < K; k++) {
                float &x = src[size_t(r * K + k)];
                before_recipe.push_back(x);
                x = float(recipe.value(x, recipe.scale(amax)));
            }
        }
    }
    std::vector<float> before_recipe;

    // The same problem with rows already in gathered order.
    problem_of_test_t gathered() const {
        problem_of_test_t p = *this;
        p.gathers = false;
        p.gather.clear();
        p.src_rows = rows;
        p.src.assign(size_t(rows * K), 0.f);
        for (int64_t r = 0; r < rows; r++)
            if (gather[size_t(r)] >= 0)
                std::copy_n(src.begin() + gather[size_t(r)] * K, K, p.src.begin() + r * K);
        return p;
    }

    mxdnn::primitive_attr weights_attr() const {
        mxdnn::primitive_attr attr;
        attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {block, 1}, scale_type);
        if (zero_type != dt::undef) attr.set_zero_points(MXDNN_ARG_WEIGHTS, 7, {block, 1}, zero_type);
        return attr;
    }
    mxdnn::grouped_matmul::primitive_desc make_pd() const {
        mxdnn::primitive_attr attr = weights_attr();
        const bool in_groups = grouping == mxdnn::row_grouping::padded && !gathers && group_rows;
        if (fp8) {
            attr.set_scales(MXDNN_ARG_SRC, in_groups ? 7 : 3, {1, K}, dt::f32, false,
                    codes.empty() ? mxdnn::quantization_mode::dynamic_fp
                                  : mxdnn::quantization_mode::static_sazp);
            attr.set_accumulation_mode(mxdnn::accumulation_mode::relaxed);
        }
        attr.set_row_grouping(grouping);
        if (rows_hint) attr.set_max_rows_hint(rows_hint);
        attr.set_topk_weights_placement(topk_input ? mxdnn::topk_weights_placement::on_input
                                                   : mxdnn::topk_weights_placement::on_output);
        mxdnn::post_ops ops;
        const auto layout = halves ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved;
        switch (act) {
        case act_t::swiglu_oai:
            ops.append_gated(mxdnn::algorithm::gated_swiglu_oai, alpha, limit, layout);
            break;
        case act_t::silu: ops.append_gated(mxdnn::algorithm::gated_silu, 0.f, limit, layout); break;
        case act_t::relu: ops.append_eltwise(mxdnn::algorithm::eltwise_relu, 0.f, 0.f); break;
        case act_t::relu2: ops.append_eltwise(mxdnn::algorithm::eltwise_relu2, 0.f, 0.f); break;
        default: break;
        }
        if (old_scale != 0.f) ops.append_sum(old_scale);
        attr.set_post_ops(ops);
        const auto rows_desc = [&](int64_t n, int64_t c, dt type, bool indexed) {
            if (grouping == mxdnn::row_grouping::padded && !indexed && group_rows)
                return memory::desc({G, group_rows, c}, type, tag::abc);
            return memory::desc({n, c}, type, tag::ab);
        };
        return mxdnn::grouped_matmul::primitive_desc(gpu(),
                rows_desc(src_rows, K, codes.empty() ? src_type : dt::f8_e4m3, gathers),
                fp8 && !for_fp8 ? memory::desc::packed(gpu(), {E, K, N}, wei_type, weights_attr())
                                : memory::desc({E, K, N}, wei_type, tag::any),
                bias.empty() ? memory::desc() : memory::desc({E, N}, bias_type, tag::ab),
                rows_desc(dst_rows, columns(), dst_type, scatters), attr);
    }

    // Some scales are outside of, or near the ends of, what the fast decoder of MXFP4 takes. NaN is used only
    // where nothing hides it and no row has a missing source. Small scales do not occur alone.
    uint32_t weight_scale(int64_t k, int64_t n) {
        const uint32_t usual = 130 - scale_spread + d.rng() % scale_spread;
        if (!special_scales || d.rng() % 8) return usual;
        constexpr uint32_t special[] = {0, 1, 2, 127, 128, 129, 130, 140, 160};
        if (n % 16 == 5 && act == act_t::none && !gathers) return 255;
        return special[k > 0 ? d.rng() % 9 : 3 + d.rng() % 6];
    }

    void make_weights(const memory::desc &wei) {
        packed.assign(wei.get_size(), 0);
        const int64_t stride = wei.get()->packed.stride;
        weights.resize(size_t(E * K * N));
        magnitudes.resize(size_t(E * K * N));
        for (int64_t e = 0; e < E; e++) {
            const packed_view_t view{layout_of(*wei.get()), shape_of(*wei.get()), packed.data() + e * stride};
            for (int64_t k = 0; k < K; k++)
                for (int64_t n = 0; n < N; n++) {
                    const uint32_t code = d.rng() & 15;
                    const size_t at = size_t((e * K + k) * N + n);
                    view.set_code(k, n, code);
                    if (wei_type != dt::f4_e2m1) {
                        make_int4(view, k, n, code, weights[at], magnitudes[at]);
                        continue;
                    }
                    if (k % 32 == 0) view.set_scale(k, n, weight_scale(k, n));
                    weights[at] =
                            decode_value(mxdnn_f4_e2m1, code) * decode_value(mxdnn_e8m0, view.scale(k, n));
                    magnitudes[at] = std::fabs(weights[at]);
                }
        }
    }
    // Scales of either sign, some of them subnormal. Code and zero may be multiplied by the scale separately.
    void make_int4(
            const packed_view_t &view, int64_t k, int64_t n, uint32_t bits, float &weight, float &magnitude) {
        const auto of = [](dt type, uint32_t v) { return decode_value(mxdnn_data_type_t(type), v); };
        const auto encoded = [](dt type, float v) { return encode_value(mxdnn_data_type_t(type), v); };
        if (k % block == 0) {
            view.set_scale(k, n, d.below(20) ? encoded(scale_type, d.small() / 8) : uint32_t(d.below(128)));
            if (zero_type == dt::u8)
                view.set_zero_point(k, n, uint32_t(d.below(8) ? d.below(16) : d.below(256)));
            else if (zero_type != dt::undef)
                view.set_zero_point(k, n, encoded(zero_type, d.small()));
        }
        const float scale = of(scale_type, view.scale(k, n)), code = of(wei_type, bits);
        if (zero_type == dt::undef || zero_type == dt::u8) {
            const float zero = zero_type == dt::u8 ? float(view.zero_point(k, n)) : 0.f;
            weight = (code - zero) * scale;
            magnitude = (std::fabs(code) + zero) * std::fabs(scale);
        } else {
            const float zero = of(zero_type, view.zero_point(k, n)), product = (code - 8) * scale;
            weight = product + zero;
            magnitude = std::fabs(product) + std::fabs(zero);
        }
    }

    row_groups_t groups() const {
        row_groups_t g;
        g.grouping = mxdnn_row_grouping_t(grouping);
        g.groups = G;
        g.rows = rows;
        g.bounds = bounds.data();
        g.group_ids = ids.empty() ? nullptr : ids.data();
        g.map = map.empty() ? nullptr : map.data();
        g.experts = E;
        g.ids = map.empty() ? E : int64_t(map.size());
        return g;
    }

    bytes_t run(const mxdnn::grouped_matmul::primitive_desc &pd, int times = 1) const {
        const auto s32 = [](const std::vector<int32_t> &v) {
            return make_memory(memory::desc({int64_t(v.size())}, dt::s32, tag::a), gpu(), bytes_of(v));
        };
        const auto values = [](dt type, const memory::dims &dims, const std::vector<float> &v) {
            return make_memory(memory::desc(dims, type, dims.size() == 1 ? tag::a : tag::ab), gpu(),
                    encode_all(type, v));
        };
        std::unordered_map<int, memory> args;
        args[MXDNN_ARG_SRC] = make_memory(pd.src_desc(), gpu(),
                codes.empty() ? encode_all(src_type, before_recipe.empty() ? src : before_recipe) : codes);
        if (!codes.empty()) {
            memory::dims dims = pd.src_desc().get_dims();
            dims.back() = 1;
            args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC] =
                    make_memory(memory::desc(dims, dt::f32, dims.size() == 3 ? tag::abc : tag::ab), gpu(),
                            bytes_of(row_scales));
        }
        const memory w = make_memory(pd.weights_desc(), gpu(), packed);
        if (pointers) {
            std::vector<uint64_t> at;
            for (int64_t e = 0; e < E; e++)
                at.push_back(reinterpret_cast<uint64_t>(w.get_data_handle())
                             + uint64_t(e * pd.weights_desc().get()->packed.stride));
            args[MXDNN_ARG_WEIGHTS_PTRS] =
                    make_memory(memory::desc({E}, dt::u64, tag::a), gpu(), bytes_of(at));
        } else {
            args[MXDNN_ARG_WEIGHTS] = w;
        }
        const int bounds_arg = grouping == mxdnn::row_grouping::padded    ? MXDNN_ARG_GROUP_COUNTS
                               : grouping == mxdnn::row_grouping::row_ids ? MXDNN_ARG_ROW_EXPERT_IDS
                                                                          : MXDNN_ARG_GROUP_OFFSETS;
        args[bounds_arg] = s32(bounds);
        if (!ids.empty()) args[MXDNN_ARG_GROUP_EXPERT_IDS] = s32(ids);
        if (!map.empty()) args[MXDNN_ARG_EXPERT_MAP] = s32(map);
        if (gathers) args[MXDNN_ARG_GATHER_IDX] = s32(gather);
        if (scatters) args[MXDNN_ARG_SCATTER_IDX] = s32(scatter);
        if (!bias.empty()) args[MXDNN_ARG_BIAS] = values(bias_type, {E, N}, bias);
        if (!topk.empty()) args[MXDNN_ARG_TOPK_WEIGHTS] = values(topk_type, {rows}, topk);
        if (!expert_alpha.empty()) args[MXDNN_ARG_EXPERT_ALPHA] = values(dt::f32, {E}, expert_alpha);
        if (!params.empty())
            args[MXDNN_ARG_ACTIVATION_PARAMS] =
                    values(dt::f32, params_stride ? memory::dims{E, 3} : memory::dims{3}, params);
        mxdnn::stream s(gpu());
        const mxdnn::grouped_matmul p(pd);
        bytes_t result;
        for (int i = 0; i < times; i++) {
            args[MXDNN_ARG_DST] = make_memory(pd.dst_desc(), gpu(), encode_all(dst_type, old));
            p.execute(s, args);
            s.wait();
            const bytes_t got = read_memory(args[MXDNN_ARG_DST]);
            if (i > 0) {
                EXPECT_EQ(got, result) << "another result at another time";
            }
            result = got;
        }
        return result;
    }

    value_t sum_of(int64_t row, int64_t from, int expert, int64_t n) const {
        double x = 0, magnitude = 0;
        for (int64_t k = 0; k < K && from >= 0; k++) {
            const size_t at = size_t((expert * K + k) * N + n);
            x += double(src[size_t(from * K + k)]) * weights[at];
            magnitude += std::fabs(double(src[size_t(from * K + k)]) * magnitudes[at]);
        }
        const double f = (expert_alpha.empty() ? 1. : expert_alpha[size_t(expert)])
                         * (topk_input && !topk.empty() ? double(topk[size_t(row)]) : 1.);
        const double b = bias.empty() ? 0. : bias[size_t(expert * N + n)];
        // FP8: 32 products and the sum so far are cut off 2^-13 below the largest, four times before the sum
        // becomes f32.
        const double cut = fp8 ? 4 * 33 * std::ldexp(1., -13) * magnitude * std::fabs(f) : 0.;
        return {x * f + b, cut + std::ldexp((double(K) + 4) * magnitude * std::fabs(f) + std::fabs(b), -23)
                                   + double(K + 4) * std::ldexp(1. + std::fabs(f), -149)};
    }

    value_t result_of(int64_t row, int expert, int64_t c) const {
        const int64_t from = gathers ? gather[size_t(row)] : row;
        value_t r;
        if (gated()) {
            double a = act == act_t::silu ? 1. : alpha, beta = act == act_t::silu ? 0. : 1., l = limit;
            if (!params.empty()) {
                const float *p = &params[size_t(params_stride * expert)];
                if (act == act_t::swiglu_oai) a = p[0], beta = p[1];
                l = p[2];
            }
            value_t g = sum_of(row, from, expert, halves ? c : 2 * c),
                    u = sum_of(row, from, expert, halves ? c + N / 2 : 2 * c + 1);
            if (l > 0) g.x = std::min(g.x, l), u.x = std::max(-l, std::min(u.x, l));
            const double s = g.x / (1 + std::exp(-a * g.x));
            // The slope of x * sigmoid(a x) is below 1.2; f32 functions err by units times the exponent.
            r.x = s * (u.x + beta);
            r.bound = 1.2 * g.bound * (std::fabs(u.x + beta) + u.bound) + u.bound * std::fabs(s)
                      + std::ldexp(std::fabs(r.x) * (4 + std::fabs(a * g.x)), -22) + 1e-30;
        } else {
            r = sum_of(row, from, expert, c);
            if (act == act_t::relu || act == act_t::relu2) r.x = std::max(r.x, 0.);
            if (act == act_t::relu2) {
                r.bound = 2 * r.x * r.bound + r.bound * r.bound + std::ldexp(r.x * r.x, -23);
                r.x *= r.x;
            }
        }
        if (!topk.empty() && !topk_input) r.x *= topk[size_t(row)], r.bound *= topk[size_t(row)];
        return r;
    }

    void expect_right(const bytes_t &bytes, const std::string &what) const {
        const std::vector<float> got = decode_all(dst_type, bytes);
        const row_groups_t g = groups();
        std::vector<std::vector<std::pair<int64_t, int>>> meet(
                static_cast<size_t>(dst_rows)); // rows, experts
        for (int64_t i = 0; i < G; i++) {
            const row_group_t group = g.group(i);
            for (int64_t r = group.first; group.expert >= 0 && r < group.first + group.count; r++) {
                const int64_t to = scatters ? scatter[size_t(r)] : r;
                if (to >= 0) meet[size_t(to)].push_back({r, group.expert});
            }
        }
        for (int64_t m = 0; m < dst_rows; m += check_step)
            for (int64_t c = 0; c < columns(); c++) {
                const float before = old[size_t(m * columns() + c)], x = got[size_t(m * columns() + c)];
                if (meet[size_t(m)].empty() && !scatters) {
                    ASSERT_EQ(x, before) << what << ": nobody's row " << m << " column " << c;
                    continue;
                }
                double want = 0, bound = 0, magnitude = 0;
                for (const auto &r : meet[size_t(m)]) {
                    const value_t v = result_of(r.first, r.second, c);
                    want += v.x, bound += v.bound, magnitude += std::fabs(v.x);
                }
                want += double(old_scale) * before;
                magnitude += std::fabs(old_scale * before);
                bound += std::ldexp(magnitude * double(meet[size_t(m)].size() + 3), -23);
                bound += dst_type == dt::f32 ? 0.
                         : dst_type == dt::bf16
                                 ? std::ldexp(std::fabs(want) + bound, -8)
                                 : std::ldexp(std::fabs(want) + bound, -11) + std::ldexp(1., -25);
                if (std::isnan(want)) {
                    ASSERT_TRUE(std::isnan(x)) << what << ": row " << m << " column " << c << " is " << x;
                    continue;
                }
                if (dst_type == dt::f16 && std::fabs(want) + bound > 65000) continue;
                ASSERT_LE(std::fabs(x - want), bound)
                        << what << ": row " << m << " column " << c << " is " << x << ", not " << want;
            }
    }

    std::string text() const {
        return "E " + std::to_string(E) + " K " + std::to_string(K) + " N " + std::to_string(N) + " G "
               + std::to_string(G) + " rows " + std::to_string(rows) + " src " + std::to_string(src_rows)
               + " of " + std::to_string(int(src_type)) + " dst " + std::to_string(dst_rows) + " grouping "
               + std::to_string(int(grouping)) + " act " + std::to_string(int(act))
               + (halves ? " halves" : "") + (gathers ? " gather" : "") + (scatters ? " scatter" : "")
               + (topk.empty()      ? ""
                       : topk_input ? " topk in"
                                    : " topk out")
               + (!fp8                 ? ""
                       : codes.empty() ? " recipe"
                                       : " codes")
               + (wei_type == dt::f4_e2m1
                               ? ""
                               : " int4 " + std::to_string(int(wei_type)) + " scales "
                                         + std::to_string(int(scale_type)) + " zeros "
                                         + std::to_string(int(zero_type)) + " by " + std::to_string(block))
               + (scale_spread > 15 ? " apart" : "") + (pointers ? " pointers" : "")
               + (params.empty() ? "" : " params") + " old " + std::to_string(old_scale) + " dst "
               + std::to_string(int(dst_type));
    }
};

} // namespace grouped
} // namespace cuda_test
