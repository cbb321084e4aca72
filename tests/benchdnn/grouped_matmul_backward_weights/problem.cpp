// SPDX-License-Identifier: Apache-2.0
#include "benchdnn/grouped_matmul_backward_weights/problem.hpp"

#include <algorithm>
#include <random>

#include "benchdnn/common/settings.hpp"
#include "benchdnn/common/tensor.hpp"

namespace bench {
namespace grouped_matmul_backward_weights {

using namespace mxdnn::impl;
using mxdnn::row_grouping;

namespace {

// For a random problem: few enough for every implementation and the oracle.
int64_t most_products() { return settings.random_size << 21; }

std::string draw_types(draws_t &any, const knob_t &, const words_t &, const std::string &) {
    const std::string to = draw_type(any, role_high_precision);
    if (any.one_in(2)) {
        const std::string type = draw_type(any, role_high_precision);
        return type + ":" + type + ":" + to;
    }
    const std::string src = any.of({"mxfp8", "mxfp8_e5m2"});
    return src + ":" + any.of({"mxfp8", "mxfp8_e5m2"}) + ":" + to;
}
std::string draw_align(draws_t &any, const knob_t &knob, const words_t &, const std::string &) {
    return any.one_in(2) ? knob.usual : any.of({"4", "16", "32", "128"});
}
// Groups of equal length have no other alignment.
std::string draw_grouping(draws_t &any, const knob_t &knob, const words_t &words, const std::string &) {
    return words["align"] == "1" ? draw_word(any, knob) : any.of({"ends", "starts"});
}

constexpr knob_t knob_list[] = {{"dt", "bf16:bf16:f32", draw_types, true},
        {"experts", "4", range_t{1, 40}, draw_any, true}, {"routing", "uniform", "uniform|skewed|one|empty"},
        {"align", "1", range_t{1, 128}, draw_align}, {"ranks", "1", range_t{1, 4}},
        {"row-grouping", "ends", "ends|starts|padded", draw_grouping}, {"dtag", "ab", "ab|ba"},
        {"attr-post-ops", "", "|sum|sum:0.5"}, {"row-pad", "0", range_t{0, 5}}, {"spare", "0", range_t{0, 9}},
        {"runtime-rows", "0", "0|1"}, {"attr-scratchpad", "library", "library|user"}};

} // namespace

knobs_t knobs(knob_list);

problem_t make_problem(const std::string &descriptor, const words_t &words) {
    problem_t p;
    const std::vector<int64_t> dims = to_dims(descriptor, "ROWSxKxN");
    if (dims.size() != 3) throw usage_error_t("'" + descriptor + "' is no ROWSxKxN");
    p.rows = dims[0], p.K = dims[1], p.N = dims[2];
    check_rows(p.rows);
    const std::vector<std::string> types = split(words["dt"], ':');
    if (types.size() != 3)
        throw usage_error_t("--dt is '" + words["dt"] + "'; it is SRC:DIFF_DST:DIFF_WEIGHTS");
    p.src = to_tensor_type(types[0]);
    p.diff_dst = to_tensor_type(types[1]);
    p.diff_weights = to_tensor_type(types[2]);
    p.experts = number(words, "experts");
    p.align = number(words, "align");
    p.ranks = number(words, "ranks");
    p.routing = one_of(words, "routing");
    p.grouping =
            pick(words, "row-grouping", {row_grouping::ends, row_grouping::starts, row_grouping::padded});
    if (p.padded() && p.align > 1) throw usage_error_t("--align is of --row-grouping=ends and starts");
    p.tag = one_of(words, "dtag");
    p.post_ops = parse_post_ops(words["attr-post-ops"]);
    p.row_pad = number(words, "row-pad");
    p.spare = number(words, "spare");
    p.runtime_rows = flag(words, "runtime-rows");
    p.user_scratchpad = flag(words, "attr-scratchpad");
    p.repro = words.repro("grouped_matmul_backward_weights", descriptor);
    return p;
}

std::string draw_descriptor(draws_t &any) {
    const int64_t N = any.length(600), K = any.length(600);
    const int64_t rows = any.range(0, std::max<int64_t>(1, most_products() / (K * N)));
    return std::to_string(std::min<int64_t>(rows, 1500)) + "x" + std::to_string(K) + "x" + std::to_string(N);
}

groups_t make_groups(const problem_t &p, uint32_t seed) {
    std::vector<double> share(size_t(p.experts), 1.);
    for (size_t e = 0; e < share.size(); e++) {
        if (p.routing == "skewed") share[e] = 1. / double(e + 1);
        if (p.routing == "one") share[e] = e == share.size() / 2;
        if (p.routing == "empty") share[e] = e % 2 == 0;
    }
    rng_t rng(seed + 11);
    std::discrete_distribution<size_t> expert(share.begin(), share.end());
    groups_t g;
    g.counts.assign(share.size(), 0);
    for (int64_t i = 0; i < p.rows; i++) g.counts[expert(rng)]++;
    const int64_t most = *std::max_element(g.counts.begin(), g.counts.end()) + p.spare;
    for (const int64_t count : g.counts) {
        g.first.push_back(g.rows);
        g.first_block.push_back(g.blocks);
        g.places.push_back(p.padded()     ? most
                           : p.align == 1 ? count
                                          : std::max<int64_t>(1, div_up(count, p.align)) * p.align);
        g.rows += g.places.back();
        g.blocks += div_up(g.places.back(), mx_block);
    }
    if (!p.padded()) g.rows += p.spare;
    return g;
}

} // namespace grouped_matmul_backward_weights
} // namespace bench
