// SPDX-License-Identifier: Apache-2.0
#include "fuzz/problem_draws.hpp"

#include <algorithm>
#include <numeric>

#include "common/packed_desc.hpp"
#include "cpu/x64/isa.hpp"
#include "fuzz/fuzz.hpp"
#include "mxdnn/mxdnn.h"

namespace fuzz {

namespace {

// ---- tables ----

constexpr dim_t lengths[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 32, 33, 48, 63, 64, 64, 65, 96,
        100, 127, 128, 128, 129, 160, 255, 256, 257, 300};
constexpr dim_t few[] = {0, 1, 1, 1, 2, 2, 3, 5};
constexpr dim_t huge[] = {1 << 16, 1 << 20, INT32_MAX - 127, INT32_MAX, dim_t(1) << 31, dim_t(1) << 33,
        (dim_t(1) << 38) + 17, dim_t(1) << 40, (dim_t(1) << 40) + 1, -1, INT64_MAX};

constexpr data_type_t high_precision[] = {mxdnn_f32, mxdnn_bf16, mxdnn_f16};
constexpr data_type_t every_type[] = {mxdnn_f16, mxdnn_bf16, mxdnn_f32, mxdnn_s32, mxdnn_s8, mxdnn_u8,
        mxdnn_f8_e5m2, mxdnn_f8_e4m3, mxdnn_s4, mxdnn_u4, mxdnn_e8m0, mxdnn_f4_e2m1, mxdnn_f6_e2m3,
        mxdnn_f6_e3m2, mxdnn_u64, mxdnn_data_type_undef};

struct format_t {
    data_type_t dt, scale_dt;
    dim_t block; // 0: as long as a row
    mxdnn_quantization_mode_t mode;
};
constexpr format_t formats[] = {
        {mxdnn_f8_e4m3, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_f8_e5m2, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_f6_e2m3, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_f6_e3m2, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_f4_e2m1, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_s8, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_f4_e2m1, mxdnn_f8_e4m3, 16, mxdnn_quantization_mode_dynamic_fp},
        {mxdnn_f4_e2m1, mxdnn_f8_e4m3, 16, mxdnn_quantization_mode_dynamic_fp},
        {mxdnn_s4, mxdnn_bf16, 32, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_s4, mxdnn_f32, 128, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_u4, mxdnn_f16, 32, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_u4, mxdnn_bf16, 64, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_u4, mxdnn_f32, 256, mxdnn_quantization_mode_dynamic_affine},
};
constexpr format_t row_formats[] = {
        {mxdnn_s8, mxdnn_f32, 0, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_f8_e4m3, mxdnn_bf16, 0, mxdnn_quantization_mode_dynamic_fp},
};
// How a source in high precision is quantised in execute: the type is that of the codes.
constexpr format_t recipes[] = {
        {mxdnn_s8, mxdnn_e8m0, 32, mxdnn_quantization_mode_dynamic_mx},
        {mxdnn_s8, mxdnn_f32, 0, mxdnn_quantization_mode_dynamic_affine},
        {mxdnn_f8_e4m3, mxdnn_f32, 0, mxdnn_quantization_mode_dynamic_fp},
};

constexpr mxdnn_alg_kind_t eltwise[] = {mxdnn_eltwise_relu, mxdnn_eltwise_tanh, mxdnn_eltwise_square,
        mxdnn_eltwise_linear, mxdnn_eltwise_logistic, mxdnn_eltwise_gelu_tanh, mxdnn_eltwise_swish,
        mxdnn_eltwise_clip, mxdnn_eltwise_gelu_erf, mxdnn_eltwise_relu2};
constexpr mxdnn_alg_kind_t binary[] = {
        mxdnn_binary_add, mxdnn_binary_mul, mxdnn_binary_max, mxdnn_binary_min};
constexpr mxdnn_alg_kind_t gated[] = {
        mxdnn_gated_silu, mxdnn_gated_swiglu_oai, mxdnn_gated_gelu_erf, mxdnn_gated_gelu_tanh};
constexpr mxdnn_alg_kind_t scorings[] = {
        mxdnn_route_softmax_topk, mxdnn_route_topk_softmax, mxdnn_route_sigmoid};

constexpr const char *cuda_targets[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "cuda:sm_120"};

// ---- engines, dims, layouts ----

const engine_t *engine_of(const char *target) {
    mxdnn_engine_t e = nullptr;
    FUZZ_CHECK(mxdnn_engine_create_for_target(&e, target) == mxdnn_success);
    return e;
}
const engine_t *draw_cpu(choices_t &c) {
    mxdnn_engine_t e = nullptr;
    if (!c.one_in(10)) {
        FUZZ_CHECK(mxdnn_engine_create(&e, mxdnn_cpu, 0) == mxdnn_success);
        return e;
    }
    const engine_t *target = engine_of(c.of(x64::isa_list).target);
    return target;
}

class dims_t {
public:
    dims_t(choices_t &c, drawn_t &d) : c_(c), d_(d), huge_(c.one_in(40)) {}
    // A length whose product with others stays small.
    dim_t length(int64_t budget) {
        if (huge_ && c_.one_in(3)) return d_.executes = false, c_.of(huge);
        dim_t n = c_.of(lengths);
        while (n > budget) n = c_.of(lengths);
        return n;
    }
    dim_t batch() { return huge_ && c_.one_in(4) ? (d_.executes = false, c_.of(huge)) : c_.of(few); }

private:
    choices_t &c_;
    drawn_t &d_;
    bool huge_;
};

struct shape_t {
    int n = 0;
    mxdnn_dims_t at = {};
    void add(dim_t d) { at[n++] = d; }
};

bool plain(choices_t &c, memory_desc_t &md, const shape_t &s, data_type_t dt) {
    if (c.one_in(100)) dt = c.of(every_type);
    return draw_strides(c, md, s.n, s.at, dt);
}

// ---- attributes ----

bool takes_zero_points(const format_t &f) { return f.dt == mxdnn_u4; }

// The scales of `arg` of that format, blocked along the axis from the end. `codes`: those of this argument
// are stored; else it is packed, or quantised in execute.
void set_format(
        choices_t &c, attr_t &a, int arg, const format_t &f, int ndims, int axis, bool dynamic, bool codes) {
    int mask = (1 << ndims) - 1;
    if (f.block == 0 && c.one_in(2)) mask &= ~(1 << (ndims - 1));
    dim_t groups[2] = {1, 1};
    groups[2 - axis] = f.block ? f.block : dim_t(1) << 30;
    auto scale_dt = f.scale_dt;
    auto mode = dynamic ? f.mode : mxdnn_quantization_mode_static_sazp;
    if (c.one_in(60)) mask = int(c.below(1 << ndims));
    if (c.one_in(60)) groups[c.below(2)] = c.of({1, 2, 16, 31, 32, 64, 128, 1 << 30});
    if (c.one_in(60)) scale_dt = c.of(every_type);
    if (c.one_in(60)) mode = mxdnn_quantization_mode_t(c.below(4));
    mxdnn_primitive_attr_set_scales(&a, arg, mask, 2, groups, scale_dt, 0, mode);
    if (takes_zero_points(f) ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_zero_points(
                &a, arg, mask, 2, groups, c.of({mxdnn_u8, mxdnn_bf16, mxdnn_f16, mxdnn_f32}));
    if (f.scale_dt == mxdnn_f8_e4m3 ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_global_scale(&a, arg,
                dynamic && !c.one_in(4) ? mxdnn_quantization_mode_dynamic_fp
                                        : mxdnn_quantization_mode_static_sazp);
    if (c.one_in(4)) mxdnn_primitive_attr_set_scale_rounding(&a, arg, mxdnn_scale_rounding_t(c.below(4)));
    if (codes ? c.one_in(4) : c.one_in(60))
        mxdnn_primitive_attr_set_scales_layout(&a, arg, mxdnn_scales_swizzle_128x4);
    const bool six = f.dt == mxdnn_f6_e2m3 || f.dt == mxdnn_f6_e3m2;
    if (codes && six ? c.one_in(2) : c.one_in(60))
        mxdnn_primitive_attr_set_element_packing(&a, arg, mxdnn_element_packing_dense);
}

void draw_modes(choices_t &c, attr_t &a) {
    if (c.one_in(3))
        mxdnn_primitive_attr_set_fpmath_mode(&a, mxdnn_fpmath_mode_t(c.below(5)), int(c.below(2)));
    if (c.one_in(6)) mxdnn_primitive_attr_set_accumulation_mode(&a, mxdnn_accumulation_mode_t(c.below(6)));
    if (c.one_in(6)) mxdnn_primitive_attr_set_deterministic(&a, 1);
    if (c.one_in(2)) mxdnn_primitive_attr_set_scratchpad_mode(&a, mxdnn_scratchpad_mode_user);
    if (c.one_in(6)) mxdnn_primitive_attr_set_constant_weights(&a, 1);
    if (c.one_in(5)) mxdnn_primitive_attr_set_max_rows_hint(&a, c.of({1, 2, 7, 64, 1000, 1 << 30}));
}

float number(choices_t &c) { return c.of({0.f, 1.f, -1.f, 0.5f, 1.702f, 7.f, -3.f, 1e30f}); }

// `dst`: dims of the destination, the last one before a gate.
void draw_post_ops(choices_t &c, attr_t &a, const shape_t &dst, data_type_t dst_dt, bool binaries) {
    mxdnn_post_ops_t po = &a.post_ops;
    shape_t now = dst;
    for (int64_t i = c.below(4); i > 0; i--) switch (c.below(binaries ? 4 : 3)) {
        case 0: mxdnn_post_ops_append_eltwise(po, c.of(eltwise), number(c), number(c)); break;
        case 1:
            if (a.gated() && !c.one_in(20)) break;
            mxdnn_post_ops_append_gated(
                    po, c.of(gated), number(c), number(c), mxdnn_gated_layout_t(c.below(2)));
            now.at[now.n - 1] /= 2;
            break;
        case 2:
            mxdnn_post_ops_append_sum(
                    po, number(c), int32_t(c.below(3)), c.one_in(4) ? dst_dt : mxdnn_data_type_undef);
            break;
        default: {
            shape_t s;
            const int skip = int(c.below(now.n));
            for (int d = skip; d < now.n; d++) s.add(c.one_in(3) ? 1 : now.at[d]);
            if (c.one_in(40)) s.at[s.n - 1]++;
            memory_desc_t md;
            if (plain(c, md, s, c.of(high_precision))) mxdnn_post_ops_append_binary(po, c.of(binary), &md);
        }
        }
}

// ---- matmuls ----

// Packed or plain, or left to the descriptor.
bool draw_weights(choices_t &c, problem_t &p, const shape_t &s) {
    const format_t &f = c.of(formats);
    const int64_t how = c.below(10);
    set_format(c, p.attr, MXDNN_ARG_WEIGHTS, f, s.n, 2, c.one_in(60), how < 3);
    if (how < 3) return plain(c, p.weights, s, f.dt);
    if (init_with_tag(p.weights, s.n, s.at, f.dt, mxdnn_format_tag_any) != mxdnn_success) return false;
    if (how < 8) return true;
    quant_t q;
    int axis;
    const auto family = c.one_in(20) ? target_family_t::cuda : target_family_t::cpu_x64;
    if (quant_of("", p.weights, p.attr.weights, q, &axis) != mxdnn_success) return true;
    if (init_packed(p.weights, s.n, s.at, f.dt, q, family) != mxdnn_success) return false;
    if (c.one_in(2)) p.attr.weights = arg_attr_t(); // said by the descriptor
    return true;
}

bool draw_side(choices_t &c, problem_t &p, int arg, memory_desc_t &md, const shape_t &s) {
    const bool is_src = arg == MXDNN_ARG_SRC;
    if (c.percent(is_src ? 55 : 65)) {
        if (is_src && c.one_in(3)) set_format(c, p.attr, arg, c.of(recipes), s.n, 1, true, false);
        return plain(c, md, s, c.of(high_precision));
    }
    const format_t &f = is_src && c.one_in(4) ? c.of(row_formats) : c.of(formats);
    set_format(c, p.attr, arg, f, s.n, 1, !is_src, true);
    return plain(c, md, s, f.dt);
}

bool draw_bias(choices_t &c, problem_t &p, const shape_t &to) {
    if (c.one_in(2)) return true;
    shape_t s;
    for (int d = int(c.below(to.n)); d < to.n; d++) s.add(d < to.n - 1 && !c.one_in(5) ? 1 : to.at[d]);
    return plain(c, p.bias, s, c.of(high_precision));
}

bool draw_mx_matmul(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    shape_t src, wei, dst;
    for (int64_t i = c.one_in(3) ? 1 + c.below(c.one_in(8) ? 4 : 2) : 0; i > 0; i--) {
        const dim_t b = dims.batch();
        dst.add(b);
        src.add(c.one_in(4) ? 1 : b);
        wei.add(c.one_in(2) ? 1 : b);
    }
    const dim_t K = dims.length(300), M = dims.length(K > 100 ? 33 : 130),
                N = dims.length(M * K > 3000 ? 17 : 160);
    src.add(M), src.add(K);
    wei.add(K), wei.add(N);
    dst.add(M), dst.add(N);
    draw_modes(c, p.attr);
    const data_type_t sum_dt = c.of(high_precision);
    if (c.one_in(2)) draw_post_ops(c, p.attr, dst, sum_dt, true);
    if (!draw_bias(c, p, dst)) return false;
    if (p.attr.gated()) dst.at[dst.n - 1] = c.one_in(60) ? N : N / 2;
    if (c.one_in(80)) c.of({&src, &wei, &dst})->at[c.below(dst.n)]++;
    return draw_side(c, p, MXDNN_ARG_SRC, p.src, src) && draw_weights(c, p, wei)
           && draw_side(c, p, MXDNN_ARG_DST, p.dst, dst);
}

// Rows of groups: bounds, ids, map, gather and scatter, mostly as they should be.
void draw_groups(
        choices_t &c, drawn_t &d, dim_t src_rows, dim_t &rows, dim_t &dst_rows, dim_t E, dim_t &groups) {
    const problem_t &p = d.p;
    const auto set = [&](int arg, dim_t n, auto &&value) {
        std::vector<int32_t> &v = d.indices[arg];
        v.resize(size_t(std::clamp<dim_t>(n, 0, 4096)));
        for (size_t i = 0; i < v.size(); i++) v[i] = int32_t(value(dim_t(i)));
        d.lengths[arg] = dim_t(v.size());
        if (!v.empty() && c.one_in(25))
            c.of(v) = c.of({-2, -1, 0, 1, int32_t(n), int32_t(src_rows), int32_t(E), INT32_MAX, INT32_MIN});
    };
    const auto upto = [&](dim_t n) { return n > 0 ? c.below(n) : -1; };
    rows = src_rows;
    if (c.one_in(3)) {
        rows = c.below(70);
        set(MXDNN_ARG_GATHER_IDX, rows, [&](dim_t) { return c.one_in(8) ? -1 : upto(src_rows); });
    }
    dst_rows = rows;
    if (c.one_in(3)) {
        dst_rows = c.below(40);
        set(MXDNN_ARG_SCATTER_IDX, rows, [&](dim_t) { return c.one_in(8) ? -1 : upto(dst_rows); });
    }
    dim_t ids = p.attr.global_experts ? std::min<dim_t>(p.attr.global_experts, 16) : E;
    if (!p.attr.global_experts && c.one_in(4)) {
        ids = E + c.below(4);
        set(MXDNN_ARG_EXPERT_MAP, ids, [&](dim_t) { return c.one_in(4) ? -1 : upto(E); });
    }
    const auto id = [&](dim_t) { return c.one_in(8) ? -1 : upto(ids); };
    groups = c.one_in(2) ? E : c.below(12);
    switch (p.attr.row_grouping) {
    case mxdnn_row_grouping_row_ids: set(MXDNN_ARG_ROW_EXPERT_IDS, rows, id); return;
    case mxdnn_row_grouping_padded:
        groups = std::max<dim_t>(groups, 1);
        set(MXDNN_ARG_GROUP_COUNTS, groups, [&](dim_t) { return c.below(rows / groups + 1); });
        break;
    default: {
        const bool starts = p.attr.row_grouping == mxdnn_row_grouping_starts;
        std::vector<int32_t> cuts(size_t(groups) + starts);
        for (int32_t &x : cuts) x = int32_t(c.below(rows + 1));
        std::sort(cuts.begin(), cuts.end());
        if (!cuts.empty() && c.one_in(2)) cuts.back() = int32_t(rows);
        set(MXDNN_ARG_GROUP_OFFSETS, dim_t(cuts.size()), [&](dim_t i) { return cuts[size_t(i)]; });
    }
    }
    if (groups > ids || c.one_in(3)) set(MXDNN_ARG_GROUP_EXPERT_IDS, groups, id);
}

bool draw_rows_tensor(choices_t &c, problem_t &p, int arg, memory_desc_t &md, dim_t rows, dim_t columns,
        dim_t groups, bool by_index) {
    shape_t s;
    const bool padded = p.attr.row_grouping == mxdnn_row_grouping_padded;
    if (padded && groups > 0 && rows % groups == 0 && !by_index && c.one_in(2))
        s.add(groups), s.add(rows / groups);
    else
        s.add(rows);
    s.add(columns);
    if (!draw_side(c, p, arg, md, s)) return false;
    const data_type_t dt = md.dt;
    if (!padded && groups > 0 && c.one_in(5))
        return init_grouped(md, s.n, s.at, dt, 0, groups, mxdnn_s32) == mxdnn_success;
    return true;
}

bool draw_grouped_matmul(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    draw_modes(c, p.attr);
    mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(4)));
    if (c.one_in(3)) mxdnn_primitive_attr_set_topk_weights_placement(&p.attr, mxdnn_topk_weights_on_input);
    const dim_t E = dims.batch(), K = dims.length(300), N = dims.length(K > 100 ? 33 : 130);
    if (c.one_in(5))
        mxdnn_primitive_attr_set_expert_range(&p.attr, c.below(3), std::max<dim_t>(E, 0) + c.below(5));
    shape_t wei, result;
    wei.add(E), wei.add(K), wei.add(N);
    dim_t src_rows = c.below(K * N > 3000 ? 20 : 60), rows = 0, dst_rows = 0, groups = 0;
    if (p.attr.row_grouping == mxdnn_row_grouping_padded && c.one_in(2)) src_rows = src_rows / 4 * 4;
    draw_groups(c, d, src_rows, rows, dst_rows, std::clamp<dim_t>(E, 0, 8), groups);
    result.add(dst_rows), result.add(N);
    if (c.one_in(2)) draw_post_ops(c, p.attr, result, c.of(high_precision), c.one_in(30));
    if (c.one_in(3)) {
        shape_t bias;
        bias.add(E), bias.add(N);
        if (!plain(c, p.bias, bias, c.of(high_precision))) return false;
    }
    for (const int arg : {MXDNN_ARG_TOPK_WEIGHTS}) d.lengths[arg] = rows;
    const dim_t columns = p.attr.gated() ? N / 2 : N;
    return draw_rows_tensor(
                   c, p, MXDNN_ARG_SRC, p.src, src_rows, K, groups, d.indices.count(MXDNN_ARG_GATHER_IDX))
           && draw_weights(c, p, wei)
           && draw_rows_tensor(c, p, MXDNN_ARG_DST, p.dst, dst_rows, columns, groups,
                   d.indices.count(MXDNN_ARG_SCATTER_IDX));
}

// ---- mx_reorder ----

bool draw_reorder_side(
        choices_t &c, problem_t &p, int arg, memory_desc_t &md, const engine_t *&engine, const shape_t &s) {
    const bool is_src = arg == MXDNN_ARG_SRC;
    const format_t &f = c.of(formats);
    engine = draw_cpu(c);
    const int64_t how = c.below(10);
    if (how < 3) return plain(c, md, s, c.of(high_precision));
    if (how < 7) {
        if (!is_src && is_packed(p.src) && p.src.dt == f.dt && c.one_in(2)) return plain(c, md, s, f.dt);
        set_format(c, p.attr, arg, f, s.n, int(1 + c.below(2)), !is_src && !c.one_in(5), true);
        return plain(c, md, s, f.dt);
    }
    quant_t q;
    q.scale_dt = f.scale_dt;
    q.block = f.block;
    if (f.dt == mxdnn_u4 && c.one_in(2)) {
        q.zp_dt = c.of({mxdnn_u8, mxdnn_bf16, mxdnn_f16, mxdnn_f32});
        q.zp = q.zp_dt == mxdnn_u8 ? zero_point_kind_t::u8 : zero_point_kind_t::float_zero;
    }
    if (f.scale_dt == mxdnn_f8_e4m3) q.global = global_scale_kind_t(c.below(3));
    const bool cuda = c.one_in(2);
    if (cuda) engine = engine_of(c.of(cuda_targets));
    if (c.one_in(4)) set_format(c, p.attr, arg, f, s.n, 2, !is_src, false);
    if (!is_src && q.global != global_scale_kind_t::none && c.one_in(3))
        mxdnn_primitive_attr_set_global_scale(&p.attr, arg, mxdnn_quantization_mode_static_sazp);
    return init_packed(md, s.n, s.at, f.dt, q, cuda ? target_family_t::cuda : target_family_t::cpu_x64)
           == mxdnn_success;
}

bool draw_mx_reorder(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    shape_t s;
    for (int64_t i = c.one_in(3) ? 1 + c.below(c.one_in(8) ? 6 : 2) : 0; i > 0; i--) s.add(dims.batch());
    const dim_t rows = dims.length(300);
    s.add(rows), s.add(dims.length(rows > 100 ? 65 : 300));
    if (c.one_in(3)) draw_modes(c, p.attr);
    const engine_t *second = nullptr;
    if (!draw_reorder_side(c, p, MXDNN_ARG_SRC, p.src, p.src_engine, s)) return false;
    if (c.one_in(80)) s.at[c.below(s.n)]++;
    if (!draw_reorder_side(c, p, MXDNN_ARG_DST, p.dst, p.engine, s)) return false;
    return !c.one_in(6) || draw_reorder_side(c, p, MXDNN_ARG_DST_1, p.dst_1, second, s);
}

// ---- expert layers ----

bool draw_moe_route(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    shape_t s;
    const dim_t T = dims.length(70), E = dims.length(300);
    s.add(T), s.add(E);
    route_desc_t &r = p.route;
    r.scoring = c.one_in(40) ? mxdnn_alg_kind_undef : c.of(scorings);
    r.flags = unsigned(c.below(c.one_in(30) ? 16 : 8));
    r.expert_groups = c.one_in(2) ? 1 : c.of({2, 3, 4, 8, 16, 32, 0, -1});
    if (E > 0 && E % std::max<dim_t>(r.expert_groups, 1) && !c.one_in(10)) r.expert_groups = 1;
    r.topk_groups = c.one_in(2) ? 1 : 1 + c.below(std::max<dim_t>(r.expert_groups, 1));
    r.topk = c.one_in(20) ? c.of({dim_t(0), dim_t(-1), E, E + 1, dim_t(1) << 40})
                          : 1 + c.below(std::clamp<dim_t>(E, 1, 8));
    if (c.one_in(3)) mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(2)));
    if (c.one_in(3)) mxdnn_post_ops_append_eltwise(&p.attr.post_ops, mxdnn_eltwise_linear, number(c), 0.f);
    if (c.one_in(2)) draw_modes(c, p.attr);
    return plain(c, p.src, s, c.of(high_precision));
}

// Rows that move as they are, or are added up in high precision.
bool draw_moved(
        choices_t &c, drawn_t &d, dim_t src_rows, dim_t dst_rows, dim_t columns, bool sums, dim_t groups) {
    problem_t &p = d.p;
    shape_t src, dst;
    src.add(src_rows), src.add(columns);
    dst.add(dst_rows), dst.add(columns);
    if (c.one_in(2)) draw_modes(c, p.attr);
    data_type_t src_dt = c.of(high_precision), dst_dt = sums ? c.of(high_precision) : src_dt;
    if (c.one_in(2)) {
        const format_t &f = c.one_in(6) ? c.of(row_formats) : c.of(formats);
        src_dt = dst_dt = f.dt;
        set_format(c, p.attr, MXDNN_ARG_SRC, f, 2, 1, false, true);
        if (c.one_in(2)) {
            p.attr.dst = p.attr.src;
            if (c.one_in(2)) p.attr.dst.layout = mxdnn_scales_layout_t(c.below(2));
        } else if (f.scale_dt == mxdnn_e8m0 && c.one_in(2)) {
            p.attr.dst.layout = mxdnn_scales_swizzle_128x4;
        }
    }
    if (!plain(c, p.src, src, src_dt) || !plain(c, p.dst, dst, dst_dt)) return false;
    if (groups > 0 && c.one_in(4)) {
        memory_desc_t &md = sums ? p.src : p.dst;
        const shape_t &s = sums ? src : dst;
        return init_grouped(md, 2, s.at, md.dt, 0, groups, mxdnn_s32) == mxdnn_success;
    }
    return true;
}

bool draw_moe_permute(choices_t &c, drawn_t &d) {
    problem_t &p = d.p;
    dims_t dims(c, d);
    p.engine = draw_cpu(c);
    permute_desc_t &x = p.permute;
    x.source_ranks = c.one_in(60) ? c.of(huge) : 1 + c.below(4);
    x.local_experts = c.one_in(60) ? c.of(huge) : 1 + c.below(5);
    x.alignment = c.one_in(60) ? c.of(huge) : c.of({1, 1, 2, 3, 8, 16, 128});
    if (x.source_ranks > 64 || x.local_experts > 64 || x.alignment > 256 || x.source_ranks < 1)
        d.executes = false;
    if (x.local_experts < 1 || x.alignment < 1) d.executes = false;
    if (c.one_in(3)) mxdnn_primitive_attr_set_row_grouping(&p.attr, mxdnn_row_grouping_t(c.below(2)));
    const dim_t columns = dims.length(300);
    std::vector<int32_t> counts;
    dim_t all = 0, end = 0;
    if (d.executes) {
        std::vector<dim_t> of_expert(size_t(x.local_experts), 0);
        for (dim_t i = 0; i < x.source_ranks * x.local_experts; i++) {
            counts.push_back(int32_t(c.one_in(3) ? 0 : c.below(9)));
            all += counts.back();
            of_expert[size_t(i % x.local_experts)] += counts.back();
        }
        for (const dim_t n : of_expert) end += round_up(std::max(n, x.alignment), x.alignment);
        if (c.one_in(20)) c.of(counts) = c.of({-1, INT32_MAX, INT32_MIN, 1000});
    }
    d.indices[MXDNN_ARG_GROUP_COUNTS] = counts;
    const dim_t src_rows = c.one_in(30) ? c.below(all + 1) : all + c.below(5),
                dst_rows = c.one_in(30) ? c.below(end + 1) : end + c.below(5);
    return draw_moved(c, d, src_rows, dst_rows, columns, false, x.local_experts);
}

bool draw_moe_unpermute(choices_t &c, drawn_t &d) {
    dims_t dims(c, d);
    d.p.engine = draw_cpu(c);
    const dim_t k = 1 + c.below(4), T = c.below(40), columns = dims.length(300);
    const bool weighed = c.one_in(2);
    const dim_t entries = T * (weighed ? k : 1), rows = c.below(entries + 6);
    // Every entry at most once.
    std::vector<int32_t> order(static_cast<size_t>(entries)), idx(static_cast<size_t>(rows), -1);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[size_t(c.below(int64_t(i)))]);
    for (size_t i = 0; i < idx.size() && i < order.size(); i++) idx[i] = c.one_in(8) ? -1 : order[i];
    if (!idx.empty() && c.one_in(20)) c.of(idx) = c.of({-2, 0, 1, INT32_MAX, INT32_MIN, int32_t(entries)});
    d.indices[MXDNN_ARG_PERMUTED_IDX] = idx;
    if (weighed) d.lengths[MXDNN_ARG_TOPK_WEIGHTS] = k;
    return draw_moved(c, d, rows, T, columns, true, c.below(3));
}

// Those with most code are drawn most often.
constexpr struct {
    mxdnn_primitive_kind_t kind;
    int weight;
    bool (*draw)(choices_t &, drawn_t &);
} kinds[] = {
        {mxdnn_primitive_kind_mx_matmul, 5, draw_mx_matmul},
        {mxdnn_primitive_kind_mx_reorder, 5, draw_mx_reorder},
        {mxdnn_primitive_kind_grouped_matmul, 5, draw_grouped_matmul},
        {mxdnn_primitive_kind_moe_route, 1, draw_moe_route},
        {mxdnn_primitive_kind_moe_permute, 1, draw_moe_permute},
        {mxdnn_primitive_kind_moe_unpermute, 1, draw_moe_unpermute},
};

} // namespace

bool draw_strides(choices_t &c, memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, bool odd) {
    const int64_t how = c.below(100);
    mxdnn_dims_t strides;
    // From the innermost on, in some order, with gaps.
    int order[max_ndims];
    std::iota(order, order + ndims, 0);
    if (how < 20) std::swap(order[ndims - 1], order[std::max(ndims - 2, 0)]);
    if (how < 5)
        for (int d = ndims - 1; d > 0; d--) std::swap(order[d], order[c.below(d + 1)]);
    const bool even = dt == mxdnn_f4_e2m1 || dt == mxdnn_s4 || dt == mxdnn_u4;
    dim_t next = how < 12 && how >= 10 && !even ? 2 : 1;
    for (int i = ndims - 1; i >= 0; i--) {
        const int d = order[i];
        strides[d] = next;
        if (next > max_bytes || dims[d] > max_dim) continue;
        next *= std::max<dim_t>(dims[d], 1);
        if (how < 40 && c.one_in(2)) next += c.of({1, 2, 8, 16, 64});
        if (even && next % 2) next++;
    }
    if (odd && how >= 92) {
        dim_t &one = strides[c.below(ndims)];
        if (how < 97)
            one = 0;
        else if (how < 99)
            one = c.below(40);
        else
            one = c.of(huge);
    }
    if (how >= 40 && how < 92) return init_strided(md, ndims, dims, dt, nullptr) == mxdnn_success;
    return init_strided(md, ndims, dims, dt, strides) == mxdnn_success
           || init_strided(md, ndims, dims, dt, nullptr) == mxdnn_success;
}

bool draw_problem(choices_t &c, drawn_t &d) {
    int all = 0;
    for (const auto &k : kinds) all += k.weight;
    int64_t at = c.below(all);
    const auto *k = kinds;
    while (at >= k->weight) at -= k++->weight;
    d.p.kind = k->kind;
    return k->draw(c, d);
}

problem_t with_runtime_dims(choices_t &c, const problem_t &p) {
    problem_t r = p;
    if (!c.one_in(3)) return r;
    const bool all = c.one_in(4), batch = c.one_in(3), strides = c.one_in(3);
    const auto forget = [&](memory_desc_t &md, int except) {
        if (md.kind == mxdnn_format_kind_grouped) md.dims[0] = runtime_dim;
        if (!is_strided(md)) return;
        for (int d = 0; d < md.ndims; d++)
            if (d != except && (all || d == md.ndims - 2 || (batch && d < md.ndims - 2))) {
                md.dims[d] = runtime_dim;
                if (d > 0 && md.strides[d - 1] != 1 && md.strides[d - 1] != 0)
                    md.strides[d - 1] = runtime_dim;
            }
        for (int d = 0; strides && d < md.ndims; d++)
            if (md.strides[d] != 1) md.strides[d] = runtime_dim;
    };
    const bool columns_too = p.kind == mxdnn_primitive_kind_mx_reorder;
    forget(r.src, columns_too ? -1 : r.src.ndims - 1);
    forget(r.dst, columns_too ? -1 : r.dst.ndims - 1);
    if (c.one_in(10))
        for (post_op_t &o : r.attr.post_ops.ops)
            if (o.kind == mxdnn_binary) forget(o.src1, o.src1.ndims - 1);
    return r;
}

mxdnn_primitive_desc_t create_descriptor(const problem_t &p) {
    const auto e = const_cast<mxdnn_engine_t>(p.engine);
    mxdnn_primitive_desc_t pd = nullptr;
    mxdnn_status_t s = mxdnn_success;
    switch (p.kind) {
    case mxdnn_primitive_kind_mx_matmul:
        s = mxdnn_mx_matmul_primitive_desc_create(
                &pd, e, &p.src, &p.weights, is_zero(p.bias) ? nullptr : &p.bias, &p.dst, &p.attr);
        break;
    case mxdnn_primitive_kind_mx_reorder: {
        const auto from = const_cast<mxdnn_engine_t>(p.src_engine);
        s = is_zero(p.dst_1) ? mxdnn_mx_reorder_primitive_desc_create(&pd, &p.src, from, &p.dst, e, &p.attr)
                             : mxdnn_mx_reorder_primitive_desc_create_with_dst_1(
                                     &pd, &p.src, from, &p.dst, &p.dst_1, e, &p.attr);
        break;
    }
    case mxdnn_primitive_kind_grouped_matmul:
        s = mxdnn_grouped_matmul_primitive_desc_create(
                &pd, e, &p.src, &p.weights, is_zero(p.bias) ? nullptr : &p.bias, &p.dst, &p.attr);
        break;
    case mxdnn_primitive_kind_moe_route:
        s = mxdnn_moe_route_primitive_desc_create(&pd, e, &p.src, p.route.topk, p.route.scoring,
                p.route.flags, p.route.expert_groups, p.route.topk_groups, &p.attr);
        break;
    case mxdnn_primitive_kind_moe_permute:
        s = mxdnn_moe_permute_primitive_desc_create(&pd, e, &p.src, &p.dst, p.permute.source_ranks,
                p.permute.local_experts, p.permute.alignment, &p.attr);
        break;
    case mxdnn_primitive_kind_moe_unpermute:
        s = mxdnn_moe_unpermute_primitive_desc_create(&pd, e, &p.src, &p.dst, &p.attr);
        break;
    default: FUZZ_CHECK(!"a kind of primitive"); break;
    }
    FUZZ_CHECK((s == mxdnn_success) == (pd != nullptr));
    FUZZ_CHECK(pd || mxdnn_get_last_error()[0]);
    return pd;
}

} // namespace fuzz
