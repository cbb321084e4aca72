// SPDX-License-Identifier: Apache-2.0
// One moe_route problem of mxdnn-bench, and the knobs that make many.
#pragma once

#include <string>

#include "benchdnn/common/knobs.hpp"

namespace bench {
namespace moe_route {

struct problem_t {
    int64_t tokens = 0, experts = 0, topk = 1;
    mxdnn::impl::data_type_t dt = mxdnn_f32;
    mxdnn_alg_kind_t scoring = mxdnn_route_softmax_topk;
    unsigned flags = 0;
    int64_t groups = 1, topk_groups = 1;
    float scale = 1;
    bool starts = false, runtime_rows = false;
    bool all_outputs = true; // or those alone that cannot be left out
    int64_t row_pad = 0;     // elements between rows of logits
    std::string ltag;        // ab, ba
    std::string values;      // normal; ties: few distinct logits; special: NaN, infinities, huge
    std::string repro;

    bool has(unsigned flag) const { return flags & flag; }
};

extern knobs_t knobs;
problem_t make_problem(const std::string &descriptor, const words_t &words);
std::string draw_descriptor(draws_t &any);

void run(const problem_t &p);
bool run_driver_word(const std::string &word);

} // namespace moe_route
} // namespace bench
