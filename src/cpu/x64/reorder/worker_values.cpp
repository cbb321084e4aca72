// SPDX-License-Identifier: Apache-2.0
// Between values and codes by the kernels for lines and rows.
#include "cpu/x64/reorder/reorder_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

source_lines_t reorder_worker_t::source_values(int l) {
    const void *next = nullptr;
    if (l + reorder_lines < lines_)
        next = src_.at(line_ + l + reorder_lines, pos_);
    else if (pos_ + length_ < src_.length())
        next = src_.at(line_, pos_ + length_);
    else if (line_ + c_.group < src_.lines())
        next = src_.at(line_ + c_.group, 0);
    return {src_.at(line_ + l, pos_), c_.src.dt, src_.line_bytes(), some_of(l), length_, next};
}

source_lines_t reorder_worker_t::part_of(const source_lines_t &lines, int pos, int n) {
    const int64_t skip = pos * (lines.dt == mxdnn_f32 ? 4 : 2);
    source_lines_t part = lines;
    part.data = static_cast<const uint8_t *>(lines.data) + skip;
    if (lines.next) part.next = static_cast<const uint8_t *>(lines.next) + skip;
    part.n = n;
    return part;
}

source_lines_t reorder_worker_t::source_rows() {
    return {src_.at(line_, pos_), c_.src.dt, src_.pos_bytes(), length_, lines_, nullptr};
}

void reorder_worker_t::quantise_rows(const item_t &next) {
    const reorder_side_conf_t &dst = c_.dst;
    if (c_.given) dst_.read_params(k_, line_, lines_, pos_, length_, block_params());
    const auto values_from = [&](int i, int rows) {
        source_lines_t values = source_rows();
        values.data = src_.at(line_, pos_ + i);
        values.lines = rows;
        values.next = i + rows < length_ ? src_.at(line_, pos_ + i + rows) : src_.at(next.line, next.pos);
        return values;
    };
    if (!dst.packed) {
        k_.quantise_rows(dst.format, c_.given, values_from(0, length_), dst_.global(), block_params(), codes_,
                c_.group);
        store_codes();
    }
    if (dst.packed)
        for_parts(dst, [&](int i, int rows, int padded) {
            k_.quantise_rows(dst.format, c_.given, values_from(i, rows), dst_.global(),
                    params_from(dst, block_params(), i), codes_, c_.group);
            clear_padding(rows);
            for_codes_of_panels(dst_, i, [&](int l, uint8_t *panel) {
                dst.codec->pack_rows(codes_ + l, c_.group, padded, panel, how_);
            });
        });
    if (!c_.given) dst_.write_params(k_, line_, lines_, pos_, length_, block_params(), how_);
}

void reorder_worker_t::quantise() {
    if (quantise_panel()) return;
    const dim_t pos = pos_;
    const int length = length_;
    for (int i = 0; i < length; i += c_.chunk) {
        pos_ = pos + i;
        length_ = std::min(c_.chunk, length - i);
        quantise_lines();
    }
}

bool reorder_worker_t::quantise_panel() {
    const reorder_side_conf_t &dst = c_.dst;
    if (!c_.quantises_panels || lines_ != dst_.columns() || !(dst_.global() > 0)
            || length_ % std::max(dst.format.block, dst.codec->row_step) != 0)
        return false;
    for (int l = 0; l < lines_; l += reorder_lines) {
        const source_lines_t values = source_values(l);
        for_tiles_of_panel(dst_, 0, [&](int, int i, const code_tiles_t &to) {
            dst.codec->quantise(dst.format, part_of(values, i, to.rows), dst_.global(),
                    params_from(dst, block_params(l), i), to, l, how_);
        });
    }
    dst_.write_params(k_, line_, lines_, pos_, length_, block_params(), how_);
    return true;
}

void reorder_worker_t::quantise_lines() {
    const reorder_side_conf_t &dst = c_.dst;
    if (c_.given) dst_.read_params(k_, line_, lines_, pos_, length_, block_params());
    const bool whole = length_ % reorder_max_block == 0, nibbles = dst.bits == 4;
    const bool in_place = whole && is_direct(dst);
    const bool to_tiles =
            whole && nibbles && dst.packed && c_.group == dst_.columns() && lines_ == dst_.columns();
    for (int l = 0; l < lines_; l += reorder_lines) {
        const source_lines_t values = source_values(l);
        const auto encode = [&](uint8_t *to, int64_t pitch, bool halves, write_t how) {
            k_.quantise(dst.format, c_.given, values, dst_.global(), block_params(l), to, pitch, halves, how);
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
    if (!c_.given) dst_.write_params(k_, line_, lines_, pos_, length_, block_params(), how_);
}

ahead_t reorder_worker_t::tiles_ahead(const item_t &next, int i, int rows) const {
    if (!c_.src.packed) return {};
    // Of the tiles of an item, what corresponds to its rows from i on.
    const int64_t bytes = src_.tile_bytes() * c_.chunk / src_.tile_rows();
    const int64_t from = bytes * i / length_ / 64 * 64, to = bytes * (i + rows) / length_ / 64 * 64;
    return {src_.tile(next.line, next.pos) + from, src_.panel_bytes(), int(to - from),
            int(div_up(lines_, src_.columns()))};
}

void reorder_worker_t::dequantise(const item_t &next) {
    const reorder_side_conf_t &src = c_.src;
    src_.read_params(k_, line_, lines_, pos_, length_, block_params());
    if (c_.by_rows && src.packed) {
        for_parts(src, [&](int i, int rows, int padded) {
            for_codes_of_panels(src_, i, [&](int l, const uint8_t *panel) {
                src.codec->unpack_rows(panel, padded, codes_ + l, c_.group);
            });
            k_.dequantise_rows(src.format, codes_, c_.group, rows, lines_, src_.global(),
                    params_from(src, block_params(), i), c_.dst.dt, dst_.at(line_, pos_ + i),
                    dst_.pos_bytes(), tiles_ahead(next, i, rows), how_);
        });
        return;
    }
    load_codes();
    const ahead_t ahead = tiles_ahead(next, 0, length_);
    if (c_.by_rows)
        k_.dequantise_rows(c_.src.format, codes_, c_.group, length_, lines_, src_.global(), block_params(),
                c_.dst.dt, dst_.at(line_, pos_), dst_.pos_bytes(), ahead, how_);
    else
        k_.dequantise(c_.src.format, codes_, c_.chunk, lines_, length_, src_.global(), block_params(),
                has_tables_ ? &tables_ : nullptr, c_.dst.dt, dst_.at(line_, pos_), dst_.line_bytes(), ahead,
                how_);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
