// SPDX-License-Identifier: Apache-2.0
// Layers on high-precision weights: the baseline for packed ones, and what is left unpacked.
#pragma once

#include "engine/engine.hpp"

namespace llm {

std::unique_ptr<linear_t> cpu_plain_linear(
        engine_t &engine, const linear_spec_t &spec, const source_t &weights, data_type_t type);
std::unique_ptr<experts_t> cpu_plain_experts(engine_t &engine, const experts_spec_t &spec,
        const source_t &gate_up, const source_t &down, data_type_t type);

} // namespace llm
