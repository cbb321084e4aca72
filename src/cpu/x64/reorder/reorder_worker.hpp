// SPDX-License-Identifier: Apache-2.0
// One thread's part of a reorder. It streams: 16 lines (or a few times as many, where elements have to be
// transposed) and a few hundred positions go through buffers that stay in the first- and second-level cache.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/x64/reorder/reorder_conf.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Part of a matrix that is worked on at a time: conf.item_lines() lines and conf.chunk positions from here
// on.
struct item_t {
    dim_t line, pos;
};

// One thread's part of an execution.
class reorder_worker_t {
public:
    reorder_worker_t(const reorder_conf_t &conf, const exec_ctx_t &ctx, write_t how)
        : c_(conf), k_(*conf.kernels), how_(how), src_(conf.src, ctx), dst_(conf.dst, ctx) {}
    ~reorder_worker_t() { k_.finish(later_); }

    void set_batch(const dim_t *idx) {
        src_.set_batch(idx);
        dst_.set_batch(idx);
        has_tables_ = c_.tables && src_.lines() * src_.length() >= least_for_tables;
        if (has_tables_) k_.fill_tables(c_.src.format, src_.global(), tables_);
    }
    const reorder_side_t &src() const { return src_; }
    const reorder_side_t &dst() const { return dst_; }

    // Up to conf.item_lines() lines and conf.chunk positions from (line, pos) on.
    void reorder(dim_t line, dim_t pos, const item_t &next) {
        const dim_t end = std::min(line + c_.item_lines(), src_.lines());
        for (line += reorder_panels(line, pos, next); line < end; line += c_.group)
            reorder_group(line, pos, next);
    }

    // The largest finite magnitude of the same part of the source, as f32 bits.
    uint32_t amax(dim_t line, dim_t pos) {
        uint32_t most = 0;
        const dim_t end = std::min(line + c_.item_lines(), src_.lines());
        for (; line < end; line += c_.group) most = std::max(most, amax_of_group(line, pos));
        return most;
    }

private:
    // Elements of a matrix for which it pays to decode a 4-bit type under every scale first.
    static constexpr int64_t least_for_tables = 1 << 18;
    static constexpr int64_t codes_bytes = reorder_max_lines * reorder_max_block, values_bytes = codes_bytes;

    const reorder_conf_t &c_;
    const reorder_kernels_t &k_;
    const write_t how_;
    reorder_side_t src_, dst_;
    // What is worked on, and where:
    dim_t line_ = 0, pos_ = 0;
    int lines_ = 0, length_ = 0;
    // Codes, a byte each: lines c_.chunk apart, or rows c_.group apart.
    alignas(64) uint8_t codes_[codes_bytes];
    // Codes before or after they are transposed, or 16 lines of f32.
    alignas(64) uint8_t values_[values_bytes];
    // Packed tiles of most_panel_lines lines: codes of a byte have the largest, with a scale for 32 of them.
    alignas(64) uint8_t tiles_[most_panel_lines * n16_frame_t::min_tile_rows * 33 / 32];
    written_later_t later_;
    alignas(32) nibble_tables_t tables_;
    bool has_tables_ = false;
    // [block][c_.group], at most 4 bytes each; or half as many of twice as many lines.
    static constexpr int most_params = 4 * (reorder_max_block / int(nvfp4_block)) * reorder_max_lines;
    static_assert(most_params >= 4 * (n16_frame_t::min_tile_rows / nvfp4_block) * most_panel_lines, "");
    alignas(64) uint8_t src_scales_[most_params], src_zps_[most_params],
            dst_scales_[most_params], dst_zps_[most_params];

    void reorder_group(dim_t line, dim_t pos, const item_t &next) {
        locate(line, pos);
        if (c_.moves)
            move(next);
        else if (!c_.dst.quantised)
            dequantise();
        else if (c_.by_rows)
            quantise_rows();
        else
            quantise();
    }

    uint32_t amax_of_group(dim_t line, dim_t pos) {
        locate(line, pos);
        if (c_.by_rows) return k_.finite_amax(source_rows());
        if (c_.src.quantised) load_codes();
        uint32_t most = 0;
        for (int l = 0; l < lines_; l += reorder_lines)
            most = std::max(most, k_.finite_amax(source_values(l)));
        return most;
    }

    // Lines from `line` on that are done by the kernels for panels.
    int reorder_panels(dim_t line, dim_t pos, const item_t &next) {
        if (!c_.panel_lines) return 0;
        const reorder_side_t &values = c_.dst.quantised ? src_ : dst_,
                             &panels = c_.dst.quantised ? dst_ : src_;
        const block_format_t &f = panels.conf().format;
        const int length = int(std::min<dim_t>(c_.chunk, values.length() - pos));
        // Whole pairs of panels of the n16 layouts, or whole panels.
        const int least = std::max(2 * reorder_lines, panels.conf().panels.columns);
        const int lines = int(std::min<dim_t>(c_.panel_lines, values.lines() - line)) / least * least;
        if (lines == 0 || length % std::max(f.block, least) != 0) return 0;
        const panels_values_t v = {values.at(line, pos), values.conf().dt, values.line_bytes(),
                values.pos_bytes(), lines, length, values.at(next.line, next.pos)};
        if (c_.turns_tiles) {
            turn_tiles(v, line, pos, next);
            return lines;
        }
        if (c_.codes_in_lines) return code_lines(v, line, pos, next);
        if (c_.lines_to_panels) {
            code_panel(v, line, pos, next);
            return lines;
        }
        const int64_t panel_bytes = panels.panel_bytes();
        const int header_bytes = panels.header_bytes(length);
        uint8_t *tile = panels.tile(line, pos);
        if (c_.dst.quantised)
            k_.quantise_panels(f, v, panels.global(), tile, panel_bytes, header_bytes, how_, later_);
        else
            k_.dequantise_panels(f, tile, panel_bytes, header_bytes, panels.tile(next.line, next.pos) - tile,
                    panels.global(), v, how_, later_);
        return lines;
    }

    line_params_t src_params(int l = 0) { return params(c_.src.format, src_scales_, src_zps_, l); }
    line_params_t dst_params(int l = 0) { return params(c_.dst.format, dst_scales_, dst_zps_, l); }
    line_params_t params(const block_format_t &f, uint8_t *scales, uint8_t *zps, int l) const {
        return {scales + l * f.scale_bytes, f.zp_bytes ? zps + l * f.zp_bytes : nullptr, c_.group};
    }
    int code_pitch() const { return c_.by_rows ? c_.group : c_.chunk; }
    uint8_t *codes(int l) { return codes_ + l * c_.chunk; }
    int some_of(int l) const { return std::min(reorder_lines, lines_ - l); }

    void locate(dim_t line, dim_t pos) {
        line_ = line;
        pos_ = pos;
        lines_ = int(std::min<dim_t>(c_.group, src_.lines() - line));
        length_ = int(std::min<dim_t>(c_.chunk, src_.length() - pos));
    }

    // ---- codes, between a side and codes_ ----

    void load_codes() {
        const reorder_side_conf_t &s = c_.src;
        if (s.packed) {
            for_tiles(src_, [&](int l, int i, const code_tiles_t &from) {
                if (c_.by_rows)
                    for_each_tile(from, [&](int r, int rows, const uint8_t *tile) {
                        s.codec->unpack_rows(tile, rows, codes_ + (i + r) * c_.group + l, c_.group);
                    });
                else
                    s.codec->unpack(from, codes(l) + i, c_.chunk);
            });
            return;
        }
        const bool turned = s.by_rows() != c_.by_rows;
        const int runs = s.by_rows() ? length_ : lines_, n = s.by_rows() ? lines_ : length_;
        const int pitch = s.by_rows() ? c_.group : c_.chunk;
        uint8_t *to = turned ? values_ : codes_;
        for (int i = 0; i < runs; i++) k_.unpack_row(s.storage, run_at(src_, s, i), n, to + i * pitch);
        if (turned) k_.transpose(1, values_, pitch, runs, n, codes_, code_pitch());
    }

    void store_codes() {
        const reorder_side_conf_t &s = c_.dst;
        if (s.packed) {
            clear_padding(length_);
            for_tiles(dst_, [&](int l, int i, const code_tiles_t &to) {
                if (c_.by_rows)
                    for_each_tile(to, [&](int r, int rows, uint8_t *tile) {
                        s.codec->pack_rows(codes_ + (i + r) * c_.group + l, c_.group, rows, tile, how_);
                    });
                else
                    s.codec->pack(codes(l) + i, c_.chunk, to, 0, how_);
            });
            return;
        }
        const bool turned = s.by_rows() != c_.by_rows;
        const int runs = s.by_rows() ? length_ : lines_, n = s.by_rows() ? lines_ : length_;
        const int pitch = s.by_rows() ? c_.group : c_.chunk;
        if (turned) k_.transpose(1, codes_, code_pitch(), n, runs, values_, pitch);
        const uint8_t *from = turned ? values_ : codes_;
        for (int i = 0; i < runs; i++) {
            k_.pack_row(s.storage, from + i * pitch, n, run_at(dst_, s, i), how_);
            fetch_tiles(i, runs);
        }
    }

    // ---- what comes next is fetched bit by bit, while results are written ----

    static void fetch(const uint8_t *p, int64_t bytes) {
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(p + b, 0, 2);
    }
    // Part i of n of the packed tiles behind those at hand.
    void fetch_tiles(int i, int n) const {
        const reorder_side_conf_t &s = c_.src;
        if (!s.packed || c_.by_rows) return;
        const int64_t bytes = src_.tile_bytes() * c_.chunk / src_.tile_rows();
        const int64_t part = div_up(bytes / 64, n) * 64;
        fetch(src_.tile(line_, pos_) + bytes + i * part, part);
    }

    // A line, or the lines at a position.
    uint8_t *run_at(const reorder_side_t &side, const reorder_side_conf_t &s, int i) const {
        return s.by_rows() ? side.at(line_, pos_ + i) : side.at(line_ + i, pos_);
    }

    // What is no element of a packed tile is zero.
    void clear_padding(int rows) {
        const panel_codec_t &codec = *c_.dst.codec;
        const int lines = int(round_up(lines_, codec.columns)), length = int(round_up(rows, codec.row_step));
        const int runs = c_.by_rows ? rows : lines_, n = c_.by_rows ? lines_ : rows;
        const int padded_runs = c_.by_rows ? length : lines, padded = c_.by_rows ? lines : length;
        for (int i = 0; i < padded_runs; i++) {
            const int used = i < runs ? n : 0;
            if (used < padded) std::memset(codes_ + i * code_pitch() + used, 0, size_t(padded - used));
        }
    }

    // body(line, position, codes) for the packed tiles: all whole ones of a panel, then the last one.
    template <typename F>
    void for_tiles(const reorder_side_t &side, F &&body) {
        for (int l = 0; l < lines_; l += side.columns()) for_tiles_of_panel(side, l, body);
    }
    template <typename F>
    void for_tiles_of_panel(const reorder_side_t &side, int l, F &&body) {
        const int whole = length_ / side.tile_rows() * side.tile_rows();
        if (whole) body(l, 0, side.codes(line_ + l, pos_, whole));
        if (whole < length_) body(l, whole, side.codes(line_ + l, pos_ + whole, length_ - whole));
    }
    // body(row, rows, codes) for each of them.
    template <typename F>
    static void for_each_tile(const code_tiles_t &t, F &&body) {
        uint8_t *codes = t.codes;
        for (int r = 0; r < t.rows; r += t.tile_rows, codes += t.tile_bytes)
            body(r, std::min(t.tile_rows, t.rows - r), codes);
    }

    // ---- tiles in rows: some blocks at a time, whose codes stay in the first-level cache ----

    // body(row, rows, rows of codes) for parts of the packed tiles.
    template <typename F>
    void for_parts(const reorder_side_conf_t &s, F &&body) const {
        const int step = std::max(s.format.block, s.codec->row_step);
        for (int i = 0; i < length_; i += step) {
            const int rows = std::min(step, length_ - i);
            body(i, rows, int(round_up(rows, s.codec->row_step)));
        }
    }
    // Codes of the panel of line l, from position i on.
    uint8_t *codes_of_panel(const reorder_side_t &side, int l, int i) const {
        const int row = i % side.tile_rows(), rows = std::min(side.tile_rows(), length_ - (i - row));
        return side.tile(line_ + l, pos_ + i) + side.header_bytes(rows)
               + row * side.columns() * side.conf().bits / 8;
    }
    line_params_t params_from(const reorder_side_conf_t &s, line_params_t p, int i) const {
        const int at = i / s.format.block * p.pitch;
        p.scales += at * s.format.scale_bytes;
        if (p.zero_points) p.zero_points += at * s.format.zp_bytes;
        return p;
    }

    // ---- between lines of values and lines of codes ----

    int code_lines(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next) {
        if (v.rows % 64 != 0) return 0;
        const reorder_side_t &codes = c_.dst.quantised ? dst_ : src_;
        const block_format_t &f = codes.conf().format;
        const line_params_t params = {dst_scales_, f.zp_bytes ? dst_zps_ : nullptr, v.lines};
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

    // ---- between lines of values and a panel of another layout, by way of lines of codes in cache ----

    void code_panel(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next) {
        constexpr int some = 2 * reorder_lines; // that are quantised together
        const bool quantises = c_.dst.quantised;
        const reorder_side_t &panel = quantises ? dst_ : src_;
        const block_format_t &f = panel.conf().format;
        const int pitch = v.rows * halves_of_code(f) / 2;
        line_params_t params = {dst_scales_, f.zp_bytes ? dst_zps_ : nullptr, v.lines};
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
            k_.quantise_code_lines(f, part, dst_.global(), params_of_part, codes_ + l * pitch, pitch,
                    write_t::cached, nullptr);
        }
        lines_to_panel(line, pos, v.lines, v.rows, pitch);
        dst_.write_params(k_, line, v.lines, pos, v.rows, params, how_);
    }

    // Plain lines of codes: two of them are a byte, or one is.
    static int halves_of_code(const block_format_t &f) { return data_type_info(f.elem)->bits == 4 ? 1 : 2; }

    // Lines of codes in codes_, to and from the panels that hold them.
    void lines_to_panel(dim_t line, dim_t pos, int lines, int rows, int pitch) {
        const panel_codec_t &codec = *c_.dst.codec;
        const int halves = codec.bits == 4 ? 1 : 2, step = dst_.tile_rows();
        for (int l = 0; l < lines; l += codec.columns)
            for (int i = 0; i < rows; i += step)
                pack_lines(codec, codes_ + l * pitch + i * halves / 2, pitch,
                        dst_.codes(line + l, pos + i, std::min(step, rows - i)), 0, how_);
    }
    void panel_to_lines(const reorder_side_t &side, dim_t line, dim_t pos, int lines, int rows, int pitch,
            const item_t *next) {
        const panel_codec_t &codec = *side.conf().codec;
        const int halves = codec.bits == 4 ? 1 : 2, step = side.tile_rows();
        for (int l = 0; l < lines; l += codec.columns)
            for (int i = 0; i < rows; i += step) {
                if (next) fetch(side.tile(next->line + l, next->pos + i), side.tile_bytes());
                unpack_lines(codec, side.codes(line + l, pos + i, step), codes_ + l * pitch + i * halves / 2,
                        pitch);
            }
    }

    // ---- by way of packed tiles in cache ----

    // Between rows of values and panels of another layout: 64 lines of codes at a time.
    void turn_panels(const panels_values_t &v, dim_t line, dim_t pos) {
        const bool quantises = c_.dst.quantised;
        const reorder_side_t &panels = quantises ? dst_ : src_;
        const panel_codec_t &tiles = *c_.tile_codec;
        const block_format_t &f = panels.conf().format;
        const int pitch = v.rows * halves_of_code(f) / 2, blocks = v.rows / f.block,
                  columns = panels.columns();
        const int header_bytes = int(n16_frame_t::header_bytes(c_.tile, v.rows)),
                  zps_at = blocks * reorder_lines * f.scale_bytes;
        const int64_t tile_bytes = n16_frame_t::tile_bytes(c_.tile, v.rows);
        const line_params_t params = {dst_scales_, f.zp_bytes ? dst_zps_ : nullptr, columns};
        // body(tile, line of the panel) for the tiles of a panel.
        const auto for_tiles_of = [&](int l, auto &&body) {
            for (int j = 0; j < columns; j += reorder_lines)
                body(tiles_ + (l + j) / reorder_lines * tile_bytes, j);
        };
        if (quantises)
            k_.quantise_panels(
                    f, v, dst_.global(), tiles_, tile_bytes, header_bytes, write_t::cached, later_);
        for (int l = 0; l < v.lines; l += columns) {
            if (quantises) {
                for_tiles_of(l, [&](uint8_t *tile, int j) {
                    unpack_lines(tiles, one_tile(tile + header_bytes, v.rows), codes_ + j * pitch, pitch);
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
                tiles.pack_params(f.scale_bytes, params.scales + j * f.scale_bytes, columns * f.scale_bytes,
                        blocks, tile);
                if (f.zp_bytes)
                    tiles.pack_params(f.zp_bytes, params.zero_points + j * f.zp_bytes, columns * f.zp_bytes,
                            blocks, tile + zps_at);
            });
        }
        if (!quantises)
            k_.dequantise_panels(f, tiles_, tile_bytes, header_bytes, 0, src_.global(), v, how_, later_);
    }

    void turn_tiles(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next) {
        const bool quantises = c_.dst.quantised;
        const reorder_side_t &codes = quantises ? dst_ : src_;
        const block_format_t &f = codes.conf().format;
        if (codes.conf().packed) return turn_panels(v, line, pos);
        const int bits = codes.conf().bits, run = v.rows * (bits == 4 ? 4 : 8) / 8;
        const int header_bytes = int(n16_frame_t::header_bytes(c_.tile, v.rows)),
                  scales_bytes = v.rows / f.block * reorder_lines * f.scale_bytes;
        const int64_t tile_bytes = n16_frame_t::tile_bytes(c_.tile, v.rows), line_bytes = codes.line_bytes();
        if (quantises)
            k_.quantise_panels(
                    f, v, dst_.global(), tiles_, tile_bytes, header_bytes, write_t::cached, later_);
        for (int l = 0; l < v.lines; l += reorder_lines) {
            uint8_t *const tile = tiles_ + l / reorder_lines * tile_bytes, *const vectors =
                                                                                   tile + header_bytes;
            const line_params_t params = {tile, f.zp_bytes ? tile + scales_bytes : nullptr, reorder_lines};
            if (quantises) {
                dst_.fetch_params(line + l + reorder_lines, reorder_lines, pos);
                unpack_lines(*c_.tile_codec, one_tile(vectors, v.rows), later_.buffer() + l * run, run);
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

    // ---- quantising ----

    // Values of 16 lines: where they are, or, of codes, in values_.
    source_lines_t source_values(int l) {
        const int n = some_of(l);
        if (c_.src.quantised) {
            if (l == 0) src_.read_params(k_, line_, lines_, pos_, length_, src_params());
            const int64_t pitch = c_.chunk * int(sizeof(float));
            k_.dequantise(c_.src.format, codes(l), c_.chunk, n, length_, src_.global(), src_params(l),
                    nullptr, mxdnn_f32, values_, pitch, write_t::cached);
            return {values_, mxdnn_f32, pitch, n, length_, nullptr};
        }
        const void *next = nullptr;
        if (l + reorder_lines < lines_)
            next = src_.at(line_ + l + reorder_lines, pos_);
        else if (pos_ + c_.chunk < src_.length())
            next = src_.at(line_, pos_ + c_.chunk);
        else if (line_ + c_.group < src_.lines())
            next = src_.at(line_ + c_.group, 0);
        return {src_.at(line_ + l, pos_), c_.src.dt, src_.line_bytes(), n, length_, next};
    }
    source_lines_t source_rows() {
        return {src_.at(line_, pos_), c_.src.dt, src_.pos_bytes(), length_, lines_, nullptr};
    }

    void quantise_rows() {
        const reorder_side_conf_t &dst = c_.dst;
        if (c_.given) dst_.read_params(k_, line_, lines_, pos_, length_, dst_params());
        if (!dst.packed) {
            k_.quantise_rows(
                    dst.format, c_.given, source_rows(), dst_.global(), dst_params(), codes_, c_.group);
            store_codes();
        }
        if (dst.packed)
            for_parts(dst, [&](int i, int rows, int padded) {
                source_lines_t values = source_rows();
                values.data = src_.at(line_, pos_ + i);
                values.lines = rows;
                k_.quantise_rows(dst.format, c_.given, values, dst_.global(),
                        params_from(dst, dst_params(), i), codes_, c_.group);
                clear_padding(rows);
                for (int l = 0; l < lines_; l += dst_.columns())
                    dst.codec->pack_rows(codes_ + l, c_.group, padded, codes_of_panel(dst_, l, i), how_);
            });
        if (!c_.given) dst_.write_params(k_, line_, lines_, pos_, length_, dst_params(), how_);
    }

    void quantise() {
        const reorder_side_conf_t &dst = c_.dst;
        if (c_.src.quantised) load_codes();
        if (c_.given) dst_.read_params(k_, line_, lines_, pos_, length_, dst_params());
        const bool whole = length_ % reorder_max_block == 0, nibbles = dst.bits == 4;
        const bool in_place = whole && is_direct(dst);
        const bool to_tiles =
                whole && nibbles && dst.packed && c_.group == dst_.columns() && lines_ == dst_.columns();
        for (int l = 0; l < lines_; l += reorder_lines) {
            const source_lines_t values = source_values(l);
            const auto encode = [&](uint8_t *to, int64_t pitch, bool halves, write_t how) {
                k_.quantise(
                        dst.format, c_.given, values, dst_.global(), dst_params(l), to, pitch, halves, how);
            };
            if (in_place) {
                encode(dst_.at(line_ + l, pos_), dst_.line_bytes(), nibbles, how_);
            } else if (to_tiles) {
                encode(codes_ + l * c_.chunk / 2, c_.chunk / 2, true, write_t::cached);
            } else {
                encode(codes(l), c_.chunk, false, write_t::cached);
            }
        }
        if (to_tiles)
            for_tiles_of_panel(dst_, 0, [&](int, int i, const code_tiles_t &to) {
                dst.codec->pack_nibbles(codes_ + i / 2, c_.chunk / 2, to, 0, how_);
            });
        else if (!in_place)
            store_codes();
        if (!c_.given) dst_.write_params(k_, line_, lines_, pos_, length_, dst_params(), how_);
    }

    // ---- dequantising ----

    void dequantise() {
        const reorder_side_conf_t &src = c_.src;
        src_.read_params(k_, line_, lines_, pos_, length_, src_params());
        if (c_.by_rows && src.packed) {
            for_parts(src, [&](int i, int rows, int padded) {
                for (int l = 0; l < lines_; l += src_.columns())
                    src.codec->unpack_rows(codes_of_panel(src_, l, i), padded, codes_ + l, c_.group);
                k_.dequantise_rows(src.format, codes_, c_.group, rows, lines_, src_.global(),
                        params_from(src, src_params(), i), c_.dst.dt, dst_.at(line_, pos_ + i),
                        dst_.pos_bytes(), how_);
            });
            return;
        }
        load_codes();
        if (c_.by_rows)
            k_.dequantise_rows(c_.src.format, codes_, c_.group, length_, lines_, src_.global(), src_params(),
                    c_.dst.dt, dst_.at(line_, pos_), dst_.pos_bytes(), how_);
        else
            k_.dequantise(c_.src.format, codes_, c_.chunk, lines_, length_, src_.global(), src_params(),
                    has_tables_ ? &tables_ : nullptr, c_.dst.dt, dst_.at(line_, pos_), dst_.line_bytes(),
                    how_);
    }

    // ---- codes, scales and zero points as they are ----

    void move(const item_t &next) {
        const dim_t pos = pos_;
        const int length = length_;
        if (!c_.src.packed) src_.read_params(k_, line_, lines_, pos, length, dst_params());
        for (int i = 0; i < length; i += reorder_max_length) {
            pos_ = pos + i;
            length_ = std::min(reorder_max_length, length - i);
            // Of a packed side they stand beside their codes.
            const line_params_t params = params_from(c_.dst, dst_params(), i);
            if (c_.src.packed) src_.read_params(k_, line_, lines_, pos_, length_, params);
            if (!move_directly(i + length_ < length ? item_t{line_, pos_ + length_} : next)) {
                load_codes();
                store_codes();
            }
            if (c_.dst.packed) dst_.write_params(k_, line_, lines_, pos_, length_, params, how_);
        }
        if (!c_.dst.packed) dst_.write_params(k_, line_, lines_, pos, length, dst_params(), how_);
    }

    // Between packed sides, or a packed and a plain one, without taking bytes apart.
    bool move_directly(const item_t &next) {
        if (lines_ != c_.group || length_ % 64 != 0) return false;
        const bool nibbles = c_.src.bits == 4;
        const int halves = nibbles ? 1 : 2;
        if (c_.src.packed && c_.dst.packed) {
            if (!nibbles) return false;
            const int pitch = c_.chunk / 2;
            for_tiles(src_, [&](int l, int i, const code_tiles_t &from) {
                unpack_lines(*c_.src.codec, from, codes_ + l * pitch + i / 2, pitch);
            });
            for_tiles(dst_, [&](int l, int i, const code_tiles_t &to) {
                pack_lines(*c_.dst.codec, codes_ + l * pitch + i / 2, pitch, to, 0, how_);
            });
            return true;
        }
        if (c_.dst.packed && is_direct(c_.src)) {
            const int64_t ahead = src_.at(next.line, next.pos) - src_.at(line_, pos_);
            for_tiles(dst_, [&](int l, int i, const code_tiles_t &to) {
                pack_lines(*c_.dst.codec, src_.at(line_ + l, pos_ + i), src_.line_bytes(), to, ahead, how_);
            });
            return true;
        }
        if (c_.src.packed && is_direct(c_.dst)) {
            const int run = length_ * halves / 2;
            for_tiles(src_, [&](int l, int i, const code_tiles_t &from) {
                for_each_tile(from, [&](int r, int rows, uint8_t *tile) {
                    k_.write_some(later_, rows * src_.columns() * halves / 2);
                    unpack_lines(*c_.src.codec, one_tile(tile, rows),
                            later_.buffer() + l * run + (i + r) * halves / 2, run);
                });
            });
            k_.write_later(later_, how_, dst_.at(line_, pos_), dst_.line_bytes(), run, lines_);
            return true;
        }
        return false;
    }

    // Plain lines of codes to and from packed tiles: two codes in a byte, or one.
    static void pack_lines(const panel_codec_t &codec, const uint8_t *lines, int64_t pitch,
            const code_tiles_t &to, int64_t ahead, write_t how) {
        (codec.bits == 4 ? codec.pack_nibbles : codec.pack)(lines, pitch, to, ahead, how);
    }
    static void unpack_lines(
            const panel_codec_t &codec, const code_tiles_t &from, uint8_t *lines, int64_t pitch) {
        (codec.bits == 4 ? codec.unpack_nibbles : codec.unpack)(from, lines, pitch);
    }
    static code_tiles_t one_tile(uint8_t *codes, int rows) { return {codes, rows, rows, 0}; }

    // Plain lines of codes that stand as kernels take and leave them.
    bool is_direct(const reorder_side_conf_t &side) const {
        return !side.packed && side.along_line && side.storage != code_storage_t::dense_6;
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
