// SPDX-License-Identifier: Apache-2.0
// Between values and codes by the kernels for panels: to and from lines of plain codes, and panels of another
// layout than theirs by way of lines or packed tiles in cache.
#include "cpu/x64/reorder/reorder_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

int reorder_worker_t::code_lines(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next) {
    if (v.rows % 64 != 0) return 0;
    const reorder_side_t &codes = c_.dst.quantised ? dst_ : src_;
    const block_format_t &f = codes.conf().format;
    const line_params_t params = {scales_, f.zp_bytes ? zps_ : nullptr, v.lines};
    if (c_.dst.quantised) {
        k_.quantise_code_lines(
                f, v, dst_.global(), params, dst_.at(line, pos), dst_.line_bytes(), how_, &later_);
        dst_.write_params(k_, line, v.lines, pos, v.rows, params, how_);
    } else {
        src_.read_params(k_, line, v.lines, pos, v.rows, params);
        k_.dequantise_code_lines(f, src_.at(line, pos), src_.line_bytes(), src_.at(next.line, next.pos),
                params, src_.global(), v, how_);
    }
    return v.lines;
}

void reorder_worker_t::code_panel(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next) {
    constexpr int some = 2 * reorder_lines; // quantised together
    const bool quantises = c_.dst.quantised;
    const reorder_side_t &panel = quantises ? dst_ : src_;
    const block_format_t &f = panel.conf().format;
    const int pitch = v.rows * halves_of_code(f) / 2;
    line_params_t params = {scales_, f.zp_bytes ? zps_ : nullptr, v.lines};
    if (!quantises) {
        panel_to_lines(panel, line, pos, v.lines, v.rows, pitch, &next);
        src_.read_params(k_, line, v.lines, pos, v.rows, params);
        return k_.dequantise_code_lines(f, codes_, pitch, codes_, params, src_.global(), v, how_);
    }
    for (int l = 0; l < v.lines; l += some) {
        panels_values_t part = v;
        part.data = src_.at(line + l, pos);
        part.lines = some;
        if (l + some < v.lines) part.next = src_.at(line + l + some, pos);
        const line_params_t params_of_part = {params.scales + l * f.scale_bytes,
                f.zp_bytes ? params.zero_points + l * f.zp_bytes : nullptr, v.lines};
        k_.quantise_code_lines(
                f, part, dst_.global(), params_of_part, codes_ + l * pitch, pitch, write_t::cached, nullptr);
    }
    lines_to_panel(line, pos, v.lines, v.rows, pitch);
    dst_.write_params(k_, line, v.lines, pos, v.rows, params, how_);
}

void reorder_worker_t::lines_to_panel(dim_t line, dim_t pos, int lines, int rows, int pitch) {
    const panel_codec_t &codec = *c_.dst.codec;
    const int halves = codec.bits == 4 ? 1 : 2, step = dst_.tile_rows();
    for (int l = 0; l < lines; l += codec.columns)
        for (int i = 0; i < rows; i += step)
            pack_lines(codec, codes_ + l * pitch + i * halves / 2, pitch,
                    dst_.codes(line + l, pos + i, std::min(step, rows - i)), 0, how_);
}

void reorder_worker_t::panel_to_lines(const reorder_side_t &side, dim_t line, dim_t pos, int lines, int rows,
        int pitch, const item_t *next) {
    const panel_codec_t &codec = *side.conf().codec;
    const int halves = codec.bits == 4 ? 1 : 2, step = side.tile_rows();
    for (int l = 0; l < lines; l += codec.columns)
        for (int i = 0; i < rows; i += step) {
            if (next) fetch(side.tile(next->line + l, next->pos + i), side.tile_bytes());
            unpack_lines(codec, side.codes(line + l, pos + i, step), 0, codes_ + l * pitch + i * halves / 2,
                    pitch);
        }
}

void reorder_worker_t::turn_panels(const panels_values_t &v, dim_t line, dim_t pos) {
    const bool quantises = c_.dst.quantised;
    const reorder_side_t &panels = quantises ? dst_ : src_;
    const panel_codec_t &tiles = *c_.tile_codec;
    const block_format_t &f = panels.conf().format;
    const int pitch = v.rows * halves_of_code(f) / 2, blocks = v.rows / f.block, columns = panels.columns();
    const int header_bytes = int(n16_frame_t::header_bytes(c_.tile, v.rows)),
              zps_at = blocks * reorder_lines * f.scale_bytes;
    const int64_t tile_bytes = n16_frame_t::tile_bytes(c_.tile, v.rows);
    const line_params_t params = {scales_, f.zp_bytes ? zps_ : nullptr, columns};
    // Calls body(tile, line of the panel) for the tiles of a panel.
    const auto for_tiles_of = [&](int l, auto &&body) {
        for (int j = 0; j < columns; j += reorder_lines)
            body(tiles_ + (l + j) / reorder_lines * tile_bytes, j);
    };
    if (quantises)
        k_.quantise_panels(f, v, dst_.global(), tiles_, tile_bytes, header_bytes, write_t::cached, later_);
    for (int l = 0; l < v.lines; l += columns) {
        if (quantises) {
            for_tiles_of(l, [&](uint8_t *tile, int j) {
                unpack_lines(tiles, one_tile(tile + header_bytes, v.rows), 0, codes_ + j * pitch, pitch);
                tiles.unpack_params(f.scale_bytes, tile, blocks, params.scales + j * f.scale_bytes,
                        columns * f.scale_bytes);
                if (f.zp_bytes)
                    tiles.unpack_params(f.zp_bytes, tile + zps_at, blocks,
                            params.zero_points + j * f.zp_bytes, columns * f.zp_bytes);
            });
            lines_to_panel(line + l, pos, columns, v.rows, pitch);
            dst_.write_params(k_, line + l, columns, pos, v.rows, params, how_);
            continue;
        }
        panel_to_lines(src_, line + l, pos, columns, v.rows, pitch, nullptr);
        src_.read_params(k_, line + l, columns, pos, v.rows, params);
        for_tiles_of(l, [&](uint8_t *tile, int j) {
            pack_lines(tiles, codes_ + j * pitch, pitch, one_tile(tile + header_bytes, v.rows), 0,
                    write_t::cached);
            tiles.pack_params(
                    f.scale_bytes, params.scales + j * f.scale_bytes, columns * f.scale_bytes, blocks, tile);
            if (f.zp_bytes)
                tiles.pack_params(f.zp_bytes, params.zero_points + j * f.zp_bytes, columns * f.zp_bytes,
                        blocks, tile + zps_at);
        });
    }
    if (!quantises)
        k_.dequantise_panels(f, tiles_, tile_bytes, header_bytes, 0, src_.global(), v, how_, later_);
}

void reorder_worker_t::turn_tiles(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next) {
    const bool quantises = c_.dst.quantised;
    const reorder_side_t &codes = quantises ? dst_ : src_;
    const block_format_t &f = codes.conf().format;
    if (codes.conf().packed) return turn_panels(v, line, pos);
    const int bits = codes.conf().bits, run = v.rows * (bits == 4 ? 4 : 8) / 8;
    const int header_bytes = int(n16_frame_t::header_bytes(c_.tile, v.rows)),
              scales_bytes = v.rows / f.block * reorder_lines * f.scale_bytes;
    const int64_t tile_bytes = n16_frame_t::tile_bytes(c_.tile, v.rows), line_bytes = codes.line_bytes();
    if (quantises)
        k_.quantise_panels(f, v, dst_.global(), tiles_, tile_bytes, header_bytes, write_t::cached, later_);
    for (int l = 0; l < v.lines; l += reorder_lines) {
        uint8_t *const tile = tiles_ + l / reorder_lines * tile_bytes, *const vectors = tile + header_bytes;
        const line_params_t params = {tile, f.zp_bytes ? tile + scales_bytes : nullptr, reorder_lines};
        if (quantises) {
            dst_.fetch_params(line + l + reorder_lines, reorder_lines, pos);
            unpack_lines(*c_.tile_codec, one_tile(vectors, v.rows), 0, later_.buffer() + l * run, run);
            dst_.write_params(k_, line + l, reorder_lines, pos, v.rows, params, how_);
            continue;
        }
        const uint8_t *const lines = codes.at(line + l, pos), *ahead = codes.at(next.line + l, next.pos);
        src_.fetch_params(next.line + l, reorder_lines, next.pos);
        for (int i = 0; i < reorder_lines && next.line + l + i < codes.lines(); i++)
            fetch(ahead + i * line_bytes, run);
        src_.read_params(k_, line + l, reorder_lines, pos, v.rows, params);
        pack_lines(*c_.tile_codec, lines, line_bytes, one_tile(vectors, v.rows), 0, write_t::cached);
    }
    if (quantises)
        k_.write_later(later_, how_, codes.at(line, pos), line_bytes, run, v.lines);
    else
        k_.dequantise_panels(f, tiles_, tile_bytes, header_bytes, 0, src_.global(), v, how_, later_);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
