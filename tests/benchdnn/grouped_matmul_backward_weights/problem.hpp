// SPDX-License-Identifier: Apache-2.0
// One grouped_matmul_backward_weights problem of mxdnn-bench, and the knobs that make many.
#pragma once

#include <string>
#include <vector>

#include "benchdnn/common/attr_words.hpp"
#include "benchdnn/common/knobs.hpp"

namespace bench {
namespace grouped_matmul_backward_weights {

struct problem_t {
    int64_t rows = 0, K = 0, N = 0, experts = 1, align = 1, ranks = 1;
    tensor_type_t src, diff_dst, diff_weights;
    std::string
            routing; // uniform; skewed: Zipf; one: all rows to one expert; empty: every other one has none
    mxdnn::row_grouping grouping = mxdnn::row_grouping::ends;
    std::string tag; // the order of the last two dims of the gradient: ab or ba
    std::vector<post_op_knob_t> post_ops;
    int64_t row_pad = 0, spare = 0; // elements between rows; rows that belong to nobody
    bool runtime_rows = false, user_scratchpad = false;
    std::string repro;

    bool padded() const { return grouping == mxdnn::row_grouping::padded; }
};

extern knobs_t knobs;
problem_t make_problem(const std::string &descriptor, const words_t &words);
std::string draw_descriptor(draws_t &any);

// Rows of each group that count, and the places that it owns.
struct groups_t {
    std::vector<int64_t> counts, first, places, first_block; // first_block: of its scales
    int64_t rows = 0, blocks = 0;
};
groups_t make_groups(const problem_t &p, uint32_t seed);

void run(const problem_t &p);
bool run_driver_word(const std::string &word);

} // namespace grouped_matmul_backward_weights
} // namespace bench
