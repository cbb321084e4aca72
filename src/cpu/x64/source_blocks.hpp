// SPDX-License-Identifier: Apache-2.0
// How kernels on tiles read the source and walk through panels.
#pragma once

#include <algorithm>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Sums of so many products of s8 and MXFP4's integers, shifted to fill an s8 (128 * 96 at most), are exact in
// 32 bits.
constexpr int64_t exact_int8_rows = ((int64_t(1) << 31) - 1) / (128 * 96);

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

// Source rows as one stream: a block of rows at a time (the last one has what is left), of those a step of K
// at a time, row by row.
struct source_blocks_t {
    static constexpr int64_t fused_block_rows = 32;
    static constexpr int64_t piece_bytes = 64; // of a row, of a step: as much as tiles take

    const int64_t K;
    const int64_t value_bytes; // of values that are multiplied: bf16, or s8 of one byte
    const int64_t rows;
    const int64_t block; // its rows

    int64_t step() const { return piece_bytes / value_bytes; }
    // Where row r begins, and how far its next piece is from there.
    int64_t first(int64_t r) const {
        const int64_t in_block = r % block;
        return piece_bytes * ((r - in_block) * div_up(K, step()) + in_block);
    }
    int64_t stride(int64_t r) const { return piece_bytes * std::min(block, rows - r / block * block); }
    // f(k, where the values of a step from k on of row r are)
    template <typename F>
    void for_each_piece(int64_t r, F f) const {
        const int64_t some = step(), next = stride(r);
        for (int64_t k = 0, at = first(r); k < K; k += some, at += next) f(k, at);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
