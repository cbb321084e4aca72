// SPDX-License-Identifier: Apache-2.0
// What an mx_matmul has to give, computed in double from plain codes and scales, and how far a
// correct implementation may be from it. Nothing of the library's kernels, layouts or reference
// takes part; formats' traits do, which have tests against tables of their own.
#pragma once

#include "benchdnn/mx_matmul/problem.hpp"

namespace bench {
namespace mx_matmul {

// The inputs of a problem.
struct data_t {
    operand_t src;
    quantised_t wei;
    tensor_t bias;
    std::vector<tensor_t> binary; // one per post-op, empty where it is no binary
    tensor_t old_dst;             // for sum
};
data_t make_data(const problem_t &p, uint32_t seed);

// Results before quantisation or conversion, row-major over the destination.
std::vector<interval_t> expected(const problem_t &p, const data_t &d, const arithmetic_t &a);

} // namespace mx_matmul
} // namespace bench
