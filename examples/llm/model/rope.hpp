// SPDX-License-Identifier: Apache-2.0
// Angles of the rotary embedding.
#pragma once

#include <vector>

#include "config.hpp"

namespace llm {

// The angle of pair i at position p is p * frequencies(...)[i]; of `head_size` / 2 pairs.
std::vector<float> frequencies(const rope_t &rope, int64_t head_size);

} // namespace llm
