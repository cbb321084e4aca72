// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking a tensor part by part, with the bytes that the whole would have. A packed matrix is a
// prefix, where there is a global scale, and then panels of columns (doc/reference/layouts.md), so that some
// columns that are packed alone are a piece of it.
#pragma once

#include <cstdint>
#include <functional>

#include "weight_formats.hpp"

namespace weight_formats {

// Of a part on its larger side; a part has 64 columns at least.
constexpr uint64_t default_part_bytes = uint64_t(16) << 20;

// Copies bytes of the input from an offset on.
using read_t = std::function<void(uint64_t offset, uint64_t size, void *buffer)>;
// Takes the next bytes of the result.
using take_t = std::function<void(const void *bytes, uint64_t size)>;

// As pack(). Tensors without elements have no bytes and cost no time, however many matrices they are.
void pack_in_parts(uint64_t part_bytes, const take_t &take, const format_t &format,
        const mxdnn::engine &engine, const shape_t &shape, mxdnn::memory::data_type type,
        const read_t &weights, mxdnn::scale_rounding rounding = default_rounding);
// As pack_codes().
void pack_codes_in_parts(uint64_t part_bytes, const take_t &take, const format_t &format,
        const mxdnn::engine &engine, const shape_t &shape, const read_t &codes, const read_t &scales);
// As unpack(); a tensor of no format of the list, or of more than three dimensions, is unpacked as a whole.
void unpack_in_parts(uint64_t part_bytes, const take_t &take, const mxdnn::memory::desc &packed,
        const mxdnn::engine &engine, const read_t &bytes, mxdnn::memory::data_type type);

} // namespace weight_formats
