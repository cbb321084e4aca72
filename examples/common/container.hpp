// SPDX-License-Identifier: Apache-2.0
// mxdnn's packed weights in a safetensors file: NAME.mxdnn_packed, NAME.mxdnn_desc and a checksum in the
// metadata.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "safetensors.hpp"

namespace container {

// What goes into safetensors::write().
struct contents_t {
    std::vector<safetensors::out_tensor_t> tensors;
    std::map<std::string, std::string> metadata;

    // Adds packed weights with their blob and checksum. `bytes` is read again when the file is written.
    void add_packed(const std::string &name, const mxdnn::memory::desc &desc, const void *bytes);
};

// Packed weights where they lie in the mapped file.
struct packed_t {
    mxdnn::memory::desc desc;
    const void *bytes;
    uint64_t size;               // without the padding of the container
    mxdnn::blob_verdict verdict; // native or slower; others are refused
};

// Finds weights by name and checks everything that can be checked: blob, verdict of the engine, size,
// padding, checksum. Throws std::runtime_error with a sentence that names file and tensor.
packed_t get_packed(const safetensors::file_t &file, const std::string &name, const mxdnn::engine &engine);

} // namespace container
