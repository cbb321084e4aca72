// SPDX-License-Identifier: Apache-2.0
// Shared memory, threads and registers of gemm for each format and width.
#pragma once

#include <cstddef>
#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/fp8_kept.cuh"
#include "gpu/cuda/device/mma/decode_f4_e5m2.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/packed/work_list.cuh"
#include "gpu/cuda/heuristics/gemm_f4.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// An item of a CTA: a row block and a group of panels.
struct alignas(16) gemm_item_t {
    row_block_t block;
    int panel_group;
};

struct gemm_t {
    static constexpr int panel_columns = packed::panel_columns;
    static constexpr int row_step = 16; // row blocks are multiples of this
    static constexpr int group = 128;   // threads of a warpgroup
    // Warps of the producer: 0 and 1 copy weights, 2 copies the source, 3 reads the scales for FP8.
    static constexpr int weight_warps = 2, scales_warp = 3;
    static constexpr int tile_rows = 64, src_row_bytes = 128; // of a stage
    static constexpr int max_stages = 8;
    static constexpr int known_items = 32; // items that a CTA stores (gemm_items.cuh)
    // Teams of consumers store sums, rows_out rows at a time if K is not shared.
    static constexpr int max_teams = 2, rows_out = 32;
    static constexpr int shared_budget = 227 * 1024;
    // Named barriers; 0 is the barrier of all threads.
    static constexpr int max_consumers = 4, team_barrier = 1, group_barrier = team_barrier + max_teams,
                         turn_barrier = group_barrier + max_consumers;
};

// `width` is the n of wgmma: the largest number of source rows of a row block. Few rows are little work for
// the tensor cores and as much decoding as many. So four consumers with one panel each hide more latency than
// two with two.
template <typename format, int width>
struct gemm_shared_t {
    using k = gemm_t;
    // The rows of K in a stage fill src_row_bytes, as bf16 or as FP8.
    using fp8_unit_t = typename fp8_units_of<format, width>::type;
    // by_blocks: the sums of a block of K meet its scales. searches: warps look at the scales of a stage
    // first.
    static constexpr bool by_blocks = std::is_same_v<format, f4_e5m2_t>,
                          searches = !std::is_void_v<fp8_unit_t>, fp8 = by_blocks || searches;
    static constexpr int stage_tiles = fp8 ? 2 : 1, stage_rows = stage_tiles * k::tile_rows;
    static constexpr bool by_products = std::is_same_v<format, f4_by_products_t>,
                          by_tables = std::is_same_v<format, f4_by_tables_t>,
                          kept = std::is_same_v<format, f4_kept_t>;
    // Three consumers with a panel each: the registers of four would not hold sums of FP8 beside those in
    // f32, and those of two that have two panels hide less latency. Two where blocks are widest.
    static constexpr bool lone = by_products || by_tables || kept;
    // Consumers start products in turn (turn_t), and rows are copied in two parts.
    static constexpr bool turns = kept && width > 144;
    // CTAs of a cluster that have the same source rows, and send them to each other.
    static constexpr int pair = lone ? 1 : gemm_pair(width), panels = lone ? f4_panels(width) : 4 / pair;
    static constexpr int panels_each = width <= 64 || pair == 2 || lone ? 1 : 2,
                         consumer_groups = panels / panels_each;
    static_assert(width % k::row_step == 0 && width * panels_each <= 288, "sums fill the registers");
    static constexpr int consumers = consumer_groups * k::group, threads = consumers + k::group;
    // A team has two panels, or those of all lone consumers. In shared memory a row has 4 floats more than
    // columns, so that the lanes of a fragment write to different banks.
    static constexpr int team_panels = lone ? panels : 2, teams = panels / team_panels,
                         team_groups = consumer_groups / teams, team = team_groups * k::group,
                         out_pitch = team_panels * k::panel_columns + 4;
    // Rows of a tensor copy.
    static constexpr int box_rows = turns ? width / 2 : gemm_box_rows(width),
                         box_bytes = box_rows * k::src_row_bytes;
    // Registers of a thread. They move from the producer, which needs few, to the consumers, within the
    // number at launch: an equal share of 65536 for every thread, in steps of 8. (A thread that asks for more
    // waits forever.)
    static constexpr int launch_registers = 65536 / threads / 8 * 8;
    static constexpr bool widest = width > 256 || (lone && consumer_groups == 2);
    // Warps of the producer that copy weights, and that look at scales.
    static constexpr int weight_warps = lone ? 1 : k::weight_warps, scale_warps = lone ? panels : 1;
    static_assert(panels % scale_warps == 0, "the same panels for each");
    static constexpr bool widest_three = consumer_groups == 3 && width > 160;
    // Rows of the source may come meanwhile (matmul_args_t::makers). With the widest blocks of three
    // consumers ptxas would serialise products (C7511).
    static constexpr bool may_come = lone && !widest_three;
    static constexpr int producer_registers = consumer_groups == 4 || widest_three ? 32
                                              : widest                             ? 40
                                                                                   : 56,
                         consumer_registers = consumer_groups == 4   ? 112
                                              : widest_three         ? 160
                                              : consumer_groups == 3 ? 152
                                              : widest               ? 232
                                                                     : 224;
    static_assert(
            k::group * producer_registers + consumers * consumer_registers <= threads * launch_registers,
            "registers");
    // Factors of rows: those of a consumer's block, or for FP8 those of an item, for all consumers. The
    // latter are written with its last stage, when the ring has been through all earlier items but the last
    // `stages`.
    static constexpr int factor_sets = searches ? (width > 160 ? 5 : width >= 144 ? 6 : 9) : consumer_groups;
    // Tables that decode weights, for those of n64_f4. (Without them ptxas would serialise products of
    // n64_b4: C7511.)
    static constexpr int tables = searches && !by_products && !kept ? f4_lookup_t::tables : 0;
    struct head_t {
        // A pair of CTAs has `empty` for the rows of both. Weights come when their own CTA has `read` them.
        uint64_t full[k::max_stages], empty[k::max_stages], read[k::max_stages], seen[k::max_stages];
        alignas(8) float row_factors[factor_sets][width];
        work_list_t list;
        gemm_item_t items[k::known_items];
        uint2 fp8_tables[tables + 1];
    };
    // Relative to the first barrier, with which the head begins.
    static constexpr int empty_offset = int(offsetof(head_t, empty)),
                         read_offset = pair > 1 ? int(offsetof(head_t, read)) : empty_offset,
                         factors_offset = int(offsetof(head_t, row_factors)),
                         tables_offset = int(offsetof(head_t, fp8_tables));
    static constexpr int head_bytes = (int(sizeof(head_t)) + 1023) / 1024 * 1024;
    static constexpr int out_bytes = k::rows_out * out_pitch * 4; // of a team
    static constexpr int src_bytes = width * k::src_row_bytes;
    static constexpr int step_bytes = k::tile_rows * k::panel_columns * format::bits / 8;
    static constexpr int facts_bytes = [] {
        if constexpr (searches) return int(sizeof(typename fp8_unit_t::facts_t));
        return 0;
    }();
    // Scales and codes of a panel in a stage, and the facts about them.
    static constexpr int packed_bytes = stage_tiles * (format::max_header + step_bytes),
                         slot_bytes = packed_bytes + facts_bytes;
    static constexpr int stage_bytes = (src_bytes + panels * slot_bytes + 1023) / 1024 * 1024;
    static constexpr int fit = (k::shared_budget - head_bytes - teams * out_bytes) / stage_bytes;
    static constexpr int stages = fit < k::max_stages ? fit : k::max_stages;
    // For the width of experts with few rows: each slot of the ring has its own code. This is less work in a
    // stage, but more code to fetch in the beginning.
    static constexpr bool unrolls = width == 48 && !fp8;
    // The next width of blocks below `rows`, see gemm_narrower().
    static constexpr int narrower(int rows) {
        const int less = rows - 8;
        return !by_blocks ? gemm_narrower(width, rows) : less >= width / 2 ? less : 0;
    }
    // For the widths that keep the tensor cores busy: half of a stage is decoded while the other half is
    // multiplied, which takes more instructions.
    static constexpr bool decodes_ahead = pair > 1;
    // For the widths with items so short that finding one matters.
    static constexpr bool short_items = consumer_groups == 4;
    static constexpr int bytes = head_bytes + stages * stage_bytes + teams * out_bytes;
    static_assert(stages >= 4, "too few stages to hide the latency of memory");
    static_assert(!searches || stages < factor_sets, "factors of an item that is not finished would be lost");
    // Finished rows of a panel on their way to dst, 64 at a time, in the swizzle of the source.
    static constexpr int tile_bytes = 64 * 2 * k::panel_columns;
    static_assert(tile_bytes * consumer_groups <= teams * out_bytes, "a tile of each consumer");
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
