// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_reorder/problem.hpp"

#include <algorithm>

#include "benchdnn/common/attr_words.hpp"

namespace bench {
namespace mx_reorder {

using namespace mxdnn::impl;

namespace {

constexpr knob_t knob_list[] = {{"sdt", "bf16", true}, {"ddt", "mxfp4", true}, {"stag", "ba", true},
        {"dtag", "any", true}, {"rounding", "floor"}, {"attr-scales", ""}, {"attr-zero-points", ""},
        {"attr-global-scale", ""}, {"axis", "k"}, {"scales-tag", "ab"}, {"dst1", ""}, {"values", "normal"}};

// "mxfp8:ba:k": the second of two destinations.
side_t second_side(const std::string &word, size_t nd) {
    const auto part = split(word, ':');
    const std::vector<std::string> tags = {"ab", "ba", "any"}, axes = {"n", "k"};
    const auto is_one_of = [](const std::string &s, const std::vector<std::string> &of) {
        return std::find(of.begin(), of.end(), s) != of.end();
    };
    if (part.size() != 3 || !is_one_of(part[1], tags) || !is_one_of(part[2], axes))
        throw usage_error_t("dst1 '" + word + "' is not TYPE:ab|ba|any:k|n");
    return {to_tensor_type(part[0]), part[1], int(nd) - (part[2] == "k" ? 2 : 1)};
}

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    p.dims = to_dims(descriptor);
    int64_t batch = 1;
    for (size_t i = 0; i + 2 < p.dims.size(); i++) batch *= p.dims[i];
    const int axis = int(p.dims.size()) - pick<int>(words, "axis", {{"k", 2}, {"n", 1}});
    p.src = {to_tensor_type(words["sdt"]), one_of(words, "stag", {"ab", "ba", "any"}), axis};
    p.dst.push_back({to_tensor_type(words["ddt"]), one_of(words, "dtag", {"ab", "ba", "any"}), axis});
    if (!words["dst1"].empty()) p.dst.push_back(second_side(words["dst1"], p.dims.size()));
    std::vector<named_type_t> named = {{"src", &p.src.type, batch}, {"dst", &p.dst[0].type, batch}};
    if (p.dst.size() > 1) named.push_back({"dst1", &p.dst[1].type, batch});
    apply_scales(words["attr-scales"], named);
    apply_zero_points(words["attr-zero-points"], named);
    apply_global(words["attr-global-scale"], named);
    for (side_t *side : {&p.src, &p.dst[0]}) // packed is a form of quantised types
        if (!side->type.quantised && side->packed()) side->tag = "ab";
    p.rounding = pick<mxdnn_scale_rounding_t>(words, "rounding",
            {{"floor", mxdnn_scale_rounding_floor}, {"ceil", mxdnn_scale_rounding_ceil},
                    {"even", mxdnn_scale_rounding_even}, {"rceil", mxdnn_scale_rounding_rceil}});
    p.scales_like_codes = pick<bool>(words, "scales-tag", {{"ab", false}, {"same", true}});
    p.values = one_of(words, "values", {"normal", "special"});
    p.repro = words.repro("mx_reorder", descriptor);
    return p;
}

} // namespace mx_reorder
} // namespace bench
