// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/mx_reorder/problem.hpp"

#include <algorithm>
#include <random>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/settings.hpp"

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

// Sides that lie in memory as the words say.
std::vector<typed_side_t> plain_sides_of(const words_t &words) {
    std::vector<typed_side_t> plain;
    const std::string dst1 = words["dst1"].empty() ? "any" : split(words["dst1"], ':')[1],
                      tags_of[] = {words["stag"], words["dtag"], dst1};
    const std::vector<typed_side_t> sides = sides_of(words);
    for (size_t i = 0; i < sides.size(); i++)
        if (tags_of[i] != "any") plain.push_back(sides[i]);
    return plain;
}

std::string draw_layouts(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return any.one_in(2) ? knob.usual : draw_scales_layouts(any, plain_sides_of(words));
}
std::string draw_packings(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return any.one_in(2) ? knob.usual : draw_element_packings(any, plain_sides_of(words));
}
std::string draw_given(draws_t &any, const knob_t &, const words_t &words, const std::string &) {
    std::vector<typed_side_t> sides = plain_sides_of(words);
    if (!sides.empty() && std::string(sides[0].name) == "src") sides.erase(sides.begin());
    return bench::draw_given(any, sides, words["attr-global-scale"]);
}
std::string draw_runtime_dims(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return words["dst1"].empty() ? draw_word(any, knob) : knob.usual;
}

// One matrix is usual; packed sides, and batches of matrices, have no groups.
std::string draw_groups(
        draws_t &any, const knob_t &knob, const words_t &words, const std::string &descriptor) {
    const bool rows = words["given"].empty() && words["stag"] == "ab" && words["dtag"] == "ab"
                      && split(descriptor, 'x').size() == 2
                      && (words["dst1"].empty() || split(words["dst1"], ':')[1] == "ab");
    return rows && any.one_in(2) ? std::to_string(any.range(1, 40)) : knob.usual;
}

std::string draw_of_groups(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return words["groups"] == "0" ? knob.usual : draw_word(any, knob);
}

constexpr knob_t knob_list[] = {{"sdt", "bf16", draw_type, true}, {"ddt", "mxfp4", draw_other_type, true},
        {"stag", "ba", tags, draw_any, true}, {"dtag", "any", tags, draw_any, true},
        {"rounding", "floor", "floor|ceil|even|rceil"}, {"dst1", "", draw_second},
        {"attr-scales", "", draw_scales}, {"attr-zero-points", "", draw_zero_points},
        {"attr-global-scale", "", draw_global}, {"axis", "k", axes}, {"scales-tag", "ab", "ab|same"},
        {"attr-scales-layout", "", draw_layouts}, {"attr-element-packing", "", draw_packings},
        {"given", "", draw_given}, {"row-pad", "0", range_t{0, 5}},
        {"batch-strides", "outer", "outer|inner|same"},
        {"runtime-dims", "none", "none|rows|all", draw_runtime_dims},
        {"groups", "0", range_t{0, 1000}, draw_groups},
        {"routing", "uniform", "uniform|skewed|one|empty", draw_of_groups},
        {"row-grouping", "ends", "ends|starts", draw_of_groups},
        {"spare", "0", range_t{0, 9}, draw_of_groups}, {"values", "normal", "normal|special"}};

// "mxfp8:ba:k": the second of two destinations.
side_t second_side(const std::string &word, size_t nd) {
    const auto part = split(word, ':');
    const auto is_one_of = [](const std::string &s, const char *words) {
        const auto of = split(words, '|');
        return std::find(of.begin(), of.end(), s) != of.end();
    };
    if (part.size() != 3 || !is_one_of(part[1], tags) || !is_one_of(part[2], axes))
        throw usage_error_t("dst1 '" + word + "' is not TYPE:ab|ba|any:k|n");
    side_t side;
    side.type = to_tensor_type(part[0]);
    side.tag = part[1];
    side.axis = int(nd) - (part[2] == "k" ? 2 : 1);
    return side;
}

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    p.dims = to_dims(descriptor, "KxN");
    int64_t batch = 1;
    for (size_t i = 0; i + 2 < p.dims.size(); i++) batch *= p.dims[i];
    const int axis = int(p.dims.size()) - pick(words, "axis", {2, 1});
    p.src.type = to_tensor_type(words["sdt"]);
    p.src.tag = one_of(words, "stag");
    p.src.axis = axis;
    p.dst.emplace_back();
    p.dst[0].type = to_tensor_type(words["ddt"]);
    p.dst[0].tag = one_of(words, "dtag");
    p.dst[0].axis = axis;
    if (!words["dst1"].empty()) p.dst.push_back(second_side(words["dst1"], p.dims.size()));
    std::vector<named_type_t> named = {{"src", &p.src.type, batch}, {"dst", &p.dst[0].type, batch}};
    if (p.dst.size() > 1) named.push_back({"dst1", &p.dst[1].type, batch});
    apply_scales(words["attr-scales"], named);
    apply_zero_points(words["attr-zero-points"], named);
    apply_global(words["attr-global-scale"], named);
    apply_scales_layouts(words["attr-scales-layout"], named);
    apply_element_packings(words["attr-element-packing"], named);
    apply_given(words["given"], named);
    for (side_t *side : {&p.src, &p.dst[0]}) // packed is a form of quantised types
        if (!side->type.quantised && side->packed()) side->tag = "ab";
    p.rounding = to_rounding(words);
    p.scales_like_codes = flag(words, "scales-tag");
    p.row_pad = number(words, "row-pad");
    p.batch_strides = one_of(words, "batch-strides");
    p.runtime_dims = one_of(words, "runtime-dims");
    p.groups = number(words, "groups");
    p.routing = one_of(words, "routing");
    p.starts = one_of(words, "row-grouping") == "starts";
    p.spare = number(words, "spare");
    bool rows = p.dims.size() == 2 && p.src.tag == "ab";
    for (const side_t &side : p.dst) rows = rows && side.tag == "ab";
    if (p.groups && (!rows || !words["given"].empty()))
        throw usage_error_t("--groups needs sides of two dims in the order ab, and no --given");
    if (p.groups) check_rows(p.dims[0]);
    p.values = one_of(words, "values");
    p.repro = words.repro("mx_reorder", descriptor);
    return p;
}

std::vector<int64_t> group_rows(const problem_t &p, uint32_t seed) {
    std::vector<double> share(size_t(p.groups), 1.);
    for (size_t g = 0; g < share.size(); g++) {
        if (p.routing == "skewed") share[g] = 1. / double(g + 1);
        if (p.routing == "one") share[g] = g == share.size() / 2;
        if (p.routing == "empty") share[g] = g % 2 == 0;
    }
    std::mt19937 rng(seed + 11);
    std::discrete_distribution<size_t> group(share.begin(), share.end());
    std::vector<int64_t> rows(share.size(), 0);
    for (int64_t i = 0; i < p.dims[0]; i++) rows[group(rng)]++;
    return rows;
}

std::string draw_descriptor(draws_t &any) {
    std::string batches;
    int64_t left = settings.random_size << 16; // elements, few enough for every implementation and the oracle
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
