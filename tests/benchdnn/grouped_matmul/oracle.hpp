// SPDX-License-Identifier: Apache-2.0
// What a grouped_matmul has to give, computed in double row by row from plain codes and scales, and how
// far a correct implementation may be from it. Which row goes where comes from the routing, not from
// the index tensors that the library reads.
#pragma once

#include "benchdnn/grouped_matmul/problem.hpp"

namespace bench {
namespace grouped_matmul {

// The inputs of a problem.
struct data_t {
    operand_t src;
    quantised_t wei;
    tensor_t bias, alpha, params, topk;
    tensor_t old_dst; // for sum
};
// `one_expert`: weights of a single one, for where all may be alike and it is packed many times.
data_t make_data(const problem_t &p, const routing_t &r, uint32_t seed, bool one_expert);

// Results before quantisation or conversion, row-major over the destination; `untouched` where nothing
// may be written.
std::vector<interval_t> expected(
        const problem_t &p, const routing_t &r, const data_t &d, const arithmetic_t &a);

} // namespace grouped_matmul
} // namespace bench
