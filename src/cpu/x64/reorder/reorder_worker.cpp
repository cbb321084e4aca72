// SPDX-License-Identifier: Apache-2.0
// What a thread does to its part of a matrix: which way of the other worker_*.cpp it goes.
#include "cpu/x64/reorder/reorder_worker.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

void reorder_worker_t::set_batch(const dim_t *idx) {
    src_.set_batch(idx);
    dst_.set_batch(idx);
    has_tables_ = c_.tables && src_.lines() * src_.length() >= least_for_tables;
    if (has_tables_) k_.fill_tables(c_.src.format, src_.global(), tables_);
}

void reorder_worker_t::reorder(dim_t line, dim_t pos, const item_t &next) {
    const dim_t end = std::min(line + c_.item_lines(), src_.lines());
    for (line += reorder_panels(line, pos, next); line < end; line += c_.group)
        reorder_group(line, end, pos, next);
}

uint32_t reorder_worker_t::amax(dim_t line, dim_t pos) {
    uint32_t most = 0;
    const dim_t end = std::min(line + c_.item_lines(), src_.lines());
    for (; line < end; line += c_.group) most = std::max(most, amax_of_group(line, end, pos));
    return most;
}

void reorder_worker_t::locate(dim_t line, dim_t end, dim_t pos) {
    line_ = line;
    pos_ = pos;
    lines_ = int(std::min<dim_t>(c_.group, end - line));
    length_ = int(std::min<dim_t>(c_.item_length(), src_.length() - pos));
}

void reorder_worker_t::reorder_group(dim_t line, dim_t end, dim_t pos, const item_t &next) {
    locate(line, end, pos);
    if (c_.moves)
        move(next);
    else if (!c_.dst.quantised)
        dequantise(next);
    else if (c_.by_rows)
        quantise_rows(next);
    else
        quantise();
}

uint32_t reorder_worker_t::amax_of_group(dim_t line, dim_t end, dim_t pos) {
    locate(line, end, pos);
    if (c_.by_rows) return k_.finite_amax(source_rows());
    uint32_t most = 0;
    for (int l = 0; l < lines_; l += reorder_lines) most = std::max(most, k_.finite_amax(source_values(l)));
    return most;
}

int reorder_worker_t::reorder_panels(dim_t line, dim_t pos, const item_t &next) {
    if (!c_.panel_lines) return 0;
    const reorder_side_t &values = c_.dst.quantised ? src_ : dst_, &panels = c_.dst.quantised ? dst_ : src_;
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

} // namespace x64
} // namespace impl
} // namespace mxdnn
