// SPDX-License-Identifier: Apache-2.0
// Layers on high-precision weights on a device: few rows by a kernel of this program, others by cuBLASLt.
#pragma once

#include "engine/engine.hpp"
#include "lt_matmul.hpp"

namespace llm::cuda {

// What the layers of an engine share.
struct shared_t {
    stream_t stream;
    const lt_t &lt;
    buffer_t sums; // results before they are finished; grows when layers are made
};

type_t type_of(data_type_t type);

// All of the weights as f32 or bf16 in memory of the engine.
buffer_t upload(engine_t &engine, const source_t &weights, data_type_t type);

// In the activation type, as both sides of a product have one type.
std::unique_ptr<linear_t> plain_linear(engine_t &engine, shared_t &shared, const linear_spec_t &spec,
        const source_t &weights, int64_t max_rows);
std::unique_ptr<llm::experts_t> plain_experts(engine_t &engine, shared_t &shared, const experts_spec_t &spec,
        const source_t &gate_up, const source_t &down, data_type_t type);

} // namespace llm::cuda
