// SPDX-License-Identifier: Apache-2.0
// How kernels on tiles read the source and walk through panels.
#pragma once

#include <algorithm>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Sums of this many products of s8 and MXFP4's integers, which are shifted to fill an s8 (128 * 96 at most),
// are exact in 32 bits.
constexpr int64_t exact_int8_rows = ((int64_t(1) << 31) - 1) / (128 * 96);

// Source rows of one tile.
constexpr int tile_source_rows = 16;

// The number of panels that a kernel with sums in tiles processes together, for so many rows. With more
// panels every source tile is loaded less often, but there are only eight tiles. Further panels are processed
// afterwards.
constexpr int walked_panels(int64_t rows) {
    return rows <= tile_source_rows ? 4 : rows <= 3 * tile_source_rows ? 2 : 1;
}

// The number of panels of a call that decodes. Groups of one call share its beginning and its end.
constexpr int call_panels(int64_t rows) { return rows <= 3 * tile_source_rows ? 4 : 1; }

// The number of cache lines of later panels that each of `calls` calls for the same panels prefetches in a
// step. In a step the panels of a call have `step_bytes`. A single call of more than 48 rows prefetches about
// 60 % of the lines; other lines are fetched just before they are decoded. Memory and the source, which is in
// L2, are waited for in turn, and prefetching all lines would take longer than prefetching none. Two or more
// calls together prefetch at most 90 %, or a little more. Calls with fewer rows wait for memory in any case.
constexpr int next_panel_lines(int64_t step_bytes, int64_t rows, int64_t calls) {
    if (calls == 0 || (calls == 1 && walked_panels(rows) > 1)) return 0;
    return int((step_bytes * (calls == 1 ? 6 : 9) / 10 / calls + 16) / 64);
}

// Source rows as one stream. It has one block of rows after the other (the last one has the rest), in a block
// one step of K after the other, and in a step the rows. A call multiplies the rows of a block. If a rest is
// part of the block before it, two calls multiply half of that block each.
struct source_blocks_t {
    static constexpr int64_t fused_block_rows = 32;
    static constexpr int64_t piece_bytes = 64; // bytes of a row in a step, as tiles read them

    const int64_t K;
    const int64_t value_bytes; // bytes of a value: bf16, or s8 with one byte
    const int64_t rows;
    const int64_t block;      // rows of a block
    const int64_t joined = 0; // a rest of at most so many rows is part of the block before it

    int64_t step() const { return piece_bytes / value_bytes; }
    // The beginning of row r, and the distance of its next piece.
    int64_t first(int64_t r) const {
        const int64_t in_block = r - block_of(r);
        return piece_bytes * ((r - in_block) * div_up(K, step()) + in_block);
    }
    int64_t stride(int64_t r) const { return piece_bytes * rows_of_block(block_of(r)); }
    // The number of rows of the call that begins with row r.
    int64_t call_rows(int64_t r) const {
        const int64_t begin = block_of(r), n = rows_of_block(begin),
                      half = round_up((block + joined) / 2, int64_t(tile_source_rows));
        return n > block && r == begin ? half : begin + n - r;
    }
    // Calls f(k, address of the values of the step from k on, of row r).
    template <typename F>
    void for_each_piece(int64_t r, F f) const {
        const int64_t some = step(), next = stride(r);
        for (int64_t k = 0, at = first(r); k < K; k += some, at += next) f(k, at);
    }

private:
    // The first row of the block of row r.
    int64_t block_of(int64_t r) const {
        const int64_t begin = r / block * block;
        return begin > 0 && rows - begin <= joined ? begin - block : begin;
    }
    int64_t rows_of_block(int64_t begin) const {
        return rows - begin <= block + joined ? rows - begin : block;
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
