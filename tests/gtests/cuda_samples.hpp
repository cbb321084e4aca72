// SPDX-License-Identifier: Apache-2.0
// One problem of every primitive with every implementation that takes it, for tests that need all of them.
#pragma once

#include <memory>

#include "cuda_call.hpp"

namespace cuda_test {

struct sample_t {
    std::string name;
    std::shared_ptr<mxdnn::primitive_desc_base> pd;
    values_t indices; // inputs that are not to be random
    shapes_t shapes;  // of inputs whose dims are open

    values_t inputs(unsigned seed) const {
        std::mt19937 rng(seed);
        values_t in = random_inputs(*pd, rng);
        for (const auto &i : indices) in[i.first] = i.second;
        return in;
    }
};

std::vector<sample_t> samples(
        const mxdnn::engine &e, mxdnn::scratchpad_mode scratchpad = mxdnn::scratchpad_mode::library);

} // namespace cuda_test
