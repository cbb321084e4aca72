// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/reorder/requantise_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

reorder_side_t values_side(const reorder_side_conf_t &c, const exec_ctx_t &ctx, uint8_t *values) {
    const int64_t size = c.bits / 8,
                  pitch = size
                          * (c.along_line ? requantise_conf_t::most_length : requantise_conf_t::most_lines);
    return {c, ctx.memory(MXDNN_ARG_DST)->md, values, c.along_line ? pitch : size,
            c.along_line ? size : pitch};
}

} // namespace

requantise_worker_t::way_t::way_t(
        const conf_t::way_t &way, const exec_ctx_t &ctx, write_t how, reorder_buffers_t &b, uint8_t *values)
    : decode(way.decode, {way.decode.src, ctx}, values_side(way.decode.dst, ctx, values), write_t::cached, b),
      encode(way.encode, values_side(way.encode.src, ctx, values), {way.encode.dst, ctx}, how, b) {}

requantise_worker_t::requantise_worker_t(
        const requantise_conf_t &conf, const exec_ctx_t &ctx, write_t how, requantise_buffers_t &b)
    : c_(conf), how_(how), scales_(b.scales), by_bf16_(conf.by_bf16, ctx, how, b, b.values),
      by_f32_(conf.by_f32, ctx, how, b, b.values), recode_(b.recode) {}

void requantise_worker_t::set_batch(const dim_t *idx) {
    for (way_t *w : {&by_bf16_, &by_f32_}) {
        w->decode.set_batch(idx);
        w->encode.set_batch(idx);
    }
    has_globals_ = false;
}

void requantise_worker_t::read_globals() {
    has_globals_ = true;
    const reorder_side_t &from = by_f32_.decode.src(), &to = by_f32_.encode.dst();
    recode_.from = from.conf().format;
    recode_.to = to.conf().format;
    recode_.from_global = from.global();
    recode_.to_global = to.global();
    recodes_ = c_.recode_panels && from.lines() * from.length() >= least_for_tables
               && recode_t::takes_global(recode_.from_global) && recode_t::takes_global(recode_.to_global);
    if (recodes_) recode_.forget();
}

template <typename F>
void requantise_worker_t::for_items(reorder_worker_t &worker, dim_t line, dim_t pos, F &&body) const {
    const reorder_conf_t &c = worker.conf();
    const dim_t lines = std::min(line + c_.lines, worker.src().lines()),
                length = std::min(pos + c_.length, worker.src().length());
    for (dim_t l = line; l < lines; l += c.item_lines())
        for (dim_t p = pos; p < length; p += c.item_length()) body(l, p);
}

bool requantise_worker_t::fits_bf16(dim_t line, dim_t pos) {
    if (!c_.is_bf16) return false;
    if (c_.least_scale == 0) return true;
    const reorder_side_t &codes = by_bf16_.decode.src();
    const int lines = int(std::min<dim_t>(c_.lines, codes.lines() - line)),
              length = int(std::min<dim_t>(c_.length, codes.length() - pos));
    codes.read_params(*c_.by_bf16.decode.kernels, line, lines, pos, length, {scales_, nullptr, c_.lines});
    int least = c_.least_scale;
    for (int b = 0; b < div_up(length, codes.conf().format.block); b++)
        for (int l = 0; l < lines; l++) least = std::min<int>(least, scales_[b * c_.lines + l]);
    return least == c_.least_scale;
}

requantise_worker_t::way_t &requantise_worker_t::decode(dim_t line, dim_t pos, const item_t &next) {
    way_t &way = fits_bf16(line, pos) ? by_bf16_ : by_f32_;
    way.decode.dst().set_origin(line, pos);
    way.encode.src().set_origin(line, pos);
    for_items(way.decode, line, pos, [&](dim_t l, dim_t p) {
        way.decode.reorder(l, p, {l - line + next.line, p - pos + next.pos});
    });
    return way;
}

bool requantise_worker_t::recode(dim_t line, dim_t pos, const item_t &next) {
    const reorder_side_t &from = by_f32_.decode.src(), &to = by_f32_.encode.dst();
    const int lines = int(std::min<dim_t>(c_.lines, from.lines() - line)),
              length = int(std::min<dim_t>(c_.length, from.length() - pos));
    if (lines % reorder_lines != 0
            || length % std::max({from.conf().format.block, to.conf().format.block, 32}) != 0)
        return false;
    for (int done = 0; done < length; done += recode_t::most_rows) { // a tile of each panel
        const dim_t p = pos + done;
        const int rows = std::min(recode_t::most_rows, length - done), panels = lines / reorder_lines;
        const uint8_t *const tile = from.tile(line, p);
        uint8_t *const result = to.tile(line, p);
        const int64_t ahead = from.tile(next.line, next.pos + done) - tile;
        const bool all = c_.bytes ? c_.recode_bytes(*c_.bytes, tile, from.panel_bytes(), result,
                                 to.panel_bytes(), panels, rows, ahead, how_)
                                  : c_.recode_panels(recode_, tile, from.panel_bytes(), result,
                                          to.panel_bytes(), panels, rows, ahead, how_);
        if (!all) return false;
    }
    return true;
}

void requantise_worker_t::reorder(dim_t line, dim_t pos, const item_t &next) {
    if (!has_globals_) read_globals();
    if ((c_.bytes || (recodes_ && recode_.entries < most_entries())) && recode(line, pos, next)) return;
    reorder_worker_t &encode = decode(line, pos, next).encode;
    for_items(encode, line, pos, [&](dim_t l, dim_t p) { encode.reorder(l, p, {l, p}); });
}

uint32_t requantise_worker_t::amax(dim_t line, dim_t pos) {
    reorder_worker_t &encode = decode(line, pos, {line, pos}).encode;
    uint32_t most = 0;
    for_items(encode, line, pos, [&](dim_t l, dim_t p) { most = std::max(most, encode.amax(l, p)); });
    return most;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
