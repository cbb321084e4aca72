// SPDX-License-Identifier: Apache-2.0
// What a GGUF file has, as a safetensors file would have it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <mxdnn/mxdnn_container.hpp>

#include "common/gguf.hpp"

namespace mxdnn_pack {

// A tensor of floats or integers as it is; one of blocks as F32, what they are worth. Throws where that is
// not known.
mxdnn::container::entry entry_of(const gguf::file_t &file, const gguf::tensor_t &tensor);
// Bytes of such an entry; of an F32 one whole elements.
void read_entry(
        const gguf::file_t &file, const gguf::tensor_t &tensor, uint64_t offset, uint64_t size, void *buffer);

// The metadata with "gguf." before the keys and values in JSON.
std::map<std::string, std::string> metadata_of(const gguf::file_t &file);

} // namespace mxdnn_pack
