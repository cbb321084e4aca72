// SPDX-License-Identifier: Apache-2.0
// Reorders as the tile kernels see them: matrices of n columns whose blocks run down k, whichever of a
// tensor's last two dims that is.
#pragma once

#include "common/layouts/packed_shape.hpp"
#include "common/quant.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// The tile of a CTA: 64 columns with 128 bytes of codes each. A code has 4 or 8 bits (6-bit codes take 8).
constexpr int tile_columns = 64;
MXDNN_HD constexpr int tile_rows(int width) { return 1024 / width; }
constexpr uint32_t max_grid_y = 65535; // further tiles are found along the grid's z

// Scales or zero points of a plain side, `bytes` each; data is null if there are none.
struct tile_params_t {
    uint8_t *data;
    int64_t batch_step, n_step, k_step; // bytes; k_step from block to block
    int64_t swizzle_cols;               // blocks along k of the 128x4 order; 0: linear
};

// The layout that 4-bit codes of a packed side are in: n64_b4, n64_i4 or n64_f4.
enum class nibbles_t : uint8_t { b4, i4, f4 };

struct tile_side_t {
    data_type_t dt;
    uint8_t *data;
    int64_t batch_step;
    // plain
    int64_t line_step;  // bytes between lines of contiguous elements
    bool lines_along_k; // otherwise along n
    bool aligned;       // every line begins at a multiple of 16 bytes
    tile_params_t scales, zero_points;
    float *global; // null: none, or packed
    int64_t global_step;
    // packed: n64_frame_t's numbers
    bool packed;
    int64_t panel_bytes;
    int tile_bytes, prefix_bytes, header_bytes, tile_shift; // a tile has 1 << tile_shift rows
    nibbles_t nibbles;                                      // 4-bit codes
};

struct tile_args_t {
    tile_side_t src, dst;
    int64_t K, N, batch;
    int64_t k_tiles, n_tiles;
    int block_shift, scale_bytes, zp_bytes; // of the quantised side; a block has 1 << block_shift rows
    data_type_t scale_dt, zp_dt;
    zero_point_kind_t zp;
    mxdnn_scale_rounding_t rounding;
    bool two_levels;    // with a global scale
    const float *given; // that global scale, if the caller gives it
    int64_t given_step; //
    uint32_t *amax;     // otherwise the largest magnitudes that it is computed from
    int amax_parts;     // number of parts of each matrix
    uint8_t *clear;     // bytes of padding, which become zero
    int64_t clear_bytes;
    // For packed int4 that becomes f16: [panels], not 0 if the panel may have weights that f16 does not
    // represent within 2^-11 of themselves; null: not wanted. Such weights come from scales and floating
    // zeros below these values.
    int32_t *left;
    float least_scale, least_zero;
};

// This many CTAs search for the largest magnitude of each matrix of a batch; and the words of memory for it.
constexpr int amax_parts(int64_t batch) {
    constexpr int64_t all = 512;
    return int(batch < 1 ? all : batch > all ? 1 : all / batch);
}
constexpr int64_t amax_words(int64_t batch) { return batch * amax_parts(batch); }

// One source to two sides, whose blocks run along different dims: k of one is n of the other. A CTA has as
// many of each as a tile of bytes has rows.
struct both_axes_args_t {
    tile_args_t first, second;
};
constexpr int both_axes_rows = tile_rows(8);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
