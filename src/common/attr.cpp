// SPDX-License-Identifier: Apache-2.0
#include "common/attr.hpp"

#include <array>
#include <cmath>
#include <iterator>

#include "common/error.hpp"
#include "common/formats/format_list.hpp"
#include "common/operands.hpp"
#include "common/quantization_mode.hpp"

namespace mxdnn {
namespace impl {

namespace {

// The name of the type, or its number if there is no such type.
constexpr text_and_names_t<scale_types> scale_types_text{"possible are ", " "};

std::string type_text(data_type_t dt) {
    return data_type_info(dt) || dt == mxdnn_data_type_undef ? data_type_name(dt) : std::to_string(int(dt));
}

constexpr int max_post_ops = 31; // more do not fit into the bits of argument numbers

status_t parse_groups(const char *what, int arg, int mask, int ndims, const dim_t *groups, data_type_t dt,
        arg_attr_t::grouping_t &out) {
    if (mask < 0 || mask >= 1 << max_ndims)
        return fail(mxdnn_invalid_arguments, "the mask of %s of %s is %d; it has one bit per dimension", what,
                arg_name(arg), mask);
    if (ndims < 0 || ndims > max_ndims || (ndims > 0 && !groups))
        return fail(mxdnn_invalid_arguments, "%s of %s have %d group dims%s; 0 to %d are possible", what,
                arg_name(arg), ndims, groups ? "" : " at a null pointer", max_ndims);
    out.set = true;
    out.mask = mask;
    out.dt = dt;
    for (int i = 0; i < ndims; i++) {
        const int from_end = ndims - i; // 2: second to last, 1: last
        if (groups[i] < 1)
            return fail(mxdnn_invalid_arguments, "group %d of %s of %s has length %lld; it is at least 1", i,
                    what, arg_name(arg), (long long)groups[i]);
        if (from_end > 2) {
            if (groups[i] != 1)
                return fail(mxdnn_invalid_arguments,
                        "group %d of %s of %s has length %lld; only the last two dims are grouped, so it is 1",
                        i, what, arg_name(arg), (long long)groups[i]);
        } else {
            out.groups[2 - from_end] = groups[i];
        }
    }
    if (out.groups[0] > 1 && out.groups[1] > 1)
        return fail(mxdnn_invalid_arguments,
                "%s of %s have groups %lldx%lld; blocks run along one of the last two dims, so one length is 1",
                what, arg_name(arg), (long long)out.groups[0], (long long)out.groups[1]);
    return mxdnn_success;
}

} // namespace

namespace {

// Bits of an argument number that stand for scales, zero points and so on of an operand, with their names.
constexpr struct {
    int bit;
    const char *name;
} parameters[] = {
        {MXDNN_ARG_ATTR_SCALES, "the scales of "},
        {MXDNN_ARG_ATTR_ZERO_POINTS, "the zero points of "},
        {MXDNN_ARG_ATTR_GLOBAL_SCALE, "the global scale of "},
};

struct plain_arg_t {
    int arg;
    const char *name;
};
// Arguments of expert layers have the names of their constants.
constexpr plain_arg_t plain_args[] = {
        {MXDNN_ARG_SCRATCHPAD, "scratchpad"},
        {MXDNN_ARG_GROUP_OFFSETS, "GROUP_OFFSETS"},
        {MXDNN_ARG_GROUP_COUNTS, "GROUP_COUNTS"},
        {MXDNN_ARG_ROW_EXPERT_IDS, "ROW_EXPERT_IDS"},
        {MXDNN_ARG_GROUP_EXPERT_IDS, "GROUP_EXPERT_IDS"},
        {MXDNN_ARG_EXPERT_MAP, "EXPERT_MAP"},
        {MXDNN_ARG_WEIGHTS_PTRS, "WEIGHTS_PTRS"},
        {MXDNN_ARG_GATHER_IDX, "GATHER_IDX"},
        {MXDNN_ARG_SCATTER_IDX, "SCATTER_IDX"},
        {MXDNN_ARG_TOPK_WEIGHTS, "TOPK_WEIGHTS"},
        {MXDNN_ARG_EXPERT_ALPHA, "EXPERT_ALPHA"},
        {MXDNN_ARG_ACTIVATION_PARAMS, "ACTIVATION_PARAMS"},
        {MXDNN_ARG_TOPK_IDS, "TOPK_IDS"},
        {MXDNN_ARG_ROW_ORDER, "ROW_ORDER"},
        {MXDNN_ARG_PERMUTED_IDX, "PERMUTED_IDX"},
        {MXDNN_ARG_ROUTE_BIAS, "ROUTE_BIAS"},
        {MXDNN_ARG_ROW_WEIGHTS, "ROW_WEIGHTS"},
};

} // namespace

namespace {
constexpr const char *unknown_arg = "an unknown argument";

// The names of all arguments of operands, built at compile time.
struct parameter_name_t {
    int arg;
    char text[40];
};
constexpr auto parameter_names = [] {
    std::array<parameter_name_t, std::size(parameters) * std::size(operands)> all{};
    size_t n = 0;
    for (const auto &p : parameters)
        for (const operand_t &o : operands) {
            parameter_name_t &name = all[n++];
            name.arg = p.bit | o.arg;
            size_t at = 0;
            for (const char *part : {p.name, o.name})
                for (; *part; part++) name.text[at++] = *part;
        }
    return all;
}();
} // namespace

const char *arg_name(int arg) {
    for (const operand_t &o : operands)
        if (o.arg == arg) return o.name;
    for (const plain_arg_t &a : plain_args)
        if (a.arg == arg) return a.name;
    for (const parameter_name_t &p : parameter_names)
        if (p.arg == arg) return p.text;
    if (arg > 0 && arg < 1 << 21 && arg % MXDNN_ARG_ATTR_MULTIPLE_POST_OP_BASE == MXDNN_ARG_SRC_1)
        return "the operand of a binary post-op";
    return unknown_arg;
}

namespace {
struct alg_row_t {
    mxdnn_alg_kind_t alg;
    mxdnn_primitive_kind_t kind;
    const char *name;
};
constexpr alg_row_t alg_list[] = {
        {mxdnn_eltwise_relu, mxdnn_eltwise, "relu"},
        {mxdnn_eltwise_tanh, mxdnn_eltwise, "tanh"},
        {mxdnn_eltwise_square, mxdnn_eltwise, "square"},
        {mxdnn_eltwise_linear, mxdnn_eltwise, "linear"},
        {mxdnn_eltwise_logistic, mxdnn_eltwise, "logistic"},
        {mxdnn_eltwise_gelu_tanh, mxdnn_eltwise, "gelu_tanh"},
        {mxdnn_eltwise_swish, mxdnn_eltwise, "swish"},
        {mxdnn_eltwise_clip, mxdnn_eltwise, "clip"},
        {mxdnn_eltwise_gelu_erf, mxdnn_eltwise, "gelu_erf"},
        {mxdnn_eltwise_relu2, mxdnn_eltwise, "relu2"},
        {mxdnn_binary_add, mxdnn_binary, "add"},
        {mxdnn_binary_mul, mxdnn_binary, "mul"},
        {mxdnn_binary_max, mxdnn_binary, "max"},
        {mxdnn_binary_min, mxdnn_binary, "min"},
        {mxdnn_gated_silu, mxdnn_gated, "silu"},
        {mxdnn_gated_swiglu_oai, mxdnn_gated, "swiglu_oai"},
        {mxdnn_gated_gelu_erf, mxdnn_gated, "geglu_erf"},
        {mxdnn_gated_gelu_tanh, mxdnn_gated, "geglu_tanh"},
        {mxdnn_route_softmax_topk, mxdnn_primitive_kind_moe_route, "softmax_topk"},
        {mxdnn_route_topk_softmax, mxdnn_primitive_kind_moe_route, "topk_softmax"},
        {mxdnn_route_sigmoid, mxdnn_primitive_kind_moe_route, "sigmoid"},
};

bool is_alg_of(mxdnn_alg_kind_t alg, mxdnn_primitive_kind_t kind) {
    for (const auto &row : alg_list)
        if (row.alg == alg && row.kind == kind) return true;
    return false;
}

std::string algs_of(mxdnn_primitive_kind_t kind) {
    std::string s;
    for (const auto &row : alg_list)
        if (row.kind == kind) s += std::string(s.empty() ? "" : " ") + row.name;
    return s;
}

status_t check_room(const mxdnn_post_ops &po) {
    if (po.ops.size() >= size_t(max_post_ops))
        return fail(
                mxdnn_out_of_memory, "post-ops have %d entries already; no more are possible", max_post_ops);
    return mxdnn_success;
}
} // namespace

const char *alg_name(mxdnn_alg_kind_t alg) {
    for (const auto &row : alg_list)
        if (row.alg == alg) return row.name;
    return "undef";
}

status_t set_scales(attr_t &attr, int arg, int mask, int ndims, const dim_t *groups, data_type_t dt,
        mxdnn_quantization_mode_t mode) {
    arg_attr_t *a = attr.arg(arg);
    if (!a)
        return fail(mxdnn_invalid_arguments,
                "scales of argument %d; only src (1), weights (33), dst (17), dst_1 (18) and diff_dst (145) have any",
                arg);
    if (!has_role(dt, role_scale))
        return fail(mxdnn_invalid_data_type, "scales of %s have type %s; %s", arg_name(arg),
                type_text(dt).c_str(), scale_types_text.text);
    if (mode != mxdnn_quantization_mode_static_sazp && mode != mxdnn_quantization_mode_dynamic_mx
            && mode != mxdnn_quantization_mode_dynamic_fp && mode != mxdnn_quantization_mode_dynamic_affine)
        return fail(mxdnn_invalid_arguments,
                "scales of %s have mode %d; possible are static_sazp dynamic_mx dynamic_fp dynamic_affine",
                arg_name(arg), int(mode));
    arg_attr_t::grouping_t g;
    MXDNN_CHECK(parse_groups("scales", arg, mask, ndims, groups, dt, g));
    a->scales = g;
    a->mode = mode;
    return mxdnn_success;
}

status_t set_zero_points(attr_t &attr, int arg, int mask, int ndims, const dim_t *groups, data_type_t dt) {
    arg_attr_t *a = attr.arg(arg);
    if (!a)
        return fail(mxdnn_invalid_arguments,
                "zero points of argument %d; only src (1), weights (33), dst (17), dst_1 (18) and diff_dst (145) have any",
                arg);
    if (!has_role(dt, role_zero_point))
        return fail(mxdnn_invalid_data_type, "zero points of %s have type %s; possible are u8 bf16 f16 f32",
                arg_name(arg), type_text(dt).c_str());
    arg_attr_t::grouping_t g;
    MXDNN_CHECK(parse_groups("zero points", arg, mask, ndims, groups, dt, g));
    a->zero_points = g;
    return mxdnn_success;
}

status_t append_sum(mxdnn_post_ops &po, float scale, int32_t zero_point, data_type_t dt) {
    MXDNN_CHECK(check_room(po));
    if (dt != mxdnn_data_type_undef && !has_role(dt, role_high_precision))
        return fail(mxdnn_invalid_data_type,
                "sum reads dst as %s; possible are f32 bf16 f16, or undef for dst's own",
                type_text(dt).c_str());
    post_op_t p;
    p.kind = mxdnn_sum;
    p.scale = scale;
    p.zero_point = zero_point;
    p.dt = dt;
    po.ops.push_back(p);
    return mxdnn_success;
}

status_t append_eltwise(mxdnn_post_ops &po, mxdnn_alg_kind_t alg, float alpha, float beta) {
    MXDNN_CHECK(check_room(po));
    if (!is_alg_of(alg, mxdnn_eltwise))
        return fail(mxdnn_invalid_arguments, "algorithm 0x%x is no eltwise; possible are %s", unsigned(alg),
                algs_of(mxdnn_eltwise).c_str());
    post_op_t p;
    p.kind = mxdnn_eltwise;
    p.alg = alg;
    p.alpha = alpha;
    p.beta = beta;
    po.ops.push_back(p);
    return mxdnn_success;
}

status_t append_binary(mxdnn_post_ops &po, mxdnn_alg_kind_t alg, const memory_desc_t &src1) {
    MXDNN_CHECK(check_room(po));
    if (!is_alg_of(alg, mxdnn_binary))
        return fail(mxdnn_invalid_arguments, "algorithm 0x%x is no binary; possible are %s", unsigned(alg),
                algs_of(mxdnn_binary).c_str());
    if (!is_strided(src1) || !has_role(src1.dt, role_high_precision))
        return fail(mxdnn_invalid_arguments,
                "the operand of a binary post-op is %s; it has to be plain f32, bf16 or f16",
                to_string(src1).c_str());
    post_op_t p;
    p.kind = mxdnn_binary;
    p.alg = alg;
    p.src1 = src1;
    po.ops.push_back(p);
    return mxdnn_success;
}

status_t append_gated(
        mxdnn_post_ops &po, mxdnn_alg_kind_t alg, float alpha, float limit, mxdnn_gated_layout_t layout) {
    MXDNN_CHECK(check_room(po));
    if (!is_alg_of(alg, mxdnn_gated))
        return fail(mxdnn_invalid_arguments, "algorithm 0x%x is no gated activation; possible are %s",
                unsigned(alg), algs_of(mxdnn_gated).c_str());
    if (layout != mxdnn_gated_interleaved && layout != mxdnn_gated_halves)
        return fail(mxdnn_invalid_arguments,
                "the gated layout is %d; possible are interleaved (0) and halves (1)", int(layout));
    if (std::isnan(alpha) || std::isnan(limit))
        return fail(mxdnn_invalid_arguments,
                "a gated activation has alpha %g and limit %g; neither may be NaN", double(alpha),
                double(limit));
    for (const auto &o : po.ops)
        if (o.kind == mxdnn_gated)
            return fail(mxdnn_invalid_arguments, "post-ops have a gated activation already; one is possible");
    for (const auto &o : po.ops)
        if (o.kind == mxdnn_sum)
            return fail(mxdnn_invalid_arguments, "sum comes before the gated activation, but dst has half "
                                                 "the columns there; append it after");
    post_op_t p;
    p.kind = mxdnn_gated;
    p.alg = alg;
    p.alpha = alpha;
    p.beta = limit;
    p.gated_layout = layout;
    po.ops.push_back(p);
    return mxdnn_success;
}

namespace {
std::string number(float x) {
    char s[32];
    snprintf(s, sizeof(s), "%.9g", double(x));
    return s;
}

std::string groups_text(const char *arg, const arg_attr_t::grouping_t &g) {
    return std::string(arg) + ":" + std::to_string(g.mask) + ":" + data_type_name(g.dt) + ":"
           + std::to_string(g.groups[0]) + "x" + std::to_string(g.groups[1]);
}

const char *rounding_name(mxdnn_scale_rounding_t r) {
    constexpr const char *names[] = {"floor", "ceil", "even", "rceil"};
    return names[r & 3];
}
} // namespace

std::string to_string(const attr_t &attr) {
    std::string s;
    const auto add = [&](const std::string &word) { s += (s.empty() ? "" : " ") + word; };
    for (const operand_t &o : operands) {
        if (!o.attr) continue;
        const arg_attr_t &a = attr.*o.attr;
        const std::string name = o.word;
        if (a.scales.set)
            add("attr-scales:" + groups_text(o.word, a.scales) + ":" + quantization_mode_name(a.mode));
        if (a.zero_points.set)
            add("attr-zero-points:" + groups_text(o.word, a.zero_points)
                    + (a.zero_points_kind == mxdnn_zero_points_minimum ? ":minimum" : ""));
        if (a.global != mxdnn_quantization_mode_undef)
            add("attr-global-scale:" + name + ":" + quantization_mode_name(a.global));
        if (a.rounding != mxdnn_scale_rounding_floor)
            add("rounding:" + name + ":" + rounding_name(a.rounding));
        if (a.layout != mxdnn_scales_linear) add("scales-layout:" + name + ":swizzle_128x4");
        if (a.packing != mxdnn_element_packing_bytes) add("element-packing:" + name + ":dense");
    }
    std::string po;
    for (const auto &p : attr.post_ops.ops) {
        po += po.empty() ? "attr-post-ops:" : "+";
        switch (p.kind) {
        case mxdnn_sum: po += "sum:" + number(p.scale) + ":" + std::to_string(p.zero_point); break;
        case mxdnn_gated:
            po += std::string(alg_name(p.alg)) + ":" + number(p.alpha) + ":" + number(p.beta)
                  + (p.gated_layout == mxdnn_gated_halves ? ":halves" : ":interleaved");
            break;
        case mxdnn_binary: po += std::string(alg_name(p.alg)) + ":" + to_string(p.src1); break;
        default: po += std::string(alg_name(p.alg)) + ":" + number(p.alpha) + ":" + number(p.beta); break;
        }
    }
    if (!po.empty()) add(po);
    constexpr const char *fpmath_modes[] = {"strict", "bf16", "f16", "any", "tf32"};
    if (attr.fpmath != mxdnn_fpmath_mode_strict)
        add(std::string("attr-fpmath:") + fpmath_modes[attr.fpmath]
                + (attr.fpmath_apply_to_int ? ":apply_to_int" : ""));
    constexpr const char *sums[] = {"strict", "relaxed", "any", "s32", "f32", "f16"};
    if (attr.accumulation != mxdnn_accumulation_mode_strict)
        add(std::string("attr-acc-mode:") + sums[attr.accumulation]);
    if (attr.deterministic) add("attr-deterministic:true");
    constexpr const char *groupings[] = {"ends", "starts", "padded", "row_ids"};
    if (attr.row_grouping != mxdnn_row_grouping_ends)
        add(std::string("row-grouping:") + groupings[attr.row_grouping]);
    if (attr.topk_weights_placement != mxdnn_topk_weights_on_output) add("topk-weights:input");
    if (attr.global_experts)
        add("expert-range:" + std::to_string(attr.first_expert) + ":" + std::to_string(attr.global_experts));
    if (attr.max_rows_hint) add("max-rows-hint:" + std::to_string(attr.max_rows_hint));
    if (attr.constant_weights) add("attr-constant-weights:true");
    if (attr.scratchpad == mxdnn_scratchpad_mode_user) add("attr-scratchpad:user");
    return s;
}

} // namespace impl
} // namespace mxdnn

const mxdnn::impl::arg_attr_t *mxdnn_primitive_attr::arg(int a) const {
    for (const mxdnn::impl::operand_t &o : mxdnn::impl::operands)
        if (o.arg == a && o.attr) return &(this->*o.attr);
    return nullptr;
}
