// SPDX-License-Identifier: Apache-2.0
// Writing safetensors files: a file is replaced completely, or the old one stays whole. Reading is the
// library's (mxdnn_container.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

// A tensor to write. `fill` passes the bytes of a part to the sink, in any number of pieces; all parts
// together have exactly dtype x shape bytes. Several threads may fill parts at once. Whoever begins one has
// begun, or finished, all before it; the sink waits until it is that part's turn.
struct out_tensor_t {
    std::string name, dtype;
    std::vector<int64_t> shape;
    size_t parts;
    std::function<status_t(size_t part, const sink_t &)> fill;
};

// A tensor whose bytes lie in memory until write() has returned.
out_tensor_t from_memory(std::string name, std::string dtype, std::vector<int64_t> shape, const void *bytes);

// Told after each piece; what is not ok ends the writing and is its outcome.
using progress_t = std::function<status_t(uint64_t done, uint64_t total)>;

// A container that is being written: tensors named *.mxdnn_packed first, which have multiples of 64 bytes, at
// multiples of 64 from the start of the file; then the others, widest type first. Until commit() nothing of
// `path` has changed, and without it no other file remains (replaced_file.hpp).
class writer_t {
public:
    writer_t(std::string path, std::vector<out_tensor_t> tensors);
    ~writer_t();
    writer_t(const writer_t &) = delete;
    writer_t &operator=(const writer_t &) = delete;

    // Checks names and shapes, makes the file and reserves its room.
    status_t begin(const std::map<std::string, std::string> &metadata);
    // Of the data, as begin() plans them.
    uint64_t total_bytes() const;
    // Writes the tensors, and then the header: fill() may have changed a value of the metadata to another of
    // the same length (a checksum known only then).
    status_t fill(const std::map<std::string, std::string> &metadata, unsigned threads = 1,
            const progress_t &progress = nullptr);
    // Replaces what has the name; or, with `only_new`, is refused where something has it.
    status_t commit(bool only_new = false);

private:
    struct state_t;
    std::unique_ptr<state_t> state_;
};

// All of it, for one file, in this thread.
status_t write(const std::string &path, const std::vector<out_tensor_t> &tensors,
        const std::map<std::string, std::string> &metadata, const progress_t &progress = nullptr);

} // namespace safetensors
