// SPDX-License-Identifier: Apache-2.0
// The engine of an NVIDIA GPU.
#pragma once

#include "engine/engine.hpp"

namespace llm {

// Of device `index`; throws std::runtime_error or mxdnn::error where there is none.
std::unique_ptr<engine_t> make_cuda_engine(size_t index, precision_t precision);

} // namespace llm
