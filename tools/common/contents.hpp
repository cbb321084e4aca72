// SPDX-License-Identifier: Apache-2.0
// What goes into a container that is written: packed weights with their descriptors, other tensors, and a
// checksum of each (doc/reference/container.md).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <mxdnn/mxdnn_container.hpp>

#include "safetensors.hpp"

namespace safetensors {

// Takes the next bytes of a tensor.
using take_t = std::function<void(const void *bytes, uint64_t size)>;
// How a tensor is made when it is written: `part` gives the bytes of a part, in any number of pieces, to the
// function it is called with. Parts are begun in order and made in several threads; the pieces are taken in
// order.
struct make_t {
    size_t parts = 1;
    std::function<void(size_t part, const take_t &)> part;
};

// A tensor to write that is made only then. An exception of `make` ends the writing and is its message, after
// `doing`.
out_tensor_t made_later(std::string name, std::string dtype, std::vector<int64_t> shape,
        const std::string &doing, const make_t &make);

// Bytes that are read a piece at a time.
make_t in_pieces(uint64_t size, std::function<void(uint64_t offset, uint64_t size, void *buffer)> read);

// What write() is called with.
struct contents_t {
    std::vector<out_tensor_t> tensors;
    std::map<std::string, std::string> metadata;

    // Packed weights, which are made when they are written.
    void add_packed(const std::string &name, const mxdnn::memory::desc &desc, const make_t &make);
    // The same of bytes that lie in memory until then.
    void add_packed(const std::string &name, const mxdnn::memory::desc &desc, const void *bytes);
    // A tensor that is not packed, made when it is written; `size` bytes, with a checksum or without one.
    void add_plain(const std::string &name, const std::string &dtype, const std::vector<int64_t> &dims,
            uint64_t size, make_t make, bool with_checksum = true);
    // An entry that is copied from a file, with its checksum.
    void add_copy(const mxdnn::container &file, size_t index);
    // The same without a checksum, of a tensor that is not packed.
    void add_plain_copy(const mxdnn::container &file, size_t index);

private:
    void add_copy(const mxdnn::container &file, size_t index, bool with_checksum);
    make_t summed(const make_t &make, uint64_t size, const std::function<mxdnn::checksum()> &begin,
            const std::string &name);
    std::string *checksum_of(const std::string &name);
};

// What an engine makes of packed weights; throws std::runtime_error unless it can use them as they are.
// `what` begins the sentence.
mxdnn::blob_verdict check_usable(
        const std::string &what, const mxdnn::memory::desc &desc, const mxdnn::engine &engine);

} // namespace safetensors
