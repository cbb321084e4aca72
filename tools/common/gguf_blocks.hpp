// SPDX-License-Identifier: Apache-2.0
// What the blocks of GGUF tensors are worth, and which format of mxdnn holds them.
#pragma once

#include <cstdint>

#include "gguf.hpp"
#include "weight_parts.hpp"

namespace gguf {

// A type of blocks whose values are known.
struct blocks_t {
    const char *name; // of the element
    // Writes what a block is worth.
    void (*decode)(const uint8_t *block, float *values);
    // The format that holds the values, or comes nearest.
    weight_formats::format_t (*format)();
    // Writes the codes of a block, its scales and its zero points, as format() has them. Null where values
    // have to be quantised.
    void (*split)(const uint8_t *block, uint8_t *codes, uint8_t *scales, uint8_t *zero_points);
    const char *loss; // what format() does not hold; null where it holds the values as they are
    // Scale codes that a block begins with, and the largest one that MX or NVFP4 gives the same meaning.
    uint8_t scales = 0, last_scale = 0;
};

// Null where elements are no blocks, or their values are not known.
const blocks_t *find_blocks(const element_t &element);

// Elements [first, first + count) of a tensor of blocks, as f32. Throws where a scale has no common meaning.
void read_values(const file_t &file, const tensor_t &tensor, uint64_t first, uint64_t count, float *values);

// A tensor [out, in] or [experts, out, in] of blocks that can be split, as codes of `format`: that of the
// blocks, which a global scale may be added to (weight_formats::under()). File and tensor outlive the result.
weight_formats::read_codes_t codes_of(
        const file_t &file, const tensor_t &tensor, const weight_formats::format_t &format);

} // namespace gguf
