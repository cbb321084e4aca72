// SPDX-License-Identifier: Apache-2.0
// CUDA devices as engines: their targets, implementations and verdicts.
#pragma once

#include "common/backend.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

const backend_t &cuda_backend();

// The architecture that an engine stands for: 80, 90, 100 or 120. Only of CUDA engines.
int arch_of(const engine_t &engine);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
