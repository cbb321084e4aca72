// SPDX-License-Identifier: Apache-2.0
// Layers on packed weights, through mxdnn's primitives: the same code on every engine.
#pragma once

#include "engine.hpp"

namespace llm {

// Packed weights, and what keeps their bytes alive.
struct packed_t {
    mxdnn::memory::desc desc;
    buffer_t bytes;
};

std::unique_ptr<linear_t> packed_linear(engine_t &engine, const linear_spec_t &spec, const packed_t &weights);

// Both of [experts, in, out].
std::unique_ptr<experts_t> packed_experts(
        engine_t &engine, const experts_spec_t &spec, const packed_t &gate_up, const packed_t &down);

} // namespace llm
