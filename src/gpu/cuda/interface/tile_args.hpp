// SPDX-License-Identifier: Apache-2.0
// Reorders as the tile kernels see them: matrices of n columns whose blocks run down k, whichever of a
// tensor's last two dims that is.
#pragma once

#include "common/layouts/packed_shape.hpp"
#include "common/quant.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// A CTA's tile: 64 columns, 128 bytes of codes of each, 4 or 8 bits (6-bit codes too) wide.
constexpr int tile_columns = 64;
MXDNN_HD constexpr int tile_rows(int width) { return 1024 / width; }
constexpr uint32_t max_grid_y = 65535; // further tiles are found along the grid's z

// Scales or zero points of a plain side, `bytes` each; data is null where there are none.
struct tile_params_t {
    uint8_t *data;
    int64_t batch_step, n_step, k_step; // bytes; k_step from block to block
    int64_t swizzle_cols;               // blocks along k of the 128x4 order; 0: linear
};

struct tile_side_t {
    data_type_t dt;
    uint8_t *data;
    int64_t batch_step;
    // plain
    int64_t line_step;  // bytes between lines of contiguous elements
    bool lines_along_k; // else along n
    bool aligned;       // every line starts on 16 bytes
    tile_params_t scales, zero_points;
    float *global; // null: none, or packed
    int64_t global_step;
    // packed: n64_frame_t's numbers
    bool packed;
    int64_t panel_bytes;
    int tile_bytes, prefix_bytes, header_bytes, tile_shift; // a tile has 1 << tile_shift rows
    bool codes_in_order;                                    // those of 4 bits as in n64_i4, not n64_b4
};

struct tile_args_t {
    tile_side_t src, dst;
    int64_t K, N, batch;
    int64_t k_tiles, n_tiles;
    int block_shift, scale_bytes, zp_bytes; // of the quantised side; a block has 1 << block_shift rows
    data_type_t scale_dt, zp_dt;
    zero_point_kind_t zp;
    mxdnn_scale_rounding_t rounding;
    bool two_levels;    // under a global scale
    const float *given; // that global scale, where it is the caller's
    int64_t given_step; //
    uint32_t *amax;     // else the largest magnitudes that it is made from
    int amax_parts;     // of so many parts of each matrix
    uint8_t *clear;     // bytes that padding makes zero
    int64_t clear_bytes;
    // Of packed int4 that becomes f16: [panels] not 0 where the panel may have weights that f16 does not hold
    // to 2^-11 of themselves; null: nobody asks. Scales and floating zeros have such ones below these.
    int32_t *left;
    float least_scale, least_zero;
};

// So many CTAs look for the largest magnitude of each matrix of a batch; words of memory that takes.
constexpr int amax_parts(int64_t batch) {
    constexpr int64_t all = 512;
    return int(batch < 1 ? all : batch > all ? 1 : all / batch);
}
constexpr int64_t amax_words(int64_t batch) { return batch * amax_parts(batch); }

// One source to two sides, whose blocks run along different dims: k of the one is n of the other. A CTA has
// as many of each as a tile of bytes has rows.
struct both_axes_args_t {
    tile_args_t first, second;
};
constexpr int both_axes_rows = tile_rows(8);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
