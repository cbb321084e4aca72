// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are weights of linear layers and experts, as far as their names and shapes
// say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weight_rule {

// Null for a tensor that is packed by default; for others what they are, such as "embedding". `shape` has two
// or three dimensions. Who says that a tensor is a weight [in, out] is believed where the name alone does not
// tell.
const char *left_as(const std::string &name, const std::vector<int64_t> &shape, bool is_transposed = false);

// The rule in words, made of the same table; lines that end with '\n'.
std::string text();

} // namespace weight_rule
