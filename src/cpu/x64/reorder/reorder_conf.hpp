// SPDX-License-Identifier: Apache-2.0
// How a reorder goes about its work: decided once, from the problem.
#pragma once

#include "cpu/x64/isa.hpp"
#include "cpu/x64/reorder/reorder_side.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// Everything of a reorder that is known before it is executed.
struct reorder_conf_t {
    reorder_side_conf_t src, dst;
    const reorder_kernels_t *kernels = nullptr;
    bool moves = false;    // codes, scales and zero points stay as they are
    bool given = false;    // the caller's scales are those of the destination
    bool measures = false; // the destination's global scale is computed
    bool by_rows =
            false;       // values are worked on, or codes moved, a row of many lines at a time; else 16 lines
    bool tables = false; // f4_e2m1 to bf16 by tables of each scale
    int chunk = 0;       // positions of a line that are worked on at a time: whole blocks and packed tiles
    int group = 0;       // lines that are worked on together, a multiple of reorder_lines
    // Between values and packed panels, where there are kernels for it: a tile each of so many lines at a
    // time, whole pairs of panels and blocks; what is left goes the other way.
    int panel_lines = 0;

    // Whether a thread goes on along lines, or to the next ones: where lines stand side by side, a position
    // is on another page.
    bool along_lines = true;

    // Or the same between lines of values and lines of codes, which are packed in another layout, or not.
    bool lines_to_panels = false;
    bool codes_in_lines = false;
    // Or between values in rows and lines of codes, or panels of another layout, by way of packed tiles in
    // cache.
    bool turns_tiles = false;
    packed_shape_t tile;
    const panel_codec_t *tile_codec = nullptr;

    // What a thread takes at a time.
    int item_lines() const { return panel_lines ? panel_lines : group; }
};

reason_t configure(reorder_conf_t &conf, const problem_t &p, cpu_isa_t isa);

} // namespace x64
} // namespace impl
} // namespace mxdnn
