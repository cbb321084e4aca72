// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_permute/problem.hpp"

namespace bench {
namespace moe_permute {

void knobs_t::reset() {
    dt_ = {"bf16"};
    ranks_ = {"1"};
    experts_ = {"8"};
    align_ = {"32"};
    routing_ = {"uniform"};
    scales_ = {"linear:linear"};
    pad_ = {"0"};
    spare_ = {"0"};
    grouping_ = {"ends"};
    runtime_ = {"0"};
}

bool knobs_t::parse(const std::string &word) {
    struct row_t {
        const char *name;
        std::vector<std::string> *list;
    };
    const row_t rows[] = {{"dt", &dt_}, {"ranks", &ranks_}, {"experts", &experts_}, {"align", &align_},
            {"routing", &routing_}, {"scales-layout", &scales_}, {"row-pad", &pad_}, {"spare", &spare_},
            {"row-grouping", &grouping_}, {"runtime-rows", &runtime_}};
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
    if (dims.size() != 2) throw usage_error_t("'" + descriptor + "' is not ROWSxCOLUMNS");
    std::vector<problem_t> all;
    for (const auto &dt : dt_)
        for (const auto &ranks : ranks_)
            for (const auto &experts : experts_)
                for (const auto &align : align_)
                    for (const auto &routing : routing_)
                        for (const auto &scales : scales_)
                            for (const auto &pad : pad_)
                                for (const auto &spare : spare_)
                                    for (const auto &grouping : grouping_)
                                        for (const auto &runtime : runtime_) {
                                            problem_t p;
                                            p.rows = dims[0];
                                            p.cols = dims[1];
                                            p.type = to_tensor_type(dt);
                                            p.ranks = to_int(ranks, "--ranks", 1);
                                            p.experts = to_int(experts, "--experts", 1);
                                            p.align = to_int(align, "--align", 1);
                                            if (routing != "uniform" && routing != "skewed"
                                                    && routing != "one" && routing != "empty")
                                                throw usage_error_t(
                                                        "--routing is '" + routing
                                                        + "'; possible are uniform skewed one empty");
                                            p.routing = routing;
                                            const auto sides = split(scales, ':');
                                            for (const std::string &side : sides)
                                                if (sides.size() != 2
                                                        || (side != "linear" && side != "128x4"))
                                                    throw usage_error_t(
                                                            "--scales-layout is '" + scales
                                                            + "'; it is SRC:DST, each linear or 128x4");
                                            p.src_scales = sides[0];
                                            p.dst_scales = sides[1];
                                            p.row_pad = to_int(pad, "--row-pad");
                                            p.spare = to_int(spare, "--spare");
                                            if (grouping != "ends" && grouping != "starts")
                                                throw usage_error_t("--row-grouping is '" + grouping
                                                                    + "'; possible are ends starts");
                                            p.starts = grouping == "starts";
                                            p.runtime_rows = runtime == "1";
                                            p.repro = "--moe_permute --dt=" + dt + " --ranks=" + ranks
                                                      + " --experts=" + experts + " --align=" + align;
                                            const auto add = [&](const char *name, const std::string &v,
                                                                     const std::string &usual) {
                                                if (v != usual)
                                                    p.repro += std::string(" --") + name + "=" + v;
                                            };
                                            add("routing", routing, "uniform");
                                            add("scales-layout", scales, "linear:linear");
                                            add("row-pad", pad, "0");
                                            add("spare", spare, "0");
                                            add("row-grouping", grouping, "ends");
                                            add("runtime-rows", runtime, "0");
                                            p.repro += " " + descriptor;
                                            all.push_back(p);
                                        }
    return all;
}

} // namespace moe_permute
} // namespace bench
