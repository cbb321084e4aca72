// SPDX-License-Identifier: Apache-2.0
// The host as an engine: its targets, implementations and verdicts.
#pragma once

#include "common/backend.hpp"
#include "cpu/x64/isa.hpp"

namespace mxdnn {
namespace impl {

const backend_t &cpu_backend();

// The ISA that an engine stands for; of engines that are no CPU, none.
x64::cpu_isa_t isa_of(const engine_t &engine);

} // namespace impl
} // namespace mxdnn
