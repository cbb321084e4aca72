// SPDX-License-Identifier: Apache-2.0
// Reads the header of a safetensors file and trusts nothing in it.
#pragma once

#include <map>

#include "common/container/safetensors_format.hpp"

namespace mxdnn {
namespace impl {
namespace safetensors {

struct tensor_t {
    std::string name;
    const dtype_t *dtype = nullptr;
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0; // within the data that follow the header
    uint64_t size() const { return end - begin; }
};

// What a header says, checked against the size of the file.
struct index_t {
    std::vector<tensor_t> tensors; // in the order of their data
    std::map<std::string, std::string> metadata;
    uint64_t data_offset = 0;                            // of the data within the file
    const tensor_t *find(const std::string &name) const; // nullptr when absent

private:
    friend status_t parse_header(const uint8_t *, uint64_t, uint64_t, index_t &);
    std::map<std::string, size_t> by_name;
};

// The first 8 bytes of a file are the length of its header.
constexpr uint64_t prefix_size = 8;
status_t parse_prefix(const uint8_t *prefix, uint64_t file_size, uint64_t &header_size);

// `header` is what follows the prefix. `index` is filled only on success. Time and memory are bounded by the
// size of the header, whatever it says.
status_t parse_header(const uint8_t *header, uint64_t header_size, uint64_t file_size, index_t &index);

// A whole file that lies in memory.
status_t parse(const uint8_t *bytes, uint64_t size, index_t &index);

} // namespace safetensors
} // namespace impl
} // namespace mxdnn
