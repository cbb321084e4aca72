// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_permute/problem.hpp"

#include <tuple>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/settings.hpp"
#include "benchdnn/moe_permute/rows.hpp"

namespace bench {
namespace moe_permute {

using namespace mxdnn::impl;

namespace {

std::string draw_dt(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    return any.one_in(3) ? draw_type(any, role_high_precision) : draw_format(any);
}
std::string draw_align(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    return any.of({"1", "4", "7", "16", "32", "128", "128", "256"});
}
// Groups start at tiles of swizzled scales.
std::string draw_layouts(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    const std::string layouts = draw_scales_layouts(any, knob);
    const bool tiles = number(words, "align") % 128 == 0;
    return tiles ? layouts : split(layouts, ':')[0] + ":linear";
}

constexpr knob_t knob_list[] = {{"dt", "bf16", draw_dt, true}, {"ranks", "1", range_t{1, 5}, draw_any, true},
        {"experts", "8", range_t{1, 20}, draw_any, true}, {"align", "32", range_t{1, 256}, draw_align, true},
        {"routing", "uniform", "uniform|skewed|one|empty"}, {"scales-layout", "linear:linear", draw_layouts},
        {"attr-element-packing", "bytes", "bytes|dense", draw_packing}, {"row-pad", "0", range_t{0, 5}},
        {"spare", "0", range_t{0, 9}}, {"row-grouping", "ends", "ends|starts"}, {"runtime-rows", "0", "0|1"}};

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.rows, p.cols) = to_two_dims(descriptor, "ROWSxCOLUMNS");
    check_rows(p.rows);
    p.type = to_tensor_type(words["dt"]);
    p.ranks = number(words, "ranks");
    p.experts = number(words, "experts");
    p.align = number(words, "align");
    p.routing = one_of(words, "routing");
    std::tie(p.src_scales, p.dst_scales) = scales_layouts(words);
    p.type.dense = flag(words, "attr-element-packing");
    p.row_pad = number(words, "row-pad");
    p.spare = number(words, "spare");
    p.starts = flag(words, "row-grouping");
    p.runtime_rows = flag(words, "runtime-rows");
    p.repro = words.repro("moe_permute", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    const int64_t columns = any.length(600);
    const int64_t rows = any.range(0, std::min<int64_t>(1000, (settings.random_size << 16) / columns));
    return std::to_string(rows) + "x" + std::to_string(columns);
}

} // namespace moe_permute
} // namespace bench
