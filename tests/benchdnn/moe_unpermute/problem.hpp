// SPDX-License-Identifier: Apache-2.0
// One moe_unpermute problem of mxdnn-bench, and the knobs that make many.
#pragma once

#include <string>

#include "benchdnn/common/knobs.hpp"

namespace bench {
namespace moe_unpermute {

struct problem_t {
    int64_t tokens = 0, cols = 0;
    int64_t topk = 0; // rows that are summed by weights; 0: rows go back, one each
    tensor_type_t src, dst;
    std::string src_scales, dst_scales; // linear, 128x4
    int64_t missing = 0;                // one choice in so many has no row; 0: none
    int64_t padding = 0;                // source rows that go nowhere
    int64_t row_pad = 0;
    bool runtime_rows = false;
    std::string repro;

    int64_t choices() const { return topk ? topk : 1; }
};

extern knobs_t knobs;
problem_t make_problem(const std::string &descriptor, const words_t &words);
std::string draw_descriptor(draws_t &any);

void run(const problem_t &p);
bool run_driver_word(const std::string &word);

} // namespace moe_unpermute
} // namespace bench
