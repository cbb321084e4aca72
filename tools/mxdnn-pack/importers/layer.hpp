// SPDX-License-Identifier: Apache-2.0
// What importers share: finding the tensors of a layer, checking them, and reading their numbers.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "../checkpoint.hpp"

namespace mxdnn_pack {

using dim = mxdnn::memory::dim;

// The tensors whose names are `prefix` and a suffix.
class layer_t {
public:
    layer_t(const checkpoint_t &input, std::string prefix, std::string layout)
        : input_(input), prefix_(std::move(prefix)), layout_(std::move(layout)) {}

    // Nothing where there is no such tensor, or it is packed.
    std::optional<size_t> find(const std::string &suffix) const;
    size_t get(const std::string &suffix) const; // throws where there is none

    // Throws unless the tensor has one of the types, and the dims where they are given.
    void check_type(size_t entry, std::initializer_list<const char *> dtypes) const;
    void check(
            size_t entry, std::initializer_list<const char *> dtypes, const std::vector<int64_t> &dims) const;
    [[noreturn]] void refuse(const std::string &why) const;

    // The finite numbers above zero of a tensor with one element, or with one per matrix; of divisors, what
    // multiplies instead.
    std::vector<float> global_scales(size_t entry, dim matrices, bool are_divisors = false) const;
    // Whole numbers of an I32, I64 or U8 tensor of up to `most` elements.
    std::vector<int64_t> integers(size_t entry, size_t most) const;

private:
    const checkpoint_t &input_;
    const std::string prefix_, layout_;
};

// "tensor 'x' (F16 [2, 3])"
std::string described(const entry_t &e);
size_t elements(const entry_t &e);

// Whole ones of `to` that hold `a`; of any numbers above zero.
inline dim round_up(dim a, dim to) { return a / to + (a % to != 0); }

// Elements [first, first + count) of an F32, BF16, F16 or 8-bit float tensor as f32.
void read_floats(const checkpoint_t &input, size_t entry, uint64_t first, uint64_t count, float *to);
std::vector<float> read_floats(const checkpoint_t &input, size_t entry);

// All of the bytes of a tensor.
std::vector<uint8_t> read_bytes(const checkpoint_t &input, size_t entry);

// Columns [first, first + count) of a matrix [rows, columns] of elements of `size` bytes that begins at
// `offset`, written with rows and columns exchanged: [count, rows], each row of the result `stride` bytes
// after the other.
void read_transposed(const checkpoint_t &input, size_t entry, uint64_t offset, dim rows, dim columns,
        dim first, dim count, size_t size, void *to, size_t stride);

// The group of the int4 family in which codes that share a scale `group` at a time can be kept: scales are
// repeated where it is smaller. 0 where there is none.
dim int4_block(dim group, dim in);

} // namespace mxdnn_pack
