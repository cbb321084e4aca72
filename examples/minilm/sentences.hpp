// SPDX-License-Identifier: Apache-2.0
// The text that the example measures and ranks.
#pragma once

#include <string>
#include <vector>

namespace minilm {

// Everyday prose of 23 to 40 tokens each, one batch.
const std::vector<std::string> &batch_sentences();

// Questions, and the short texts among which their answers are.
const std::vector<std::string> &questions();
const std::vector<std::string> &answers();

} // namespace minilm
