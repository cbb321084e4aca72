// SPDX-License-Identifier: Apache-2.0
// The frame that all x86 layouts share; how the codes of 32 x 16 elements are ordered inside it
// is the business of n16_b4.hpp, n16_b6.hpp and n16_b8.hpp.
//
// A matrix is an optional prefix (64 bytes, the f32 global scale first), then panels of 16
// columns. A panel is a run of K tiles; a tile covers max(128, block) rows, the last one what is
// left. A tile is
//     scales       [row block][16 columns]
//     zero points  [row block][16 columns]
//     zero bytes   up to a multiple of 64
//     codes        [32 rows][16 columns], 64 * bits bytes for every 32 rows
// so that a kernel that walks down a panel reads one ascending stream, whole cache lines at a
// time, and finds the scales of the next 128 rows in one or two lines ahead of their codes.
// Columns past N and rows past K are zero bits.
#pragma once

#include "common/layouts/packed_shape.hpp"

namespace mxdnn {
namespace impl {

struct n16_frame_t {
    static constexpr int64_t columns = 16;  // columns of a panel
    static constexpr int64_t row_step = 32; // K is padded to a multiple of this
    static constexpr int64_t min_tile_rows = 128;
    static constexpr int64_t align = 64;
    static constexpr int64_t prefix_bytes = 64;

    MXDNN_HD static constexpr int64_t tile_rows(const packed_shape_t &s) {
        return s.block > min_tile_rows ? s.block : min_tile_rows;
    }
    MXDNN_HD static constexpr int64_t header_bytes(const packed_shape_t &s, int64_t rows) {
        return round_up(div_up(rows, s.block) * columns * (s.scale_bytes + s.zp_bytes), align);
    }
    MXDNN_HD static constexpr int64_t code_bytes(const packed_shape_t &s, int64_t rows) {
        return round_up(rows, row_step) * columns * s.bits / 8;
    }
    MXDNN_HD static constexpr int64_t tile_bytes(const packed_shape_t &s, int64_t rows) {
        return header_bytes(s, rows) + code_bytes(s, rows);
    }
    MXDNN_HD static constexpr int64_t panel_bytes(const packed_shape_t &s) {
        const int64_t rows = tile_rows(s), tail = s.K % rows;
        return s.K / rows * tile_bytes(s, rows) + (tail ? tile_bytes(s, tail) : 0);
    }
    MXDNN_HD static constexpr int64_t matrix_bytes(const packed_shape_t &s) {
        return prefix(s) + div_up(s.N, columns) * panel_bytes(s);
    }
    MXDNN_HD static constexpr int64_t prefix(const packed_shape_t &s) { return s.global ? prefix_bytes : 0; }

    // The first byte of the tile with row k, in the panel with column n.
    MXDNN_HD static constexpr int64_t tile(const packed_shape_t &s, int64_t k, int64_t n) {
        const int64_t rows = tile_rows(s);
        return prefix(s) + n / columns * panel_bytes(s) + k / rows * tile_bytes(s, rows);
    }
    // The number of rows in the tile of row k.
    MXDNN_HD static constexpr int64_t rows_of_tile(const packed_shape_t &s, int64_t k) {
        const int64_t rows = tile_rows(s), first = k / rows * rows;
        return s.K - first < rows ? s.K - first : rows;
    }
    // The first byte of the scale, and of the zero point, of element (k, n).
    MXDNN_HD static constexpr int64_t scale(const packed_shape_t &s, int64_t k, int64_t n) {
        return tile(s, k, n) + (k % tile_rows(s) / s.block * columns + n % columns) * s.scale_bytes;
    }
    MXDNN_HD static constexpr int64_t zero_point(const packed_shape_t &s, int64_t k, int64_t n) {
        return tile(s, k, n) + div_up(rows_of_tile(s, k), s.block) * columns * s.scale_bytes
               + (k % tile_rows(s) / s.block * columns + n % columns) * s.zp_bytes;
    }
    // The first byte of the codes in the tile of (k, n).
    MXDNN_HD static constexpr int64_t codes(const packed_shape_t &s, int64_t k, int64_t n) {
        return tile(s, k, n) + header_bytes(s, rows_of_tile(s, k));
    }
};

} // namespace impl
} // namespace mxdnn
