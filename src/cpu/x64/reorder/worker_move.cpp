// SPDX-License-Identifier: Apache-2.0
// Codes, scales and zero points as they are.
#include "cpu/x64/reorder/reorder_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

void reorder_worker_t::move(const item_t &next) {
    const dim_t pos = pos_;
    const int length = length_;
    if (!c_.src.packed) src_.read_params(k_, line_, lines_, pos, length, block_params());
    for (int i = 0; i < length; i += reorder_max_length) {
        pos_ = pos + i;
        length_ = std::min(reorder_max_length, length - i);
        // On a packed side they are beside their codes.
        const line_params_t params = params_from(c_.dst, block_params(), i);
        if (c_.src.packed) src_.read_params(k_, line_, lines_, pos_, length_, params);
        if (!move_directly(i + length_ < length ? item_t{line_, pos_ + length_} : next)) {
            load_codes();
            store_codes();
        }
        if (c_.dst.packed) dst_.write_params(k_, line_, lines_, pos_, length_, params, how_);
    }
    if (!c_.dst.packed) dst_.write_params(k_, line_, lines_, pos, length, block_params(), how_);
}

bool reorder_worker_t::move_directly(const item_t &next) {
    if (lines_ != c_.group || length_ % 64 != 0) return false;
    const bool nibbles = c_.src.bits == 4;
    const int halves = nibbles ? 1 : 2;
    if (c_.src.packed && c_.dst.packed) {
        if (!nibbles) return false;
        const int pitch = c_.chunk / 2;
        for_tiles(src_, [&](int l, int i, const code_tiles_t &from) {
            unpack_lines(*c_.src.codec, from, 0, codes_ + l * pitch + i / 2, pitch);
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
        const uint8_t *const then = src_.codes(next.line, next.pos, length_).codes;
        for_tiles(src_, [&](int l, int i, const code_tiles_t &from) {
            for_each_tile(from, [&](int r, int rows, uint8_t *tile) {
                const bool is_last = i + r + rows >= length_;
                k_.write_some(later_, rows * src_.columns() * halves / 2);
                unpack_lines(*c_.src.codec, one_tile(tile, rows),
                        is_last ? then + l / src_.columns() * src_.panel_bytes() - tile : from.tile_bytes,
                        later_.buffer() + l * run + (i + r) * halves / 2, run);
            });
        });
        k_.write_later(later_, how_, dst_.at(line_, pos_), dst_.line_bytes(), run, lines_);
        return true;
    }
    return false;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
