// SPDX-License-Identifier: Apache-2.0
// One side of a reorder, source or destination, as lines along an axis: where codes, values, scales and zero
// points of a run of lines and positions lie, in plain and in packed memory.
#pragma once

#include <algorithm>

#include "common/layouts/layout_list.hpp"
#include "common/primitive.hpp"
#include "cpu/x64/reorder/reorder_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// The positions of tiles in a packed matrix.
struct panel_shape_t {
    int columns = 0; // of a panel
    int tile_rows = 0;
    int64_t prefix = 0, panel_bytes = 0, tile_bytes = 0; // bytes of whole tiles
    // For a whole tile, and for a partial last one: bytes before the codes, and the number of blocks with
    // room.
    int header_bytes = 0, last_header_bytes = 0;
    int header_blocks = 0, last_header_blocks = 0;
};

// What is known about a side when the descriptor is created.
struct reorder_side_conf_t {
    int arg = 0; // MXDNN_ARG_SRC or MXDNN_ARG_DST
    int ndims = 0, line_dim = 0, pos_dim = 0;
    data_type_t dt = mxdnn_data_type_undef;
    int bits = 0; // of a value or a code
    bool quantised = false, packed = false;
    block_format_t format; // if quantised
    packed_shape_t shape;  // if packed
    panel_shape_t panels;
    const panel_codec_t *codec = nullptr;
    int64_t packed_stride = 0; // bytes from one batch entry to the next
    // plain:
    bool along_line = false; // positions are contiguous; otherwise lines are
    code_storage_t storage = code_storage_t::bytes;
    bool swizzled = false; // scales are in the 128x4 order
    mxdnn_quantization_mode_t mode = mxdnn_quantization_mode_undef,
                              global_mode = mxdnn_quantization_mode_undef;

    // Whether it is plain with contiguous lines.
    bool by_rows() const { return !packed && !along_line; }
    // Positions of a packed tile. Blocks do not cross tiles.
    int tile_rows() const { return panels.tile_rows; }
};

// Lines run along the dim `axis_from_end` (1: columns, 2: rows).
reason_t configure_side(reorder_side_conf_t &c, const reorder_kernels_t &k, const problem_t &p, bool is_src,
        int axis_from_end);

// A side of one execution. set_batch() selects the matrix.
class reorder_side_t {
public:
    reorder_side_t(const reorder_side_conf_t &conf, const exec_ctx_t &ctx);
    void set_batch(const dim_t *idx);

    // Values in a buffer, of a matrix with the dims of `md`: the buffer has those from (line, pos) on.
    reorder_side_t(const reorder_side_conf_t &conf, const memory_desc_t &md, uint8_t *buffer,
            int64_t line_bytes, int64_t pos_bytes)
        : c_(conf), md_(&md), data_(buffer), matrix_(buffer), is_buffer_(true), stored_bits_(conf.bits),
          line_bytes_(line_bytes), pos_bytes_(pos_bytes) {}
    void set_origin(dim_t line, dim_t pos) { matrix_ = data_ - line * line_bytes_ - pos * pos_bytes_; }

    const reorder_side_conf_t &conf() const { return c_; }
    dim_t lines() const { return md_->dims[c_.line_dim]; }
    dim_t length() const { return md_->dims[c_.pos_dim]; }

    // For plain sides: the byte of the element, and the distance to its neighbours. The element begins on a
    // byte if its index along the contiguous dim is a multiple of 16.
    uint8_t *at(dim_t line, dim_t pos) const {
        return c_.along_line ? matrix_ + line * line_bytes_ + pos * stored_bits_ / 8
                             : matrix_ + pos * pos_bytes_ + line * stored_bits_ / 8;
    }
    int64_t line_bytes() const { return line_bytes_; }
    int64_t pos_bytes() const { return pos_bytes_; }
    // For packed sides: the tile of (position, line), and the bytes of its codes for so many positions.
    uint8_t *tile(dim_t line, dim_t pos) const {
        const panel_shape_t &p = c_.panels;
        return matrix_ + p.prefix + line / p.columns * p.panel_bytes + pos / p.tile_rows * p.tile_bytes;
    }
    int columns() const { return c_.panels.columns; }
    int tile_rows() const { return c_.panels.tile_rows; }
    int64_t tile_bytes() const { return c_.panels.tile_bytes; } // of a whole one
    int64_t panel_bytes() const { return c_.panels.panel_bytes; }
    // For a tile with so many rows.
    int header_bytes(int rows) const {
        return rows == c_.panels.tile_rows ? c_.panels.header_bytes : c_.panels.last_header_bytes;
    }
    // The codes of so many positions from (position, line) on: whole tiles, or a part of one.
    code_tiles_t codes(dim_t line, dim_t pos, int length) const {
        const int rows = std::min(length, c_.panels.tile_rows);
        return {tile(line, pos) + header_bytes(rows), int(round_up(length, c_.codec->row_step)),
                int(round_up(rows, c_.codec->row_step)), c_.panels.tile_bytes};
    }
    uint8_t *matrix() const { return matrix_; }

    // Scales and zero points of `n` lines and the blocks of `length` positions from `pos` on.
    void read_params(const reorder_kernels_t &k, dim_t line, int n, dim_t pos, int length,
            const line_params_t &to) const;
    void write_params(const reorder_kernels_t &k, dim_t line, int n, dim_t pos, int length,
            const line_params_t &from, write_t how) const;
    // Prefetches those of lines. They are few bytes of a cache line for each line, and writing waits for the
    // line as reading does.
    void fetch_params(dim_t line, int n, dim_t pos) const;

    // The global scale; 1 if there is none.
    float global() const;
    void set_global(float g) const;
    uint32_t *global_bits() const;
    // Whether it belongs to this matrix alone.
    bool has_global_of_its_own() const { return c_.packed || global_->md.dims[0] != 1; }

private:
    // Scales or zero points of a tile, [block][columns]. Those of blocks of 16 have one byte, others up to
    // four.
    using param_rows_t = uint8_t[512];
    static_assert(
            sizeof(param_rows_t) >= n64_frame_t::min_tile_rows / 16 * n64_frame_t::columns
                    && sizeof(param_rows_t) >= 4 * n64_frame_t::min_tile_rows / 32 * n64_frame_t::columns
                    && sizeof(param_rows_t) >= n16_frame_t::min_tile_rows / 16 * n16_frame_t::columns
                    && sizeof(param_rows_t) >= 4 * n16_frame_t::min_tile_rows / 32 * n16_frame_t::columns,
            "");
    int header_blocks(int rows) const {
        return rows == c_.panels.tile_rows ? c_.panels.header_blocks : c_.panels.last_header_blocks;
    }
    struct param_view_t {
        const memory_desc_t *md = nullptr;
        uint8_t *data = nullptr, *matrix = nullptr;
        int bytes = 0;
        int64_t line_bytes = 0, block_bytes = 0;
    };
    void bind(param_view_t &v, const memory_t *m, int bytes) const;
    void select(param_view_t &v) const;
    void copy_params(const reorder_kernels_t &k, const param_view_t &v, dim_t line, int n, dim_t block,
            int blocks, uint8_t *params, int params_pitch, bool write) const;
    template <typename F>
    void for_tiles(dim_t line, int n, dim_t pos, int length, F &&body) const;
    void copy_swizzled(
            dim_t line, int n, dim_t block, int blocks, uint8_t *params, int params_pitch, bool write) const;

    const reorder_side_conf_t &c_;
    const memory_desc_t *md_; // with runtime dims known
    uint8_t *data_, *matrix_;
    bool is_buffer_ = false;
    int stored_bits_ = 8;
    int64_t line_bytes_ = 0, pos_bytes_ = 0;
    param_view_t scales_, zero_points_;
    const memory_t *global_ = nullptr;
    dim_t batch_[max_ndims] = {};
    dim_t batch_index_ = 0;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
