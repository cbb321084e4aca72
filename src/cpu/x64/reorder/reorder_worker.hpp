// SPDX-License-Identifier: Apache-2.0
// One thread's part of a reorder. It streams: 16 lines (or a few times as many, where elements have to be
// transposed) and a few hundred positions go through buffers that stay in the first- and second-level cache.
// reorder_worker.cpp chooses the way; worker_move.cpp, worker_values.cpp and worker_panels.cpp go it, down to
// the kernels of reorder_kernels.hpp.
#pragma once

#include <algorithm>
#include <cstring>

#include "cpu/x64/reorder/reorder_conf.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// A part of a matrix that is processed together: conf.item_lines() lines and conf.item_length() positions
// from here on.
struct item_t {
    dim_t line, pos;
};

// Packed tiles of most_panel_lines lines. Codes of one byte have the largest tiles, with an f32 scale for 32
// of them.
constexpr int64_t most_tiles_bytes = [] {
    packed_shape_t s;
    s.bits = 8;
    s.scale_bytes = sizeof(float);
    return most_panel_lines / n16_frame_t::columns * n16_frame_t::tile_bytes(s, n16_frame_t::min_tile_rows);
}();

// What a thread has in cache: its part of the scratchpad. Two workers that take turns may have the same.
struct reorder_buffers_t {
    static constexpr int64_t codes_bytes = reorder_max_lines * reorder_max_block;
    // [block][group], at most 4 bytes each; or half the size for twice as many lines.
    static constexpr int most_params = 4 * (reorder_max_block / int(nvfp4_block)) * reorder_max_lines;
    static_assert(most_params >= 4 * (n16_frame_t::min_tile_rows / nvfp4_block) * most_panel_lines, "");

    // Codes, a byte each: lines `chunk` apart, or rows `group` apart.
    alignas(64) uint8_t codes[codes_bytes];
    alignas(64) uint8_t turned[codes_bytes]; // before or after they are transposed
    alignas(64) uint8_t tiles[most_tiles_bytes];
    alignas(64) uint8_t scales[most_params], zero_points[most_params];
    written_later_t later;
    alignas(32) nibble_tables_t tables;
};

// The part of one thread in an execution.
class reorder_worker_t {
public:
    using conf_t = reorder_conf_t;
    using buffers_t = reorder_buffers_t;
    reorder_worker_t(const reorder_conf_t &conf, const exec_ctx_t &ctx, write_t how, reorder_buffers_t &b)
        : reorder_worker_t(conf, {conf.src, ctx}, {conf.dst, ctx}, how, b) {}
    reorder_worker_t(const reorder_conf_t &conf, const reorder_side_t &src, const reorder_side_t &dst,
            write_t how, reorder_buffers_t &b)
        : c_(conf), k_(*conf.kernels), how_(how), src_(src), dst_(dst), codes_(b.codes), turned_(b.turned),
          tiles_(b.tiles), scales_(b.scales), zps_(b.zero_points), later_(b.later), tables_(b.tables) {}
    ~reorder_worker_t() { k_.finish(later_); }

    void set_batch(const dim_t *idx);
    const reorder_conf_t &conf() const { return c_; }
    reorder_side_t &src() { return src_; }
    reorder_side_t &dst() { return dst_; }

    // Processes up to conf.item_lines() lines and conf.item_length() positions from (line, pos) on.
    void reorder(dim_t line, dim_t pos, const item_t &next);

    // The largest finite magnitude of the same part of the source, as f32 bits.
    uint32_t amax(dim_t line, dim_t pos);

private:
    // The number of elements of a matrix from which it pays to decode a 4-bit type under every scale first.
    static constexpr int64_t least_for_tables = 1 << 18;

    const reorder_conf_t &c_;
    const reorder_kernels_t &k_;
    const write_t how_;
    reorder_side_t src_, dst_;
    uint8_t *const codes_, *const turned_, *const tiles_, *const scales_, *const zps_;
    written_later_t &later_;
    nibble_tables_t &tables_;
    bool has_tables_ = false;
    // The current part:
    dim_t line_ = 0, pos_ = 0;
    int lines_ = 0, length_ = 0;

    // ---- The ways of processing a part: reorder_worker.cpp ----

    // A group of lines from `line` on. `end` and later lines belong to another thread.
    void locate(dim_t line, dim_t end, dim_t pos);
    void reorder_group(dim_t line, dim_t end, dim_t pos, const item_t &next);
    uint32_t amax_of_group(dim_t line, dim_t end, dim_t pos);
    // The number of lines, from `line` on, that the kernels for panels process.
    int reorder_panels(dim_t line, dim_t pos, const item_t &next);

    // ---- Codes, scales and zero points that do not change: worker_move.cpp ----

    void move(const item_t &next);
    // Between packed sides, or a packed and a plain one, without separating the codes of a byte.
    bool move_directly(const item_t &next);

    // ---- values by the kernels for lines and rows: worker_values.cpp ----

    // Values of 16 lines.
    source_lines_t source_values(int l);
    source_lines_t source_rows();
    // Some positions of lines.
    static source_lines_t part_of(const source_lines_t &lines, int pos, int n);
    void quantise_rows(const item_t &next);
    void quantise();
    bool quantise_panel(); // false if this is not possible
    void quantise_lines();
    void dequantise(const item_t &next);
    // Of the next tiles, what is prefetched while positions i .. i + rows are processed.
    ahead_t tiles_ahead(const item_t &next, int i, int rows) const;

    // ---- values by the kernels for panels: worker_panels.cpp ----

    // Between lines of values and lines of codes.
    int code_lines(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next);
    // Between lines of values and a panel of another layout, through lines of codes in cache.
    void code_panel(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next);
    // Between rows of values and lines of codes, through packed tiles in cache.
    void turn_tiles(const panels_values_t &v, dim_t line, dim_t pos, const item_t &next);
    // Between rows of values and panels of another layout: 64 lines of codes at a time.
    void turn_panels(const panels_values_t &v, dim_t line, dim_t pos);
    // Lines of codes in codes_, to and from panels.
    void lines_to_panel(dim_t line, dim_t pos, int lines, int rows, int pitch);
    void panel_to_lines(const reorder_side_t &side, dim_t line, dim_t pos, int lines, int rows, int pitch,
            const item_t *next);

    // ---- codes, between a side and codes_: worker_codes.cpp ----

    void load_codes();
    void store_codes();
    // Bytes of a packed tile that are not elements become zero.
    void clear_padding(int rows);
    // Prefetches part i of n of the next packed tiles.
    void fetch_tiles(int i, int n) const;

    // ---- Addresses ----

    // Of the codes of line l on.
    line_params_t block_params(int l = 0) const {
        const block_format_t &f = (c_.dst.quantised ? c_.dst : c_.src).format;
        return {scales_ + l * f.scale_bytes, f.zp_bytes ? zps_ + l * f.zp_bytes : nullptr, c_.group};
    }
    // Those from position i on.
    static line_params_t params_from(const reorder_side_conf_t &s, line_params_t p, int i) {
        const int at = i / s.format.block * p.pitch;
        p.scales += at * s.format.scale_bytes;
        if (p.zero_points) p.zero_points += at * s.format.zp_bytes;
        return p;
    }
    int code_pitch() const { return c_.by_rows ? c_.group : c_.chunk; }
    uint8_t *codes(int l) { return codes_ + l * c_.chunk; }
    int some_of(int l) const { return std::min(reorder_lines, lines_ - l); }
    // A line, or the lines at a position.
    uint8_t *run_at(const reorder_side_t &side, const reorder_side_conf_t &s, int i) const {
        return s.by_rows() ? side.at(line_, pos_ + i) : side.at(line_ + i, pos_);
    }
    // Plain lines of codes that are stored as kernels read and write them.
    static bool is_direct(const reorder_side_conf_t &side) {
        return !side.packed && side.along_line && side.storage != code_storage_t::dense_6;
    }
    // Plain lines of codes: two codes in a byte, or one.
    static int halves_of_code(const block_format_t &f) { return data_type_info(f.elem)->bits == 4 ? 1 : 2; }
    static void fetch(const uint8_t *p, int64_t bytes) {
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(p + b, 0, 2);
    }

    // ---- packed tiles ----

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
    static code_tiles_t one_tile(uint8_t *codes, int rows) { return {codes, rows, rows, 0}; }

    // Plain lines of codes to and from packed tiles: two codes in a byte, or one.
    static void pack_lines(const panel_codec_t &codec, const uint8_t *lines, int64_t pitch,
            const code_tiles_t &to, int64_t ahead, write_t how) {
        (codec.bits == 4 ? codec.pack_nibbles : codec.pack)(lines, pitch, to, ahead, how);
    }
    static void unpack_lines(const panel_codec_t &codec, const code_tiles_t &from, int64_t ahead,
            uint8_t *lines, int64_t pitch) {
        (codec.bits == 4 ? codec.unpack_nibbles : codec.unpack)(from, ahead, lines, pitch);
    }

    // Tiles as rows: calls body(row, rows, rows of codes) for some blocks of the packed tiles at a time,
    // whose codes stay in the first-level cache.
    template <typename F>
    void for_parts(const reorder_side_conf_t &s, F &&body) const {
        const int step = std::max(s.format.block, s.codec->row_step);
        for (int i = 0; i < length_; i += step) {
            const int rows = std::min(step, length_ - i);
            body(i, rows, int(round_up(rows, s.codec->row_step)));
        }
    }
    // Calls body(line, codes of its panel from position i on) for all panels.
    template <typename F>
    void for_codes_of_panels(const reorder_side_t &side, int i, F &&body) const {
        const int row = i % side.tile_rows(), rows = std::min(side.tile_rows(), length_ - (i - row));
        const int columns = side.columns();
        uint8_t *codes =
                side.tile(line_, pos_ + i) + side.header_bytes(rows) + row * columns * side.conf().bits / 8;
        for (int l = 0; l < lines_; l += columns, codes += side.panel_bytes()) body(l, codes);
    }
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
