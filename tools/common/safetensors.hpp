// SPDX-License-Identifier: Apache-2.0
// Writing safetensors files: a file is replaced completely, or the old one stays whole. Reading is the
// library's (mxdnn_container.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/container/safetensors_format.hpp"

namespace safetensors {

using namespace mxdnn::impl::safetensors;

// Calls fn(bytes, size) for all of them, some at a time.
template <typename F>
void for_pieces(const void *bytes, uint64_t size, F &&fn) {
    constexpr uint64_t piece = uint64_t(4) << 20;
    for (uint64_t at = 0; at < size; at += piece)
        fn(static_cast<const uint8_t *>(bytes) + at, size - at < piece ? size - at : piece);
}

// Takes the next bytes of a tensor.
using sink_t = std::function<status_t(const void *bytes, uint64_t size)>;

// A tensor to write. `fill` passes exactly dtype x shape bytes to the sink, in any number of pieces.
struct out_tensor_t {
    std::string name, dtype;
    std::vector<int64_t> shape;
    std::function<status_t(const sink_t &)> fill;
};

// A tensor whose bytes lie in memory until write() has returned.
out_tensor_t from_memory(std::string name, std::string dtype, std::vector<int64_t> shape, const void *bytes);

// Told after each piece; what is not ok ends the writing and is its outcome.
using progress_t = std::function<status_t(uint64_t done, uint64_t total)>;

// Writes a container: tensors named *.mxdnn_packed first, at multiples of 64 bytes from the start of the file
// and padded with zeros to multiples of 64; then the others, widest type first. `metadata` is written last,
// so fill() may still change a value to another of the same length (a checksum known only then). On failure
// nothing of `path` has changed and no other file remains (replaced_file.hpp).
status_t write(const std::string &path, const std::vector<out_tensor_t> &tensors,
        const std::map<std::string, std::string> &metadata, const progress_t &progress = nullptr);

} // namespace safetensors
