// SPDX-License-Identifier: Apache-2.0
// Problems of every primitive, legal and nearly so: tables of what there is, and draws from them.
#pragma once

#include <map>

#include "common/engine.hpp"
#include "common/problem.hpp"
#include "fuzz/choices.hpp"

namespace fuzz {

using namespace mxdnn::impl;

struct drawn_t {
    problem_t p; // with the dims of the execution; dims of 0: absent
    // The contents of the index tensors of an execution, and lengths that the problem does not say.
    std::map<int, std::vector<int32_t>> indices;
    std::map<int, dim_t> lengths;
    bool executes = true; // else it is only created: something is huge
};

// Null if a descriptor that the problem needs cannot be created.
bool draw_problem(choices_t &c, drawn_t &d);

// The problem with some dims and strides left to the execution, or as it is.
problem_t with_runtime_dims(choices_t &c, const problem_t &p);

// A descriptor of these dims in some order, with gaps, repeated or overlapping where that can be described.
bool draw_strides(
        choices_t &c, memory_desc_t &md, int ndims, const dim_t *dims, data_type_t dt, bool odd = true);

// Through the public interface; null where the problem is refused.
mxdnn_primitive_desc_t create_descriptor(const problem_t &p);

} // namespace fuzz
