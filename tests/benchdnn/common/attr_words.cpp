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
        {"swiglu_oai", mxdnn_gated, mxdnn_gated_swiglu_oai},
        {"geglu_erf", mxdnn_gated, mxdnn_gated_gelu_erf},
        {"geglu_tanh", mxdnn_gated, mxdnn_gated_gelu_tanh},
};

// Of the tensor of a binary post-op, and of the columns of a gated one.
constexpr std::initializer_list<const char *> policies = {"common", "per_oc", "per_row", "per_tensor"};
constexpr std::initializer_list<const char *> gated_layouts = {"interleaved", "halves"};

// "relu:0.1", "add:f32:per_oc", "sum:0.5", "swiglu_oai:1.702:7:interleaved"
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
    // The first word if there is no such word.
    const auto word = [&](size_t i, std::initializer_list<const char *> possible) -> std::string {
        if (i >= part.size()) return *possible.begin();
        std::string all;
        for (const char *p : possible) {
            if (part[i] == p) return p;
            all += std::string(" ") + p;
        }
        throw usage_error_t("post-op '" + text + "' has '" + part[i] + "'; possible are" + all);
    };
    const size_t most = o.kind == mxdnn_gated || o.kind == mxdnn_sum ? 3 : 2; // parameters
    if (o.kind != mxdnn_undefined_primitive && part.size() > most + 1)
        throw usage_error_t("post-op '" + text + "' has more than the " + std::to_string(most)
                            + " parameters of " + part[0]);
    switch (o.kind) {
    case mxdnn_eltwise:
        o.alpha = number(1, o.alg == mxdnn_eltwise_swish || o.alg == mxdnn_eltwise_linear ? 1 : 0);
        o.beta = number(2, 0);
        return o;
    case mxdnn_sum:
        o.alpha = number(1, 1);
        o.beta = number(2, 0);
        if (part.size() > 3) o.dt = to_data_type(part[3]);
        return o;
    case mxdnn_binary:
        o.dt = part.size() > 1 ? to_data_type(part[1]) : mxdnn_f32;
        o.policy = word(2, policies);
        return o;
    case mxdnn_gated:
        o.alpha = number(1, 1.702);
        o.beta = number(2, 0);
        o.halves = word(3, gated_layouts) == "halves";
        return o;
    default: throw usage_error_t("post-op '" + part[0] + "' is not known; possible are" + post_op_names());
    }
}

} // namespace

std::string post_op_names() {
    std::string all;
    for (const auto &w : alg_words) all += std::string(" ") + w.word;
    return all;
}

std::vector<post_op_knob_t> parse_post_ops(const std::string &text) {
    std::vector<post_op_knob_t> ops;
    if (!text.empty())
        for (const std::string &one : split(text, '+')) ops.push_back(parse_post_op(one));
    return ops;
}

namespace {

// Each of the words that are joined by +, split in parts, and the type that its first part names.
void for_each_named(const std::string &text, const std::vector<named_type_t> &types, const char *what,
        size_t parts, size_t most_parts, const char *form,
        const std::function<void(const std::vector<std::string> &, const named_type_t &)> &take) {
    if (text.empty()) return;
    for (const std::string &one : split(text, '+')) {
        const auto part = split(one, ':');
        if (part.size() < parts || part.size() > most_parts || (parts > 1 && part[1] != "per_ocic"))
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
    for_each_named(text, types, "scales", 4, 4, "ARG:per_ocic:TYPE:G0xG1",
            [](const std::vector<std::string> &part, const named_type_t &t) {
                const auto groups = to_two_dims(part[3], "G0xG1");
                if (groups.first != 1 && groups.second != 1)
                    throw usage_error_t("scales in groups of " + part[3] + "; one of the two numbers is 1");
                t.type->quantised = true;
                t.type->quant.scale_dt = to_data_type(part[2]);
                t.type->quant.block = std::max(groups.first, groups.second);
            });
}

void apply_zero_points(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "zero points", 3, 4, "ARG:per_ocic:TYPE or ARG:per_ocic:TYPE:minimum",
            [](const std::vector<std::string> &part, const named_type_t &t) {
                quant_t &q = t.type->quant;
                q.zp_dt = to_data_type(part[2]);
                q.zp = q.zp_dt == mxdnn_u8 ? zero_point_kind_t::u8 : zero_point_kind_t::float_zero;
                if (part.size() == 3) return;
                if (part[3] != "minimum")
                    throw usage_error_t("zero points '" + part[3] + "'; possible is minimum, or nothing");
                q.zp = zero_point_kind_t::minimum;
            });
}

void apply_global(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "global scales", 1, 1, "ARG",
            [](const std::vector<std::string> &, const named_type_t &t) {
                t.type->quant.global =
                        t.batch > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
            });
}

void apply_scales_layouts(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "128x4 scales", 1, 1, "ARG",
            [](const std::vector<std::string> &, const named_type_t &t) { t.type->swizzled = true; });
}

void apply_element_packings(const std::string &text, const std::vector<named_type_t> &types) {
    for_each_named(text, types, "dense codes", 1, 1, "ARG",
            [](const std::vector<std::string> &, const named_type_t &t) { t.type->dense = true; });
}

mxdnn_scale_rounding_t to_rounding(const words_t &words) {
    return pick(words, "rounding",
            {mxdnn_scale_rounding_floor, mxdnn_scale_rounding_ceil, mxdnn_scale_rounding_even,
                    mxdnn_scale_rounding_rceil});
}

void apply_given(const std::string &text, const std::vector<named_type_t> &types) {
    if (text.empty()) return;
    for (const std::string &word : split(text, '+')) {
        std::string possible;
        bool known = false;
        for (const named_type_t &t : types) {
            const std::string name = t.name, global = name + ":global";
            if (word == name) t.type->given = true;
            if (word == global) t.type->given_global = true;
            known = known || word == name || word == global;
            possible.append(" ").append(name).append(" ").append(global);
        }
        if (!known) refuse_word("given", word, possible);
    }
}

void set_quant(primitive_attr &attr, int arg, const tensor_type_t &t, size_t nd, int axis, bool dynamic) {
    if (!t.quantised) return;
    const quant_t &q = t.quant;
    memory::dims groups = {1, 1};
    groups[size_t(axis) + 2 - nd] = q.block;
    const int mask = (1 << nd) - 1;
    attr.set_scales(arg, mask, groups, cpp(q.scale_dt), false,
            dynamic && !t.given ? mxdnn::quantization_mode(dynamic_mode_of(t.dt, q))
                                : mxdnn::quantization_mode::static_sazp);
    if (q.zp != zero_point_kind_t::none) attr.set_zero_points(arg, mask, groups, cpp(q.zp_dt));
    if (q.zp == zero_point_kind_t::minimum) attr.set_zero_points_kind(arg, mxdnn::zero_points_kind::minimum);
    if (q.global != global_scale_kind_t::none)
        attr.set_global_scale(arg, dynamic && !t.given && !t.given_global
                                           ? mxdnn::quantization_mode::dynamic_fp
                                           : mxdnn::quantization_mode::static_sazp);
    if (t.swizzled) attr.set_scales_layout(arg, mxdnn::scales_layout::swizzle_128x4);
    if (t.dense) attr.set_element_packing(arg, mxdnn::element_packing::dense);
}

// ---- random words ----

std::string draw_type(draws_t &any, unsigned roles) {
    std::vector<std::string> names;
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows)
        if (row.has_role(roles)) names.emplace_back(row.name);
    return any.of(names);
}

bool is_high_precision(const std::string &type) {
    return has_role(data_type_from_name(type.c_str()), role_high_precision);
}

std::string draw_format(draws_t &any) {
    std::vector<std::string> names;
    for (const named_format_t &f : named_formats) names.emplace_back(f.name);
    return any.of(names);
}

namespace {

// The family of codes that a type name means under floating-point scales.
quant_family_t family_of(const std::string &type) {
    quant_t q;
    q.scale_dt = mxdnn_f32;
    return quant_family(data_type_from_name(type.c_str()), q);
}

} // namespace

std::string draw_quantised_type(draws_t &any) {
    return any.one_in(4) ? draw_type(any, role_affine_element) : draw_format(any);
}

std::string draw_tensor_type(draws_t &any, bool source) {
    if (any.one_in(2)) return draw_type(any, role_high_precision);
    if (!source || !any.one_in(4)) return draw_quantised_type(any);
    std::vector<std::string> names;
    for (const data_type_info_t &row : data_type_table_t<all_types>::rows)
        if (is_row_element(row.id)) names.emplace_back(row.name);
    return any.of(names);
}

namespace {

// A word for each side, "NAME:per_ocic:WORD", joined by +; none if the word is empty. A side often gets the
// word of an earlier side with the same type, so that codes are moved from one to the other.
template <typename draw_t>
std::string draw_each(draws_t &any, const std::vector<typed_side_t> &sides, draw_t draw) {
    std::vector<std::string> drawn;
    std::string words;
    for (const typed_side_t &side : sides) {
        std::string word = draw(side);
        for (size_t i = 0; i < drawn.size(); i++)
            if (sides[i].type == side.type && any.one_in(2)) word = drawn[i];
        drawn.push_back(word);
        if (!word.empty()) words += (words.empty() ? "" : "+") + std::string(side.name) + ":per_ocic:" + word;
    }
    return words;
}

} // namespace

std::string draw_scales(draws_t &any, const std::vector<typed_side_t> &sides) {
    return draw_each(any, sides, [&](const typed_side_t &side) -> std::string {
        const quant_family_t family = family_of(side.type);
        if (family == quant_family_t::none) return "";
        const std::string type = draw_type(any, role_high_precision);
        int64_t block = side.columns;
        const bool rows = is_row_element(data_type_from_name(side.type.c_str())) && any.one_in(2);
        if (family == quant_family_t::affine && !rows)
            block = affine_blocks[any.below(int64_t(sizeof(affine_blocks) / sizeof(affine_blocks[0])))];
        return type + ":1x" + std::to_string(std::max<int64_t>(block, 1));
    });
}

std::string draw_zero_points(draws_t &any, const std::vector<typed_side_t> &sides) {
    return draw_each(any, sides, [&](const typed_side_t &side) -> std::string {
        if (data_type_from_name(side.type.c_str()) != mxdnn_u4 || any.one_in(4)) return "";
        const std::string type = any.one_in(2) ? "u8" : draw_type(any, role_zero_point);
        return type + (is_high_precision(type) && any.one_in(2) ? ":minimum" : "");
    });
}

namespace {

// Some of the names, joined by +.
std::string draw_some(draws_t &any, const std::vector<std::string> &names) {
    std::string words;
    for (const std::string &name : names)
        if (!any.one_in(2)) words += (words.empty() ? "" : "+") + name;
    return words;
}

// Some of the sides whose type `ok` accepts.
template <typename ok_t>
std::string draw_sides(draws_t &any, const std::vector<typed_side_t> &sides, ok_t ok) {
    std::vector<std::string> names;
    for (const typed_side_t &side : sides)
        if (ok(to_tensor_type(side.type))) names.emplace_back(side.name);
    return draw_some(any, names);
}

} // namespace

std::string draw_global(draws_t &any, const std::vector<typed_side_t> &sides) {
    return draw_sides(any, sides,
            [](const tensor_type_t &t) { return t.quantised && takes_global_scale(t.dt, t.quant); });
}

std::string draw_given(
        draws_t &any, const std::vector<typed_side_t> &sides, const std::string &sides_with_global) {
    if (any.one_in(2)) return "";
    std::vector<std::string> names;
    for (const typed_side_t &side : sides)
        if (!is_high_precision(side.type)) names.emplace_back(side.name);
    if (any.one_in(2))
        for (const std::string &name : split(sides_with_global, '+'))
            if (name.compare(0, 3, "dst") == 0) names.push_back(name + ":global");
    return draw_some(any, names);
}

std::string draw_scales_layouts(draws_t &any, const std::vector<typed_side_t> &sides) {
    return draw_sides(any, sides, [](const tensor_type_t &t) {
        return t.quantised && data_type_info(t.quant.scale_dt)->bits == 8;
    });
}

std::string draw_element_packings(draws_t &any, const std::vector<typed_side_t> &sides) {
    return draw_sides(any, sides, [](const tensor_type_t &t) { return data_type_info(t.dt)->bits == 6; });
}

namespace {

std::string draw_post_op(draws_t &any, const alg_word_t &w) {
    const std::string word = w.word;
    switch (w.kind) {
    case mxdnn_binary: {
        const std::string type = draw_type(any, role_high_precision);
        return word + ":" + type + ":" + any.of(policies);
    }
    case mxdnn_gated: {
        const std::string alpha = any.of({"1", "1.702", "-0.5"});
        const std::string limit = any.of({"0", "7", "0.5"});
        return word + ":" + alpha + ":" + limit + ":" + any.of(gated_layouts);
    }
    case mxdnn_sum: return word + any.of({"", ":0.5", ":-2", ":0.5:3"});
    default:
        // Limits that leave something between them.
        if (w.alg == mxdnn_eltwise_clip) return word + any.of({":-1.5:0.5", ":0:7", ":-0.1:0.1", ":0.5:2"});
        return word + any.of({"", ":0.1", ":-1.5:0.5", ":1.702:2"});
    }
}

} // namespace

std::string draw_post_ops(draws_t &any, const post_op_kinds_t &possible) {
    std::string words;
    bool gated = possible.gated;
    for (int64_t left = any.one_in(2) ? 0 : 1 + any.below(3); left > 0; left--) {
        const alg_word_t &w = alg_words[any.below(int64_t(sizeof(alg_words) / sizeof(alg_words[0])))];
        if ((w.kind == mxdnn_binary && !possible.binary) || (w.kind == mxdnn_sum && !possible.sum)
                || (w.kind == mxdnn_gated && !gated))
            continue;
        gated = gated && w.kind != mxdnn_gated;
        words += (words.empty() ? "" : "+") + draw_post_op(any, w);
    }
    return words;
}

} // namespace bench
