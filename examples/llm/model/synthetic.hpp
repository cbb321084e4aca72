// SPDX-License-Identifier: Apache-2.0
// Models of known shapes with weights that are made up, to measure without a checkpoint: "shape:gpt-oss-20b",
// or "shape:gpt-oss-20b:4" with four of its layers.
#pragma once

#include "tensors.hpp"

namespace llm {

bool is_synthetic(const std::string &model);
// Throws std::runtime_error that lists the shapes.
config_t synthetic_config(const std::string &model);
// All experts of a layer are the same: what they cost does not depend on their values.
std::unique_ptr<tensors_t> synthetic_tensors(const std::string &model);

} // namespace llm
