// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels.hpp"

namespace llm::cuda {

// multiply_few of many columns on a device of compute capability 9.
bool can_multiply_on_hopper(const few_t &f);
void multiply_on_hopper(stream_t s, const few_t &f);

} // namespace llm::cuda
