// SPDX-License-Identifier: Apache-2.0
// The configuration of a model in the metadata of a GGUF file.
#pragma once

#include "common/gguf.hpp"
#include "config.hpp"

namespace llm {

config_t read_gguf_config(const gguf::file_t &file);

} // namespace llm
