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
    uint64_t begin = 0, end = 0; // relative to the end of the header
    uint64_t size() const { return end - begin; }
};

// The contents of a header, checked against the size of the file.
struct index_t {
    std::vector<tensor_t> tensors; // in the order of their data
    std::map<std::string, std::string> metadata;
    uint64_t data_offset = 0;                            // position of the first tensor's bytes in the file
    const tensor_t *find(const std::string &name) const; // nullptr if there is none

private:
    friend status_t parse_header(const uint8_t *, uint64_t, uint64_t, index_t &);
    std::map<std::string, size_t> by_name;
};

// The first 8 bytes of a file are the length of its header.
constexpr uint64_t prefix_size = 8;
status_t parse_prefix(const uint8_t *prefix, uint64_t file_size, uint64_t &header_size);

// `header` is what follows the prefix. `index` is written only on success. The size of the header bounds time
// and memory, whatever it contains.
status_t parse_header(const uint8_t *header, uint64_t header_size, uint64_t file_size, index_t &index);

// A whole file that is in memory.
status_t parse(const uint8_t *bytes, uint64_t size, index_t &index);

} // namespace safetensors
} // namespace impl
} // namespace mxdnn
