// SPDX-License-Identifier: Apache-2.0
// The engine of the machine's processors.
#pragma once

#include "engine/engine.hpp"

namespace llm {

std::unique_ptr<engine_t> make_cpu_engine(precision_t precision);

} // namespace llm
