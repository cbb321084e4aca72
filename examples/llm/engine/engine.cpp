// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "cpu/cpu_engine.hpp"
#if LLM_CUDA
#include "cuda/cuda_engine.hpp"
#endif

namespace llm {

namespace {

// 0 of "cuda", 1 of "cuda:1"; nothing of other names.
std::optional<size_t> device_of(const std::string &name) {
    const std::string kind = "cuda";
    if (name == kind) return 0;
    const std::string digits = name.rfind(kind + ":", 0) == 0 ? name.substr(kind.size() + 1) : "";
    const bool is_number =
            !digits.empty() && digits.size() < 4
            && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? std::optional<size_t>(std::stoul(digits)) : std::nullopt;
}

} // namespace

std::unique_ptr<engine_t> make_engine(const std::string &name, precision_t precision) {
    if (name == "cpu") return make_cpu_engine(precision);
    if (const auto device = device_of(name)) {
#if LLM_CUDA
        return make_cuda_engine(*device, precision);
#else
        throw std::runtime_error("engine " + name + ": this program was built without CUDA");
#endif
    }
    throw std::runtime_error("there is no engine '" + name + "'; known are cpu, cuda and cuda:N");
}

} // namespace llm
