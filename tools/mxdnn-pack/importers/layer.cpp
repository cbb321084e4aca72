// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "common/formats/format_list.hpp"
#include "common/safetensors.hpp"

namespace mxdnn_pack {

using safetensors::shown;
using safetensors::to_string;

std::optional<size_t> layer_t::find(const std::string &suffix) const {
    const std::optional<size_t> i = input_.find(prefix_ + suffix);
    return i && !input_.entries[*i].is_packed ? i : std::nullopt;
}

size_t layer_t::get(const std::string &suffix) const {
    const std::optional<size_t> i = find(suffix);
    if (!i) refuse("there is no tensor " + shown(prefix_ + suffix));
    return *i;
}

void layer_t::refuse(const std::string &why) const {
    throw std::runtime_error("layer " + shown(prefix_) + " (" + layout_ + "): " + why
                             + "; --exclude leaves its tensors as they are");
}

void layer_t::check_type(size_t entry, std::initializer_list<const char *> dtypes) const {
    const entry_t &e = input_.entries[entry];
    std::string allowed;
    for (const char *d : dtypes) {
        if (e.dtype == d) return;
        allowed += (allowed.empty() ? "" : " or ") + std::string(d);
    }
    refuse(described(e) + " must be " + allowed);
}

void layer_t::check(
        size_t entry, std::initializer_list<const char *> dtypes, const std::vector<int64_t> &dims) const {
    check_type(entry, dtypes);
    const entry_t &e = input_.entries[entry];
    if (e.dims != dims) refuse(described(e) + " must have the shape " + to_string(dims));
}

std::vector<float> layer_t::global_scales(size_t entry, dim matrices, bool are_divisors) const {
    check_type(entry, {"F32", "BF16", "F16"});
    const size_t n = elements(input_.entries[entry]);
    if (n != 1 && dim(n) != matrices)
        refuse(described(input_.entries[entry]) + " must have one number"
                + (matrices == 1 ? "" : ", or one for each of " + std::to_string(matrices) + " matrices"));
    std::vector<float> v = read_floats(input_, entry);
    for (float &x : v) {
        const float stored = x;
        if (are_divisors) x = 1 / x;
        if (!(x > 0) || std::isinf(x))
            refuse(described(input_.entries[entry]) + " has " + std::to_string(stored)
                    + "; global scales are finite and above zero");
    }
    return v;
}

std::vector<int64_t> layer_t::integers(size_t entry, size_t most) const {
    check_type(entry, {"I64", "I32", "U8"});
    const entry_t &e = input_.entries[entry];
    const size_t n = elements(e);
    if (n > most) refuse(described(e) + " must have at most " + std::to_string(most) + " numbers");
    const std::vector<uint8_t> bytes = read_bytes(input_, entry);
    const size_t size = n ? bytes.size() / n : 1;
    std::vector<int64_t> v(n);
    for (size_t i = 0; i < n; i++) {
        if (size == 8) {
            std::memcpy(&v[i], &bytes[i * 8], 8);
        } else if (size == 4) {
            int32_t x;
            std::memcpy(&x, &bytes[i * 4], 4);
            v[i] = x;
        } else {
            v[i] = bytes[i];
        }
    }
    return v;
}

std::string described(const entry_t &e) {
    return "tensor " + shown(e.name) + " (" + e.dtype + " " + to_string(e.dims) + ")";
}

size_t elements(const entry_t &e) {
    size_t n = 1;
    for (const int64_t d : e.dims) n *= size_t(d);
    return n;
}

void read_floats(const checkpoint_t &input, size_t entry, uint64_t first, uint64_t count, float *to) {
    using namespace mxdnn::impl;
    const entry_t &e = input.entries[entry];
    const data_type_info_t *type = data_type_info(data_type_t(e.data_type));
    if (!type || !type->is_float || type->bits < 8) throw std::runtime_error(described(e) + " has no floats");
    const size_t size = size_t(type->bits) / 8;
    std::vector<uint8_t> bytes(size_t(count) * size);
    input.read(entry, first * size, bytes.size(), bytes.data());
    for (size_t i = 0; i < count; i++) {
        uint32_t code = 0;
        std::memcpy(&code, &bytes[i * size], size);
        to[i] = type->decode(code);
    }
}

std::vector<float> read_floats(const checkpoint_t &input, size_t entry) {
    std::vector<float> v(elements(input.entries[entry]));
    read_floats(input, entry, 0, v.size(), v.data());
    return v;
}

std::vector<uint8_t> read_bytes(const checkpoint_t &input, size_t entry) {
    std::vector<uint8_t> bytes(size_t(input.entries[entry].size));
    input.read(entry, 0, bytes.size(), bytes.data());
    return bytes;
}

namespace {

template <typename T>
void transpose(const uint8_t *from, dim rows, dim count, uint8_t *to, size_t stride) {
    constexpr dim tile = 64; // keeps both sides in the cache
    for (dim c0 = 0; c0 < count; c0 += tile)
        for (dim r = 0; r < rows; r++)
            for (dim c = c0; c < std::min(c0 + tile, count); c++)
                std::memcpy(to + size_t(c) * stride + size_t(r) * sizeof(T),
                        from + size_t(r * count + c) * sizeof(T), sizeof(T));
}

} // namespace

void read_transposed(const checkpoint_t &input, size_t entry, uint64_t offset, dim rows, dim columns,
        dim first, dim count, size_t size, void *to, size_t stride) {
    // Some rows at a time: the other half of the room is the result.
    const dim some = std::max(dim(1), dim((size_t(1) << 20) / (size_t(count) * size)));
    std::vector<uint8_t> from(size_t(std::min(some, rows) * count) * size);
    for (dim r0 = 0; r0 < rows; r0 += some) {
        const dim n = std::min(some, rows - r0);
        const auto at = [&](dim r) { return offset + uint64_t(r * columns + first) * size; };
        if (count == columns)
            input.read(entry, at(r0), uint64_t(n * count) * size, from.data());
        else
            for (dim r = 0; r < n; r++)
                input.read(entry, at(r0 + r), uint64_t(count) * size, &from[size_t(r * count) * size]);
        uint8_t *const t = static_cast<uint8_t *>(to) + size_t(r0) * size;
        switch (size) {
        case 1: transpose<uint8_t>(from.data(), n, count, t, stride); break;
        case 2: transpose<uint16_t>(from.data(), n, count, t, stride); break;
        default: transpose<uint32_t>(from.data(), n, count, t, stride); break;
        }
    }
}

dim int4_block(dim group, dim in) {
    for (const dim block : {dim(256), dim(128), dim(64), dim(32)}) {
        // One scale for a whole row: repeated as often as is needed.
        if (group >= in ? block <= std::max(in, dim(32)) : group % block == 0) return block;
    }
    return 0;
}

} // namespace mxdnn_pack
