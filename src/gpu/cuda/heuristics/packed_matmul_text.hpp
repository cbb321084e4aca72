// SPDX-License-Identifier: Apache-2.0
// Plans in words. (Apart, because kernels are compiled without <string>.)
#pragma once

#include <string>

#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

std::string to_string(const matmul_plan_t &plan);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
