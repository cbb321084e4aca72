// SPDX-License-Identifier: Apache-2.0
// One moe_permute problem of mxdnn-bench, and the knobs that make many.
#pragma once

#include <string>

#include "benchdnn/common/knobs.hpp"

namespace bench {
namespace moe_permute {

struct problem_t {
    int64_t rows = 0, cols = 0, ranks = 1, experts = 1, align = 1;
    tensor_type_t type;
    std::string
            routing; // uniform; skewed: Zipf; one: all rows to one expert; empty: every other expert has none
    std::string src_scales, dst_scales; // linear, 128x4
    int64_t row_pad = 0, spare = 0;     // elements between rows; rows that belong to nobody
    bool starts = false, runtime_rows = false;
    std::string repro;
};

extern knobs_t knobs;
problem_t make_problem(const std::string &descriptor, const words_t &words);
std::string draw_descriptor(draws_t &any);

void run(const problem_t &p);
bool run_driver_word(const std::string &word);

} // namespace moe_permute
} // namespace bench
