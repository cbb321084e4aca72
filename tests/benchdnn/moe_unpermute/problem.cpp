// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_unpermute/problem.hpp"

namespace bench {
namespace moe_unpermute {

void knobs_t::reset() {
    dt_ = {"bf16:bf16"};
    topk_ = {"4"};
    scales_ = {"linear:linear"};
    missing_ = {"0"};
    padding_ = {"0"};
    pad_ = {"0"};
    runtime_ = {"0"};
}

bool knobs_t::parse(const std::string &word) {
    struct row_t {
        const char *name;
        std::vector<std::string> *list;
    };
    const row_t rows[] = {{"dt", &dt_}, {"topk", &topk_}, {"scales-layout", &scales_}, {"missing", &missing_},
            {"padding", &padding_}, {"row-pad", &pad_}, {"runtime-rows", &runtime_}};
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
    if (dims.size() != 2) throw usage_error_t("'" + descriptor + "' is not TOKENSxCOLUMNS");
    std::vector<problem_t> all;
    for (const auto &dt : dt_)
        for (const auto &topk : topk_)
            for (const auto &scales : scales_)
                for (const auto &missing : missing_)
                    for (const auto &padding : padding_)
                        for (const auto &pad : pad_)
                            for (const auto &runtime : runtime_) {
                                problem_t p;
                                p.tokens = dims[0];
                                p.cols = dims[1];
                                const auto types = split(dt, ':'), sides = split(scales, ':');
                                if (types.size() != 2)
                                    throw usage_error_t("--dt is '" + dt + "'; it is SRC:DST");
                                p.src = to_tensor_type(types[0]);
                                p.dst = to_tensor_type(types[1]);
                                p.topk = to_int(topk, "--topk");
                                for (const std::string &side : sides)
                                    if (sides.size() != 2 || (side != "linear" && side != "128x4"))
                                        throw usage_error_t("--scales-layout is '" + scales
                                                            + "'; it is SRC:DST, each linear or 128x4");
                                p.src_scales = sides[0];
                                p.dst_scales = sides[1];
                                p.missing = to_int(missing, "--missing");
                                p.padding = to_int(padding, "--padding");
                                p.row_pad = to_int(pad, "--row-pad");
                                p.runtime_rows = runtime == "1";
                                p.repro = "--moe_unpermute --dt=" + dt + " --topk=" + topk;
                                const auto add = [&](const char *name, const std::string &v,
                                                         const std::string &usual) {
                                    if (v != usual) p.repro += std::string(" --") + name + "=" + v;
                                };
                                add("scales-layout", scales, "linear:linear");
                                add("missing", missing, "0");
                                add("padding", padding, "0");
                                add("row-pad", pad, "0");
                                add("runtime-rows", runtime, "0");
                                p.repro += " " + descriptor;
                                all.push_back(p);
                            }
    return all;
}

} // namespace moe_unpermute
} // namespace bench
