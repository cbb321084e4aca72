// SPDX-License-Identifier: Apache-2.0
// One moe_permute problem of mxdnn-bench, and the knobs that make many.
#pragma once

#include <string>
#include <vector>

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

class knobs_t {
public:
    knobs_t() { reset(); }
    void reset();
    bool parse(const std::string &word);
    std::vector<problem_t> problems(const std::string &descriptor) const;

private:
    std::vector<std::string> dt_, ranks_, experts_, align_, routing_, scales_, pad_, spare_, grouping_,
            runtime_;
};

void run(const problem_t &p);
bool run_driver_word(const std::string &word);

} // namespace moe_permute
} // namespace bench
