// SPDX-License-Identifier: Apache-2.0
// Reading and writing one code of a plain row: little-endian in bytes and in bits, rows start on a byte.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {

using element_packing_t = mxdnn_element_packing_t;

// Bits from one code to the next. 6-bit codes take a byte each, or are dense: four in three bytes. 4-bit
// codes are always two in a byte, the even column in the low half.
MXDNN_HD constexpr int storage_bits(int code_bits, element_packing_t packing) {
    return code_bits == 6 && packing == mxdnn_element_packing_bytes ? 8 : code_bits;
}

MXDNN_HD constexpr int64_t plain_row_bytes(int64_t cols, int code_bits, element_packing_t packing) {
    return div_up(cols * storage_bits(code_bits, packing), 8);
}

// Only bytes that contain bits of the code are read or written.
MXDNN_HD constexpr uint32_t get_code(
        const uint8_t *row, int64_t col, int code_bits, element_packing_t packing) {
    const int64_t bit = col * storage_bits(code_bits, packing);
    const uint8_t *p = row + bit / 8;
    const int shift = int(bit % 8);
    uint64_t window = 0;
    for (int i = 0; i * 8 < shift + code_bits; i++) window |= uint64_t(p[i]) << (8 * i);
    return uint32_t((window >> shift) & ((uint64_t(1) << code_bits) - 1));
}

// Bits of neighbouring codes do not change. The two upper bits of a 6-bit code in its own byte become 0.
MXDNN_HD constexpr void set_code(
        uint8_t *row, int64_t col, int code_bits, element_packing_t packing, uint32_t code) {
    const int width = storage_bits(code_bits, packing);
    const int64_t bit = col * width;
    uint8_t *p = row + bit / 8;
    const int shift = int(bit % 8);
    const uint64_t mask = ((uint64_t(1) << width) - 1) << shift;
    const uint64_t value = (code & ((uint64_t(1) << code_bits) - 1)) << shift;
    for (int i = 0; i * 8 < shift + width; i++)
        p[i] = uint8_t((p[i] & ~(mask >> (8 * i))) | (value >> (8 * i)));
}

// The same for row `row` of a matrix whose rows begin row_bytes apart.
MXDNN_HD constexpr uint32_t get_code(const uint8_t *base, int64_t row, int64_t col, int64_t row_bytes,
        int code_bits, element_packing_t packing) {
    return get_code(base + row * row_bytes, col, code_bits, packing);
}

MXDNN_HD constexpr void set_code(uint8_t *base, int64_t row, int64_t col, int64_t row_bytes, int code_bits,
        element_packing_t packing, uint32_t code) {
    set_code(base + row * row_bytes, col, code_bits, packing, code);
}

} // namespace impl
} // namespace mxdnn
