// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_route/problem.hpp"

namespace bench {
namespace moe_route {

namespace {

mxdnn_alg_kind_t to_scoring(const std::string &s) {
    if (s == "softmax_topk") return mxdnn_route_softmax_topk;
    if (s == "topk_softmax") return mxdnn_route_topk_softmax;
    if (s == "sigmoid") return mxdnn_route_sigmoid;
    throw usage_error_t("scoring '" + s + "' is not softmax_topk, topk_softmax or sigmoid");
}

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

const std::string &one_of(const std::string &v, const char *what, const std::vector<std::string> &possible) {
    std::string list;
    for (const std::string &p : possible) {
        if (v == p) return v;
        list += " " + p;
    }
    throw usage_error_t(std::string(what) + " is '" + v + "'; possible are" + list);
}

} // namespace

void knobs_t::reset() {
    dt_ = {"bf16"};
    topk_ = {"4"};
    scoring_ = {"topk_softmax"};
    flags_ = {""};
    groups_ = {"1:1"};
    scale_ = {"1"};
    grouping_ = {"ends"};
    values_ = {"normal"};
    outputs_ = {"all"};
    runtime_ = {"0"};
}

bool knobs_t::parse(const std::string &word) {
    struct row_t {
        const char *name;
        std::vector<std::string> *list;
    };
    const row_t rows[] = {{"dt", &dt_}, {"topk", &topk_}, {"scoring", &scoring_}, {"flags", &flags_},
            {"groups", &groups_}, {"scale", &scale_}, {"row-grouping", &grouping_}, {"values", &values_},
            {"outputs", &outputs_}, {"runtime-rows", &runtime_}};
    std::string v;
    for (const row_t &r : rows)
        if (option(word, r.name, v)) {
            *r.list = split(v, ',');
            return true;
        }
    if (word == "--reset") return reset(), true;
    return false;
}

std::vector<problem_t> knobs_t::problems(const std::string &descriptor) const {
    const std::vector<int64_t> dims = to_dims(descriptor);
    if (dims.size() != 2) throw usage_error_t("'" + descriptor + "' is not TOKENSxEXPERTS");
    std::vector<problem_t> all;
    for (const auto &dt : dt_)
        for (const auto &topk : topk_)
            for (const auto &scoring : scoring_)
                for (const auto &flags : flags_)
                    for (const auto &groups : groups_)
                        for (const auto &scale : scale_)
                            for (const auto &grouping : grouping_)
                                for (const auto &values : values_)
                                    for (const auto &outputs : outputs_)
                                        for (const auto &runtime : runtime_) {
                                            problem_t p;
                                            p.tokens = dims[0];
                                            p.experts = dims[1];
                                            p.dt = to_data_type(dt);
                                            p.topk = to_int(topk, "--topk");
                                            p.scoring = to_scoring(scoring);
                                            p.flags = to_flags(flags);
                                            const auto part = split(groups, ':');
                                            if (part.size() != 2)
                                                throw usage_error_t(
                                                        "--groups is '" + groups + "'; it is GROUPS:KEPT");
                                            p.groups = to_int(part[0], "--groups");
                                            p.topk_groups = to_int(part[1], "--groups");
                                            p.scale = float(to_number(scale, "--scale"));
                                            p.starts = one_of(grouping, "--row-grouping", {"ends", "starts"})
                                                       == "starts";
                                            p.values =
                                                    one_of(values, "--values", {"normal", "ties", "special"});
                                            p.all_outputs =
                                                    one_of(outputs, "--outputs", {"all", "least"}) == "all";
                                            p.runtime_rows = runtime == "1";
                                            p.repro = "--moe_route --dt=" + dt + " --topk=" + topk
                                                      + " --scoring=" + scoring;
                                            const auto add = [&](const char *name, const std::string &v,
                                                                     const std::string &usual) {
                                                if (v != usual)
                                                    p.repro += std::string(" --") + name + "=" + v;
                                            };
                                            add("flags", flags, "");
                                            add("groups", groups, "1:1");
                                            add("scale", scale, "1");
                                            add("row-grouping", grouping, "ends");
                                            add("values", values, "normal");
                                            add("outputs", outputs, "all");
                                            add("runtime-rows", runtime, "0");
                                            p.repro += " " + descriptor;
                                            all.push_back(p);
                                        }
    return all;
}

} // namespace moe_route
} // namespace bench
