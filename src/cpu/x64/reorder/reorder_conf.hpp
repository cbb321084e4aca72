// SPDX-License-Identifier: Apache-2.0
// How a reorder goes about its work: decided once, from the problem.
#pragma once

#include <memory>

#include "cpu/x64/isa.hpp"
#include "cpu/x64/reorder/recode_bytes.hpp"
#include "cpu/x64/reorder/reorder_side.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// All decisions about a reorder that are made before execution.
struct reorder_conf_t {
    reorder_side_conf_t src, dst;
    const reorder_kernels_t *kernels = nullptr;
    bool moves = false;    // codes, scales and zero points do not change
    bool given = false;    // the caller gives the scales of the destination
    bool measures = false; // the global scale of the destination is computed
    bool by_rows =
            false; // values are processed, or codes moved, in rows of many lines; otherwise 16 lines together
    bool tables = false; // f4_e2m1 or s4 to bf16 by tables of scales
    int chunk = 0;       // positions of a line that are processed together: whole blocks and packed tiles
    int group = 0;       // lines that are processed together, a multiple of reorder_lines
    // Between values and packed panels, if there are kernels: tiles of so many lines at a time, in whole
    // pairs of panels and blocks. The rest is processed in the other ways.
    int panel_lines = 0;

    // Whether a thread continues along lines, or with the next lines. If lines are neighbours in memory, each
    // position is on another page.
    bool along_lines = true;

    // The same between lines of values and lines of codes, which are plain or in another packed layout.
    bool lines_to_panels = false;
    bool codes_in_lines = false;
    // Between values in rows and lines of codes, or panels of another layout, through packed tiles in cache.
    bool turns_tiles = false;
    packed_shape_t tile;
    const panel_codec_t *tile_codec = nullptr;

    // Lines to panels without a buffer for codes: `run` positions at a time, some chunks.
    bool quantises_panels = false;
    int run = 0;

    bool requantises() const { return src.quantised && dst.quantised && !moves; }
    // The part of the work that a thread takes at a time.
    int item_lines() const { return panel_lines ? panel_lines : group; }
    int item_length() const { return run; }
};

reason_t configure(reorder_conf_t &conf, const problem_t &p, cpu_isa_t isa);

// Codes of one format to codes of another: two reorders, with values in a buffer in cache between them.
struct requantise_conf_t {
    static constexpr int most_lines = 64, most_length = reorder_max_block;
    // By bf16, where it holds every value, and by f32. The ends of the scales of e8m0 may need the latter.
    struct way_t {
        reorder_conf_t decode, encode;
    };
    way_t by_bf16, by_f32;
    bool is_bf16 = false;                        // at all
    recode_panels_t *recode_panels = nullptr;    // codes of 4 bits become codes by tables, if it is there
    std::shared_ptr<const recode_bytes_t> bytes; // the same for codes of 8 bits
    recode_bytes_of_panels_t *recode_bytes = nullptr;
    int least_scale = 0; // of e8m0, for bf16
    bool along_lines = true;
    int lines = 0, length = 0;

    int item_lines() const { return lines; }
    int item_length() const { return length; }
};

// `conf` is the configuration of the same problem.
reason_t configure(requantise_conf_t &c, const reorder_conf_t &conf, const problem_t &p, cpu_isa_t isa);

} // namespace x64
} // namespace impl
} // namespace mxdnn
