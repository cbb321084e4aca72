// SPDX-License-Identifier: Apache-2.0
// The host as an engine: its targets, implementations and verdicts.
#pragma once

#include "common/backend.hpp"
#include "cpu/x64/isa.hpp"

namespace mxdnn {
namespace impl {

const backend_t &cpu_backend();

// The ISA of an engine; none for engines that are not CPUs.
x64::cpu_isa_t isa_of(const engine_t &engine);

} // namespace impl
} // namespace mxdnn
