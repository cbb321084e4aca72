// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/attr_words.hpp"

#include <algorithm>
#include <functional>

namespace bench {

using namespace mxdnn::impl;
using mxdnn::memory;
using mxdnn::primitive_attr;

namespace {

struct alg_word_t {
    const char *word;
    mxdnn_primitive_kind_t kind;
    mxdnn_alg_kind_t alg;
};
constexpr alg_word_t alg_words[] = {
        {"relu", mxdnn_eltwise, mxdnn_eltwise_relu},
        {"tanh", mxdnn_eltwise, mxdnn_eltwise_tanh},
        {"square", mxdnn_eltwise, mxdnn_eltwise_square},
        {"linear", mxdnn_eltwise, mxdnn_eltwise_linear},
        {"logistic", mxdnn_eltwise, mxdnn_eltwise_logistic},
        {"gelu_tanh", mxdnn_eltwise, mxdnn_eltwise_gelu_tanh},
        {"gelu_erf", mxdnn_eltwise, mxdnn_eltwise_gelu_erf},
        {"swish", mxdnn_eltwise, mxdnn_eltwise_swish},
        {"clip", mxdnn_eltwise, mxdnn_eltwise_clip},
        {"relu2", mxdnn_eltwise, mxdnn_eltwise_relu2},
        {"add", mxdnn_binary, mxdnn_binary_add},
        {"mul", mxdnn_binary, mxdnn_binary_mul},
        {"max", mxdnn_binary, mxdnn_binary_max},
        {"min", mxdnn_binary, mxdnn_binary_min},
        {"sum", mxdnn_sum, mxdnn_alg_kind_undef},
        {"silu", mxdnn_gated, mxdnn_gated_silu},
        {"swiglu", mxdnn_gated, mxdnn_gated_swiglu},
        {"geglu_erf", mxdnn_gated, mxdnn_gated_gelu_erf},
        {"geglu_tanh", mxdnn_gated, mxdnn_gated_gelu_tanh},
};

// "relu:0.1", "add:f32:per_oc", "sum:0.5", "swiglu:1.702:7:interleaved"
post_op_knob_t parse_post_op(const std::string &text) {
    const auto part = split(text, ':');
    post_op_knob_t o;
    o.text = text;
    for (const auto &w : alg_words)
        if (part[0] == w.word) {
            o.kind = w.kind;
            o.alg = w.alg;
        }
    const auto number = [&](size_t i, double otherwise) {
        return i < part.size() ? to_number(part[i], "a post-op parameter") : otherwise;
    };
    // The first of the words where there is none.
    const auto word = [&](size_t i, std::initializer_list<const char *> possible) -> std::string {
        if (i >= part.size()) return *possible.begin();
        std::string all;
        for (const char *p : possible) {
            if (part[i] == p) return p;
            all += std::string(" ") + p;
        }
        throw usage_error_t("post-op '" + text + "' has '" + part[i] + "'; possible are" + all);
    };
    switch (o.kind) {
    case mxdnn_eltwise:
        o.alpha = number(1, o.alg == mxdnn_eltwise_swish || o.alg == mxdnn_eltwise_linear ? 1 : 0);
        o.beta = number(2, 0);
        return o;
    case mxdnn_sum: o.alpha = number(1, 1); return o;
    case mxdnn_binary:
        o.dt = part.size() > 1 ? to_data_type(part[1]) : mxdnn_f32;
        o.policy = word(2, {"common", "per_oc", "per_row", "per_tensor"});
        return o;
    case mxdnn_gated:
        o.alpha = number(1, 1.702);
        o.beta = number(2, 0);
        o.halves = word(3, {"interleaved", "halves"}) == "halves";
        return o;
    default: {
        std::string all;
        for (const auto &w : alg_words) all += std::string(" ") + w.word;
        throw usage_error_t("post-op '" + part[0] + "' is not known; possible are" + all);
    }
    }
}

mxdnn::quantization_mode dynamic_mode(data_type_t dt, const quant_t &q) {
    switch (quant_family(dt, q)) {
    case quant_family_t::mx: return mxdnn::quantization_mode::dynamic_mx;
    case quant_family_t::nvfp4: return mxdnn::quantization_mode::dynamic_fp;
    default: return mxdnn::quantization_mode::dynamic_affine;
    }
}

} // namespace

std::vector<post_op_knob_t> parse_post_ops(const std::string &text) {
    std::vector<post_op_knob_t> ops;
    if (!text.empty())
        for (const std::string &one : split(text, '+')) ops.push_back(parse_post_op(one));
    return ops;
}

namespace {

// Each of the words that are joined by +, in parts, and the type that its first part names.
void for_each_named(const std::string &text, const std::vector<named_type_t> &types, const char *what,
        size_t parts, const char *form,
        const std::function<void(const std::vector<std::string> &, const named_type_t &)> &take) {
    if (text.empty()) return;
    for (const std::string &one : split(text, '+')) {
        const auto part = split(one, ':');
        if (part.size() != parts || (parts > 1 && part[1] != "per_ocic"))
            throw usage_error_t(std::string(what) + " '" + one + "' are not " + form);
        const named_type_t *named = nullptr;
        std::string names;
        for (const named_type_t &t : types) {
            if (part[0] == t.name) named = &t;
            names += std::string(" ") + t.name;
        }
        if (!named) throw usage_error_t(std::string(what) + " of '" + part[0] + "'; possible are" + names);
        take(part, *named);
    }
}

} // namespace

void apply_scales(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "scales", 4, "ARG:per_ocic:TYPE:G0xG1",
            [](const std::vector<std::string> &part, const named_type_t &t) {
                const auto groups = to_two_dims(part[3], "G0xG1");
                t.type->quantised = true;
                t.type->quant.scale_dt = to_data_type(part[2]);
                t.type->quant.block = std::max(groups.first, groups.second);
            });
}

void apply_zero_points(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "zero points", 3, "ARG:per_ocic:TYPE",
            [](const std::vector<std::string> &part, const named_type_t &t) {
                quant_t &q = t.type->quant;
                q.zp_dt = to_data_type(part[2]);
                q.zp = q.zp_dt == mxdnn_u8 ? zero_point_kind_t::u8 : zero_point_kind_t::float_zero;
            });
}

void apply_global(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "global scales", 1, "ARG",
            [](const std::vector<std::string> &, const named_type_t &t) {
                t.type->quant.global =
                        t.batch > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
            });
}

void set_quant(primitive_attr &attr, int arg, const tensor_type_t &t, size_t nd, int axis, bool dynamic) {
    if (!t.quantised) return;
    const quant_t &q = t.quant;
    memory::dims groups = {1, 1};
    groups[size_t(axis) + 2 - nd] = q.block;
    const int mask = (1 << nd) - 1;
    attr.set_scales(arg, mask, groups, cpp(q.scale_dt), false,
            dynamic ? dynamic_mode(t.dt, q) : mxdnn::quantization_mode::static_sazp);
    if (q.zp != zero_point_kind_t::none) attr.set_zero_points(arg, mask, groups, cpp(q.zp_dt));
    if (q.global != global_scale_kind_t::none)
        attr.set_global_scale(
                arg, dynamic ? mxdnn::quantization_mode::dynamic_fp : mxdnn::quantization_mode::static_sazp);
}

} // namespace bench
