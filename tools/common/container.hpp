// SPDX-License-Identifier: Apache-2.0
// mxdnn's packed weights in a safetensors file: NAME.mxdnn_packed, NAME.mxdnn_desc and a checksum in the
// metadata.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <mxdnn/mxdnn.hpp>

#include "safetensors.hpp"

namespace container {

// Takes the next bytes of a tensor.
using take_t = std::function<void(const void *bytes, uint64_t size)>;
// Gives the bytes of a tensor, in parts of any size, to the function it is called with.
using make_t = std::function<void(const take_t &)>;

// A tensor to write that is made only then. An exception of `make` ends the writing and is its message, after
// `doing`.
safetensors::out_tensor_t made_later(std::string name, safetensors::dtype_t dtype, std::vector<int64_t> shape,
        const std::string &doing, const make_t &make);

// What goes into safetensors::write().
struct contents_t {
    std::vector<safetensors::out_tensor_t> tensors;
    std::map<std::string, std::string> metadata;

    // Adds packed weights with their blob and checksum. `bytes` is read again when the file is written.
    void add_packed(const std::string &name, const mxdnn::memory::desc &desc, const void *bytes);
    // The same for weights that are packed only when they are written.
    void add_packed_later(const std::string &name, const mxdnn::memory::desc &desc, const make_t &make);
};

// Packed weights where they lie in the mapped file.
struct packed_t {
    mxdnn::memory::desc desc;
    const void *bytes;
    uint64_t size; // without the padding of the container
    // Of get_packed() only: native or slower; others are refused.
    mxdnn::blob_verdict verdict = mxdnn::blob_verdict::incompatible;
};

// Names of all packed tensors of a file, in the order of their bytes.
std::vector<std::string> packed_names(const safetensors::file_t &file);

// Finds weights by name and checks that they are whole: blob, size, padding, checksum, after which none of
// their bytes is in this process's memory. Throws std::runtime_error with a sentence that names file and
// tensor.
packed_t find_packed(const safetensors::file_t &file, const std::string &name);

// The same of weights that the engine can use as they are.
packed_t get_packed(const safetensors::file_t &file, const std::string &name, const mxdnn::engine &engine);

} // namespace container
