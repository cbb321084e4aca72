// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/common/attr_words.hpp"

#include <algorithm>

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

void apply_scales(const std::string &text, tensor_type_t (&types)[3]) {
    if (text.empty()) return;
    for (const std::string &one : split(text, '+')) {
        const auto part = split(one, ':');
        if (part.size() != 4 || part[1] != "per_ocic")
            throw usage_error_t("scales '" + one + "' are not ARG:per_ocic:TYPE:G0xG1");
        const int arg = part[0] == "src" ? 0 : part[0] == "wei" ? 1 : part[0] == "dst" ? 2 : -1;
        if (arg < 0) throw usage_error_t("scales are of src, wei or dst, not of '" + part[0] + "'");
        const auto groups = to_dims(part[3]);
        types[arg].quantised = true;
        types[arg].quant.scale_dt = to_data_type(part[2]);
        types[arg].quant.block = std::max(groups[0], groups[1]);
    }
}

void apply_zero_points(const std::string &text, tensor_type_t (&types)[3]) {
    if (text.empty()) return;
    const auto part = split(text, ':');
    if (part.size() < 3 || part[0] != "wei" || part[1] != "per_ocic")
        throw usage_error_t("zero points '" + text + "' are not wei:per_ocic:TYPE[:GxG]");
    types[1].quant.zp_dt = to_data_type(part[2]);
    types[1].quant.zp =
            types[1].quant.zp_dt == mxdnn_u8 ? zero_point_kind_t::u8 : zero_point_kind_t::float_zero;
}

void apply_global(const std::string &text, int64_t wei_batch, int64_t batch, tensor_type_t (&types)[3]) {
    if (text.empty()) return;
    for (const std::string &arg : split(text, '+')) {
        const int i = arg == "src" ? 0 : arg == "wei" ? 1 : arg == "dst" ? 2 : -1;
        if (i < 0) throw usage_error_t("a global scale is of src, wei or dst, not of '" + arg + "'");
        types[i].quant.global =
                (i == 1 ? wei_batch : batch) > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
    }
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
