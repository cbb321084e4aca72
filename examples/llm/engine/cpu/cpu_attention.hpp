// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU. Keys are kept in panels of 16 positions, transposed, and values as rows, so that
// scores and sums are products of queries with panels. A layer with a window keeps what the window needs and
// overwrites the rest.
#pragma once

#include "engine/engine.hpp"

namespace llm {

std::unique_ptr<attention_t> cpu_attention(
        const engine_t &engine, const config_t &config, int64_t sequences, int64_t context, int64_t max_rows);

} // namespace llm
