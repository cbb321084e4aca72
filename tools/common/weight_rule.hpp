// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are weights of linear layers and experts, as far as their names and shapes
// say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weight_rule {

// Null for a tensor that is packed by default; for others what they are, such as "embedding". `shape` has two
// or three dimensions.
const char *left_as(const std::string &name, const std::vector<int64_t> &shape);

// The rule in words, made of the same table; lines that end with '\n'.
std::string text();

} // namespace weight_rule
