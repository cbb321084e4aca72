// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking a tensor part by part, with the bytes that the whole would have. A packed matrix is a
// prefix, where there is a global scale, and then panels of columns (doc/layouts.md), so that some columns
// that are packed alone are a piece of it.
#pragma once

#include <cstdint>
#include <functional>

#include "weight_formats.hpp"

namespace weight_formats {

struct parts_t {
    // Of a part on its larger side; a part has 64 columns at least.
    uint64_t bytes = uint64_t(16) << 20;
    // Told of input that is not needed any more.
    std::function<void(const void *bytes, uint64_t size)> used = [](const void *, uint64_t) {};
};

// Takes the next bytes of the result.
using take_t = std::function<void(const void *bytes, uint64_t size)>;

// As pack().
void pack_in_parts(const parts_t &parts, const take_t &take, const format_t &format,
        const mxdnn::engine &engine, const shape_t &shape, mxdnn::memory::data_type type, const void *weights,
        mxdnn::scale_rounding rounding);
// As pack_codes().
void pack_codes_in_parts(const parts_t &parts, const take_t &take, const format_t &format,
        const mxdnn::engine &engine, const shape_t &shape, const void *codes, const void *scales);
// As unpack(); a tensor of no format of the list is unpacked as a whole.
void unpack_in_parts(const parts_t &parts, const take_t &take, const mxdnn::memory::desc &packed,
        const mxdnn::engine &engine, const void *bytes, mxdnn::memory::data_type type);

} // namespace weight_formats
