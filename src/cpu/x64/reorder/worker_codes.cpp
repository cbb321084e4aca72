// SPDX-License-Identifier: Apache-2.0
// Codes between a side, plain or packed, and the buffer where each of them has a byte.
#include "cpu/x64/reorder/reorder_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

void reorder_worker_t::load_codes() {
    const reorder_side_conf_t &s = c_.src;
    if (s.packed) {
        for_tiles(src_, [&](int l, int i, const code_tiles_t &from) {
            if (c_.by_rows)
                for_each_tile(from, [&](int r, int rows, const uint8_t *tile) {
                    s.codec->unpack_rows(tile, rows, codes_ + (i + r) * c_.group + l, c_.group);
                });
            else
                s.codec->unpack(from, 0, codes(l) + i, c_.chunk);
        });
        return;
    }
    const bool turned = s.by_rows() != c_.by_rows;
    const int runs = s.by_rows() ? length_ : lines_, n = s.by_rows() ? lines_ : length_;
    const int pitch = s.by_rows() ? c_.group : c_.chunk;
    uint8_t *to = turned ? turned_ : codes_;
    for (int i = 0; i < runs; i++) k_.unpack_row(s.storage, run_at(src_, s, i), n, to + i * pitch);
    if (turned) k_.transpose(1, turned_, pitch, runs, n, codes_, code_pitch());
}

void reorder_worker_t::store_codes() {
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
    if (turned) k_.transpose(1, codes_, code_pitch(), n, runs, turned_, pitch);
    const uint8_t *from = turned ? turned_ : codes_;
    for (int i = 0; i < runs; i++) {
        k_.pack_row(s.storage, from + i * pitch, n, run_at(dst_, s, i), how_);
        fetch_tiles(i, runs);
    }
}

void reorder_worker_t::clear_padding(int rows) {
    const panel_codec_t &codec = *c_.dst.codec;
    const int lines = int(round_up(lines_, codec.columns)), length = int(round_up(rows, codec.row_step));
    const int runs = c_.by_rows ? rows : lines_, n = c_.by_rows ? lines_ : rows;
    const int padded_runs = c_.by_rows ? length : lines, padded = c_.by_rows ? lines : length;
    if (runs == padded_runs && n == padded) return;
    for (int i = 0; i < padded_runs; i++) {
        const int used = i < runs ? n : 0;
        if (used < padded) std::memset(codes_ + i * code_pitch() + used, 0, size_t(padded - used));
    }
}

void reorder_worker_t::fetch_tiles(int i, int n) const {
    const reorder_side_conf_t &s = c_.src;
    if (!s.packed || c_.by_rows) return;
    const int64_t bytes = src_.tile_bytes() * c_.chunk / src_.tile_rows();
    const int64_t part = div_up(bytes / 64, n) * 64;
    fetch(src_.tile(line_, pos_) + bytes + i * part, part);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
