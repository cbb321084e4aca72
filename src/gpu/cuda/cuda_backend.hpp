// SPDX-License-Identifier: Apache-2.0
// CUDA devices as engines: their targets, implementations and verdicts.
#pragma once

#include "common/backend.hpp"
#include "gpu/cuda/arch.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

const backend_t &cuda_backend();

// The architecture of an engine, device or description. Only for CUDA engines.
const arch_t &arch_of(const engine_t &engine);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
