// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_route/problem.hpp"

#include <tuple>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/settings.hpp"

namespace bench {
namespace moe_route {

using namespace mxdnn::impl;

namespace {

constexpr struct {
    const char *name;
    unsigned flag;
} flag_names[] = {{"renormalize", mxdnn_route_renormalize}, {"bias", mxdnn_route_bias},
        {"group_max", mxdnn_route_group_max}};

constexpr char form[] = "TOKENSxEXPERTS";

unsigned to_flags(const std::string &s) {
    unsigned flags = 0;
    if (s.empty()) return flags;
    std::string all;
    for (const auto &f : flag_names) (all += ' ') += f.name;
    for (const std::string &word : split(s, '+')) {
        unsigned named = 0;
        for (const auto &f : flag_names)
            if (word == f.name) named = f.flag;
        if (!named) refuse_word("flags", word, all);
        flags |= named;
    }
    return flags;
}

std::string draw_dt(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    return bench::draw_type(any, role_high_precision);
}
std::string draw_topk(draws_t &any, const knob_t &knob, const words_t &, const std::string &descriptor) {
    return std::to_string(any.range(1, std::min(knob.range.most, to_two_dims(descriptor, form).second)));
}
std::string draw_flags(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    std::string words;
    for (const auto &f : flag_names)
        if (any.one_in(3)) words += (words.empty() ? "" : "+") + std::string(f.name);
    return words;
}
// Groups that divide the experts, and enough of them kept for topk.
std::string draw_groups(
        draws_t &any, const knob_t &knob, const words_t &words, const std::string &descriptor) {
    if (any.one_in(2)) return knob.usual;
    const int64_t experts = to_two_dims(descriptor, form).second;
    std::vector<int64_t> divisors;
    for (int64_t g = 1; g <= experts; g++)
        if (experts % g == 0) divisors.push_back(g);
    const int64_t groups = any.of(divisors), size = experts / groups;
    const int64_t least = (number(words, "topk") + size - 1) / size;
    return std::to_string(groups) + ":" + std::to_string(least + any.below(groups - least + 1));
}
std::string draw_scale(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    return any.of({"1", "1", "2.5", "-0.3"});
}

constexpr knob_t knob_list[] = {{"dt", "bf16", draw_dt, true}, {"topk", "4", range_t{0, 64}, draw_topk, true},
        {"scoring", "topk_softmax", "softmax_topk|topk_softmax|sigmoid", draw_any, true},
        {"flags", "", draw_flags}, {"groups", "1:1", draw_groups}, {"scale", "1", draw_scale},
        {"row-grouping", "ends", "ends|starts"}, {"values", "normal", "normal|ties|special"},
        {"outputs", "all", "all|least"}, {"runtime-rows", "0", "0|1"}, {"ltag", "ab", "ab|ba"},
        {"row-pad", "0", range_t{0, 5}}};

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.tokens, p.experts) = to_two_dims(descriptor, form);
    p.dt = to_data_type(words["dt"]);
    p.topk = number(words, "topk");
    p.scoring =
            pick(words, "scoring", {mxdnn_route_softmax_topk, mxdnn_route_topk_softmax, mxdnn_route_sigmoid});
    p.flags = to_flags(words["flags"]);
    const auto groups = split(words["groups"], ':');
    if (groups.size() != 2) throw usage_error_t("--groups is '" + words["groups"] + "'; it is GROUPS:KEPT");
    p.groups = to_int(groups[0], "--groups");
    p.topk_groups = to_int(groups[1], "--groups");
    p.scale = float(to_number(words["scale"], "--scale"));
    p.starts = flag(words, "row-grouping");
    p.values = one_of(words, "values");
    p.ltag = one_of(words, "ltag");
    p.row_pad = number(words, "row-pad");
    p.all_outputs = !flag(words, "outputs");
    p.runtime_rows = flag(words, "runtime-rows");
    p.repro = words.repro("moe_route", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    const int64_t experts = any.length(512);
    const int64_t tokens = any.range(0, std::min<int64_t>(2000, (settings.random_size << 16) / experts));
    return std::to_string(tokens) + "x" + std::to_string(experts);
}

} // namespace moe_route
} // namespace bench
