// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_unpermute/problem.hpp"

#include <tuple>

#include "benchdnn/moe_permute/rows.hpp"

namespace bench {
namespace moe_unpermute {

namespace {
constexpr knob_t knob_list[] = {{"dt", "bf16:bf16", true}, {"topk", "4", true},
        {"scales-layout", "linear:linear"}, {"missing", "0"}, {"padding", "0"}, {"row-pad", "0"},
        {"runtime-rows", "0"}};
}

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.tokens, p.cols) = to_two_dims(descriptor, "TOKENSxCOLUMNS");
    const auto types = split(words["dt"], ':');
    if (types.size() != 2) throw usage_error_t("--dt is '" + words["dt"] + "'; it is SRC:DST");
    p.src = to_tensor_type(types[0]);
    p.dst = to_tensor_type(types[1]);
    p.topk = number(words, "topk");
    std::tie(p.src_scales, p.dst_scales) = scales_layouts(words);
    p.missing = number(words, "missing");
    p.padding = number(words, "padding");
    p.row_pad = number(words, "row-pad");
    p.runtime_rows = flag(words, "runtime-rows");
    p.repro = words.repro("moe_unpermute", descriptor);
    return p;
}

} // namespace moe_unpermute
} // namespace bench
