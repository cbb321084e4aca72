// SPDX-License-Identifier: Apache-2.0
// The frame that all CUDA layouts share; how the codes of a tile are ordered inside it is the
// business of n64_b4.hpp, n64_i4.hpp, n64_b6.hpp and n64_b8.hpp.
//
// A matrix is an optional prefix (64 bytes, the f32 global scale first), then panels of 64
// columns: the M side of one wgmma, whose A operand the weights are. A panel is a run of K tiles
// of max(64, block) rows, the last one what is left. A tile is
//     scales       64 per row block
//     zero points  64 per row block
//     zero bytes   up to a multiple of 64
//     codes        64 * bits / 8 bytes for every row, rows padded to whole steps
// Scales stand in the order in which the lanes of a warp want them: for each 16 columns, the
// eight pairs of columns (c, c + 8) that one lane multiplies; within a pair block after block,
// (c, c + 8) of a block side by side. A tile of MXFP4 is 128 + 2048 bytes, so a panel streams
// through one bulk copy after another, whatever its K.
// Columns past N and rows past K are zero bits; a tile's scales are complete even where K ends.
#pragma once

#include "common/layouts/packed_shape.hpp"

namespace mxdnn {
namespace impl {

struct n64_frame_t {
    static constexpr int64_t columns = 64; // columns of a panel
    static constexpr int64_t min_tile_rows = 64;
    static constexpr int64_t align = 64;
    static constexpr int64_t prefix_bytes = 64;

    MXDNN_HD static constexpr int64_t tile_rows(const packed_shape_t &s) {
        return s.block > min_tile_rows ? s.block : min_tile_rows;
    }
    // K is padded to a multiple of this: the rows that a 16-byte load of every thread covers.
    MXDNN_HD static constexpr int64_t row_step(const packed_shape_t &s) { return s.bits == 8 ? 32 : 64; }
    MXDNN_HD static constexpr int64_t blocks(const packed_shape_t &s) { return tile_rows(s) / s.block; }
    MXDNN_HD static constexpr int64_t header_bytes(const packed_shape_t &s) {
        return round_up(blocks(s) * columns * (s.scale_bytes + s.zp_bytes), align);
    }
    MXDNN_HD static constexpr int64_t tile_bytes(const packed_shape_t &s, int64_t rows) {
        return header_bytes(s) + round_up(rows, row_step(s)) * columns * s.bits / 8;
    }
    MXDNN_HD static constexpr int64_t panel_bytes(const packed_shape_t &s) {
        const int64_t rows = tile_rows(s), tail = s.K % rows;
        return s.K / rows * tile_bytes(s, rows) + (tail ? tile_bytes(s, tail) : 0);
    }
    MXDNN_HD static constexpr int64_t prefix(const packed_shape_t &s) { return s.global ? prefix_bytes : 0; }
    MXDNN_HD static constexpr int64_t matrix_bytes(const packed_shape_t &s) {
        return prefix(s) + div_up(s.N, columns) * panel_bytes(s);
    }

    // The first byte of the tile with row k, in the panel with column n.
    MXDNN_HD static constexpr int64_t tile(const packed_shape_t &s, int64_t k, int64_t n) {
        const int64_t rows = tile_rows(s);
        return prefix(s) + n / columns * panel_bytes(s) + k / rows * tile_bytes(s, rows);
    }
    // The position of a scale or zero point among those of its tile.
    MXDNN_HD static constexpr int64_t place(const packed_shape_t &s, int64_t k, int64_t n) {
        const int64_t column = n % columns, pair = column / 16 * 8 + column % 8;
        return (pair * blocks(s) + k % tile_rows(s) / s.block) * 2 + column / 8 % 2;
    }
    MXDNN_HD static constexpr int64_t scale(const packed_shape_t &s, int64_t k, int64_t n) {
        return tile(s, k, n) + place(s, k, n) * s.scale_bytes;
    }
    MXDNN_HD static constexpr int64_t zero_point(const packed_shape_t &s, int64_t k, int64_t n) {
        return tile(s, k, n) + blocks(s) * columns * s.scale_bytes + place(s, k, n) * s.zp_bytes;
    }
    // The first byte of the step of codes with (k, n).
    MXDNN_HD static constexpr int64_t codes(const packed_shape_t &s, int64_t k, int64_t n) {
        return tile(s, k, n) + header_bytes(s)
               + k % tile_rows(s) / row_step(s) * row_step(s) * columns * s.bits / 8;
    }
};

// Where the tensor cores of sm_80 and later expect element (row, column) of a 64 x 16 tile A: the thread of
// the warpgroup, one of its four registers, and one half of that register (PTX ISA, fragments of mma.m16n8k16
// and wgmma.m64nNk16). Rows of A are columns n of the weights.
struct n64_fragment_t {
    int thread, reg, half;
};
MXDNN_HD constexpr n64_fragment_t n64_fragment(int64_t k, int64_t n) {
    const int column = int(n % 64), row = int(k % 16);
    return {column / 16 * 32 + column % 8 * 4 + row % 8 / 2, column / 8 % 2 + row / 8 * 2, row % 2};
}

} // namespace impl
} // namespace mxdnn
