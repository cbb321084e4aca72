// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_permute/problem.hpp"

#include <tuple>

#include "benchdnn/moe_permute/rows.hpp"

namespace bench {
namespace moe_permute {

namespace {
constexpr knob_t knob_list[] = {{"dt", "bf16", true}, {"ranks", "1", true}, {"experts", "8", true},
        {"align", "32", true}, {"routing", "uniform"}, {"scales-layout", "linear:linear"}, {"row-pad", "0"},
        {"spare", "0"}, {"row-grouping", "ends"}, {"runtime-rows", "0"}};
}

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.rows, p.cols) = to_two_dims(descriptor, "ROWSxCOLUMNS");
    p.type = to_tensor_type(words["dt"]);
    p.ranks = number(words, "ranks", 1);
    p.experts = number(words, "experts", 1);
    p.align = number(words, "align", 1);
    p.routing = one_of(words, "routing", {"uniform", "skewed", "one", "empty"});
    std::tie(p.src_scales, p.dst_scales) = scales_layouts(words);
    p.row_pad = number(words, "row-pad");
    p.spare = number(words, "spare");
    p.starts = pick<bool>(words, "row-grouping", {{"ends", false}, {"starts", true}});
    p.runtime_rows = flag(words, "runtime-rows");
    p.repro = words.repro("moe_permute", descriptor);
    return p;
}

} // namespace moe_permute
} // namespace bench
