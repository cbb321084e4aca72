// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/moe_unpermute/problem.hpp"

#include <tuple>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/settings.hpp"
#include "benchdnn/moe_permute/rows.hpp"

namespace bench {
namespace moe_unpermute {

using namespace mxdnn::impl;

namespace {

std::string draw_dt(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    const bool moved = any.one_in(2); // as they are
    const std::string src = moved ? draw_format(any) : draw_type(any, role_high_precision);
    return src + ":" + (moved ? src : draw_type(any, role_high_precision));
}
std::string draw_topk(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return to_tensor_type(split(words["dt"], ':')[0]).quantised ? "0" : draw_word(any, knob);
}
std::string draw_layouts(draws_t &any, const knob_t &knob, const words_t &, const std::string &) {
    return draw_scales_layouts(any, knob);
}

constexpr knob_t knob_list[] = {{"dt", "bf16:bf16", draw_dt, true},
        {"topk", "4", range_t{0, 12}, draw_topk, true}, {"scales-layout", "linear:linear", draw_layouts},
        {"missing", "0", range_t{0, 9}}, {"padding", "0", range_t{0, 20}},
        {"attr-element-packing", "bytes", "bytes|dense", draw_packing}, {"row-pad", "0", range_t{0, 5}},
        {"runtime-rows", "0", "0|1"}};

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    std::tie(p.tokens, p.cols) = to_two_dims(descriptor, "TOKENSxCOLUMNS");
    const auto types = split(words["dt"], ':');
    if (types.size() != 2) throw usage_error_t("--dt is '" + words["dt"] + "'; it is SRC:DST");
    p.src = to_tensor_type(types[0]);
    p.dst = to_tensor_type(types[1]);
    p.topk = number(words, "topk");
    check_rows(p.tokens, p.topk);
    std::tie(p.src_scales, p.dst_scales) = scales_layouts(words);
    p.src.dense = p.dst.dense = flag(words, "attr-element-packing");
    p.missing = number(words, "missing");
    p.padding = number(words, "padding");
    p.row_pad = number(words, "row-pad");
    p.runtime_rows = flag(words, "runtime-rows");
    p.repro = words.repro("moe_unpermute", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    const int64_t columns = any.length(600);
    const int64_t tokens = any.range(0, std::min<int64_t>(1000, (settings.random_size << 15) / columns));
    return std::to_string(tokens) + "x" + std::to_string(columns);
}

} // namespace moe_unpermute
} // namespace bench
