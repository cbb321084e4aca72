// SPDX-License-Identifier: Apache-2.0
// cpu_target: the name of the target that CPU tensors are computed on.
#include "device.hpp"
#include "operators.hpp"

namespace mxdnn_torch {

std::string cpu_target() { return engine_of({}).get_target(); }

} // namespace mxdnn_torch
