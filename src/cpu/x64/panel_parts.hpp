// SPDX-License-Identifier: Apache-2.0
// How fused kernels divide K, and the order in which they read the source.
#pragma once

#include <algorithm>

#include "common/layouts/n16.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Sums of so many products of s8 and MXFP4's integers, shifted to fill an s8 (128 * 96 at most), are exact in
// f32.
constexpr int64_t exact_int8_rows = (1 << 24) / (128 * 96);

// Parts of K: whole tiles of the weights' layout each; the last one has what is left.
struct panel_parts_t {
    static constexpr int64_t step_bytes = 64; // of a column or of a row of source: as much as tiles take

    // Values that are multiplied are bf16, or s8 of one byte.
    panel_parts_t(const packed_shape_t &s, int64_t part_rows, int64_t value_bytes = 2)
        : step(step_bytes / value_bytes), rows(part_rows), tile_rows(n16_frame_t::tile_rows(s)),
          count(std::max<int64_t>(div_up(s.K, part_rows), 1)), last_rows(s.K - (count - 1) * rows),
          tile_bytes(n16_frame_t::tile_bytes(s, tile_rows)) {}

    const int64_t step; // of K
    const int64_t rows; // of every part but the last
    const int64_t tile_rows;
    const int64_t count;
    const int64_t last_rows;
    const int64_t tile_bytes;

    int64_t value_bytes() const { return step_bytes / step; }
    int64_t tiles() const { return rows / tile_rows; } // of every part but the last
    int64_t code_bytes() const { return tiles() * tile_bytes; }
    int64_t steps(int64_t part) const { return div_up(part + 1 < count ? rows : last_rows, step); }
    // A decoded panel of the largest part.
    int64_t panel_bytes() const { return steps(0) * step_bytes * n16_frame_t::columns; }
};

// Rows of source that one tile takes.
constexpr int tile_source_rows = 16;

// Panels that a kernel that keeps sums in tiles walks at once, for so many rows: with more of them every tile
// of the source is loaded less often, and there are eight tiles in all. More panels are one walk after the
// other.
constexpr int walked_panels(int64_t rows) {
    return rows <= tile_source_rows ? 4 : rows <= 3 * tile_source_rows ? 2 : 1;
}

// Lines of the next panels that each of `calls` calls for the same panels fetches in a step, in which all
// those panels have `step_bytes`. A single call of more than 48 rows fetches about 60 % of them, other lines
// just before they are decoded: memory and the source, which is in L2, are waited for one after the other,
// and with all lines it takes longer than with none. Two calls or more fetch at most 90 %, or a little more,
// between them. Fewer rows wait for memory anyway.
constexpr int next_panel_lines(int64_t step_bytes, int64_t rows, int64_t calls) {
    if (calls == 0 || (calls == 1 && walked_panels(rows) > 1)) return 0;
    return int((step_bytes * (calls == 1 ? 6 : 9) / 10 / calls + 16) / 64);
}

// Source rows as one stream: part by part, in a part a block of rows at a time (the last one has what is
// left), of those a step of K at a time, row by row.
struct source_blocks_t {
    static constexpr int64_t block_rows = 32; // of fused kernels
    static constexpr int64_t piece_bytes = panel_parts_t::step_bytes;

    const panel_parts_t &parts;
    const int64_t rows;
    const int64_t block = block_rows;

    int64_t part_bytes() const { return piece_bytes * parts.steps(0) * rows; } // of every part but the last
    // Where row r of a part begins, and how far its next piece is from there.
    int64_t first(int64_t r, int64_t part) const {
        const int64_t in_block = r % block;
        return part * part_bytes() + piece_bytes * ((r - in_block) * parts.steps(part) + in_block);
    }
    int64_t stride(int64_t r) const { return piece_bytes * std::min(block, rows - r / block * block); }
    // f(k, where the values of a step from k on of row r are)
    template <typename F>
    void for_each_piece(int64_t r, F f) const {
        const int64_t next = stride(r);
        for (int64_t part = 0; part < parts.count; part++) {
            int64_t at = first(r, part), k = part * parts.rows;
            for (int64_t i = parts.steps(part); i > 0; i--, at += next, k += parts.step) f(k, at);
        }
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
