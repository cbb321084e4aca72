// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_route/problem.hpp"

#include <tuple>

namespace bench {
namespace moe_route {

namespace {

constexpr knob_t knob_list[] = {{"dt", "bf16", true}, {"topk", "4", true}, {"scoring", "topk_softmax", true},
        {"flags", ""}, {"groups", "1:1"}, {"scale", "1"}, {"row-grouping", "ends"}, {"values", "normal"},
        {"outputs", "all"}, {"runtime-rows", "0"}};

unsigned to_flags(const std::string &s) {
    unsigned flags = 0;
    if (s.empty()) return flags;
    for (const std::string &f : split(s, '+')) {
        if (f == "renormalize")
            flags |= mxdnn_route_renormalize;
        else if (f == "bias")
            flags |= mxdnn_route_bias;
        else if (f == "group_max")
            flags |= mxdnn_route_group_max;
        else
            throw usage_error_t("flag '" + f + "' is not renormalize, bias or group_max");
    }
    return flags;
}

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.tokens, p.experts) = to_two_dims(descriptor, "TOKENSxEXPERTS");
    p.dt = to_data_type(words["dt"]);
    p.topk = number(words, "topk");
    p.scoring = pick<mxdnn_alg_kind_t>(words, "scoring",
            {{"softmax_topk", mxdnn_route_softmax_topk}, {"topk_softmax", mxdnn_route_topk_softmax},
                    {"sigmoid", mxdnn_route_sigmoid}});
    p.flags = to_flags(words["flags"]);
    const auto groups = split(words["groups"], ':');
    if (groups.size() != 2) throw usage_error_t("--groups is '" + words["groups"] + "'; it is GROUPS:KEPT");
    p.groups = to_int(groups[0], "--groups");
    p.topk_groups = to_int(groups[1], "--groups");
    p.scale = float(to_number(words["scale"], "--scale"));
    p.starts = pick<bool>(words, "row-grouping", {{"ends", false}, {"starts", true}});
    p.values = one_of(words, "values", {"normal", "ties", "special"});
    p.all_outputs = pick<bool>(words, "outputs", {{"all", true}, {"least", false}});
    p.runtime_rows = flag(words, "runtime-rows");
    p.repro = words.repro("moe_route", descriptor);
    return p;
}

} // namespace moe_route
} // namespace bench
