// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <stdexcept>

#include "cpu/cpu_engine.hpp"

namespace llm {

std::unique_ptr<engine_t> make_engine(const std::string &name, precision_t precision) {
    if (name == "cpu") return make_cpu_engine(precision);
    throw std::runtime_error("there is no engine '" + name + "'; known are cpu");
}

} // namespace llm
