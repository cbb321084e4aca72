// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_reorder/problem.hpp"

#include <algorithm>

#include "benchdnn/common/attr_words.hpp"

namespace bench {
namespace mx_reorder {

using namespace mxdnn::impl;

namespace {

std::string draw_type(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    return draw_tensor_type(any);
}

// The second side is like the first more often than by chance: its codes move.
std::string draw_other_type(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return any.one_in(4) ? words["sdt"] : draw_tensor_type(any);
}

constexpr auto tags = "ab|ba|any", axes = "k|n";

std::string draw_second(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    if (!any.one_in(4)) return "";
    const std::string type = draw_tensor_type(any);
    const std::string tag = any.of(split(tags, '|'));
    return type + ":" + tag + ":" + any.of(split(axes, '|'));
}

std::vector<typed_side_t> sides_of(const words_t &words) {
    std::vector<typed_side_t> sides = {{"src", words["sdt"], 0}, {"dst", words["ddt"], 0}};
    if (!words["dst1"].empty()) sides.push_back({"dst1", split(words["dst1"], ':')[0], 0});
    return sides;
}

std::string draw_scales(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return bench::draw_scales(any, sides_of(words));
}
std::string draw_zero_points(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return bench::draw_zero_points(any, sides_of(words));
}
std::string draw_global(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    return bench::draw_global(any, sides_of(words));
}

constexpr knob_t knob_list[] = {{"sdt", "bf16", draw_type, true}, {"ddt", "mxfp4", draw_other_type, true},
        {"stag", "ba", tags, draw_any, true}, {"dtag", "any", tags, draw_any, true},
        {"rounding", "floor", "floor|ceil|even|rceil"}, {"dst1", "", draw_second},
        {"attr-scales", "", draw_scales}, {"attr-zero-points", "", draw_zero_points},
        {"attr-global-scale", "", draw_global}, {"axis", "k", axes}, {"scales-tag", "ab", "ab|same"},
        {"values", "normal", "normal|special"}};

// "mxfp8:ba:k": the second of two destinations.
side_t second_side(const std::string &word, size_t nd) {
    const auto part = split(word, ':');
    const auto is_one_of = [](const std::string &s, const char *words) {
        const auto of = split(words, '|');
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
    const int axis = int(p.dims.size()) - pick(words, "axis", {2, 1});
    p.src = {to_tensor_type(words["sdt"]), one_of(words, "stag"), axis};
    p.dst.push_back({to_tensor_type(words["ddt"]), one_of(words, "dtag"), axis});
    if (!words["dst1"].empty()) p.dst.push_back(second_side(words["dst1"], p.dims.size()));
    std::vector<named_type_t> named = {{"src", &p.src.type, batch}, {"dst", &p.dst[0].type, batch}};
    if (p.dst.size() > 1) named.push_back({"dst1", &p.dst[1].type, batch});
    apply_scales(words["attr-scales"], named);
    apply_zero_points(words["attr-zero-points"], named);
    apply_global(words["attr-global-scale"], named);
    for (side_t *side : {&p.src, &p.dst[0]}) // packed is a form of quantised types
        if (!side->type.quantised && side->packed()) side->tag = "ab";
    p.rounding = pick(words, "rounding",
            {mxdnn_scale_rounding_floor, mxdnn_scale_rounding_ceil, mxdnn_scale_rounding_even,
                    mxdnn_scale_rounding_rceil});
    p.scales_like_codes = flag(words, "scales-tag");
    p.values = one_of(words, "values");
    p.repro = words.repro("mx_reorder", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    std::string batches;
    int64_t left = 1 << 16; // elements, few enough for every implementation and the oracle
    for (int64_t n = any.one_in(4) ? 1 + any.below(2) : 0; n > 0; n--) {
        const int64_t batch = any.range(1, 4);
        batches += std::to_string(batch) + "x";
        left /= batch;
    }
    const int64_t K = any.length(2000);
    const int64_t N = any.one_in(50) ? 0 : any.length(std::min<int64_t>(2000, left / K));
    return batches + std::to_string(K) + "x" + std::to_string(N);
}

} // namespace mx_reorder
} // namespace bench
