// SPDX-License-Identifier: Apache-2.0
// How grouped_gemv divides its work: every cluster gets an equal share, by cost, of the units (panels_t) of
// all row blocks, a stretch of them in a row, which it walks item after item.
#pragma once

#include "gpu/cuda/device/packed/work_list.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Blocks of up to 8 * row_tiles rows of bf16, and the cost of a unit of them. It is lower for up to eight
// rows in a kernel that takes 16. With few rows for each group, other blocks wait for the longer ones; with
// more, a multiprocessor has blocks of both kinds.
template <int row_tiles>
struct block_cost_t {
    static_assert(row_tiles == 1 || row_tiles == 2, "those whose costs are known");
    static constexpr int rows = 8 * row_tiles, one = row_tiles == 1 ? 1 : 4;

    int terms;     // bf16 rows for each row of a group; at most three
    bool few_rows; // there are less than four rows for each group

    __device__ block_cost_t(const matmul_args_t &a, int of_row)
        : terms(of_row), few_rows(int64_t(a.M) * of_row < 4 * a.groups.groups) {}

    __device__ int blocks(int group_rows) const {
        return terms == 1 ? (group_rows + rows - 1) / rows : (group_rows + rows / terms - 1) / (rows / terms);
    }
    // The rows of a group are divided in multiples of this. A block has room for that many.
    __device__ int step() const { return terms < 3 ? 8 / terms : 1; }
    // The blocks of a group are about equally large: all have more than eight rows, or none has.
    __device__ bool has_two(int group_rows) const { return row_tiles == 2 && group_rows * terms > 8; }
    __device__ int of_group(int group_rows) const {
        return blocks(group_rows) * (has_two(group_rows) ? few_rows ? 6 : 5 : one);
    }
    // The number of units of a group that begin before a position in its costs.
    __device__ int units_before(int group_rows, unsigned position) const {
        return int(!has_two(group_rows) ? (position + one - 1) / one
                   : few_rows           ? (position + 5) / 6
                                        : (position + 4) / 5);
    }
};

// The beginning and the end of a stretch: a group, and a unit among those of all row blocks of the group. The
// units that begin in a stretch belong to it.
struct stretch_place_t {
    int group = -1, unit = 0; // group -1: there is no work
    int last_group = 0, end = 0;
};

// The stretch of a cluster, computed by a warp.
template <int row_tiles>
__device__ stretch_place_t place_of_stretch(const work_list_t &list, const matmul_args_t &args,
        int units_block, const block_cost_t<row_tiles> &cost, int cluster, int clusters) {
    const unsigned block = unsigned(units_block), all = unsigned(list.shares(args)) * block,
                   each = all / unsigned(clusters),
                   more = all - each * unsigned(clusters); // the first `more` stretches have one more
    const unsigned begin = each * unsigned(cluster) + min(unsigned(cluster), more),
                   end = begin + each + (unsigned(cluster) < more);
    stretch_place_t place;
    if (begin == end) return place;
    const auto units_before = [&](int group, unsigned position) {
        return cost.units_before(list.rows[group], position - list.first_share[group] * block);
    };
    place.group = list.group_of(args, int(begin / block));
    place.unit = units_before(place.group, begin);
    place.last_group = list.group_of(args, int((end - 1) / block));
    place.end = units_before(place.last_group, end);
    return place;
}

// The units of an item, of so many that are left. The last two items of a row block have about equal size.
__device__ inline int units_of_item(int rest, int units_each) {
    return rest >= 2 * units_each ? units_each : rest > units_each ? (rest + 1) / 2 : rest;
}

// A call of a token or two: each group with rows is one row block, and the costs of all are equal. So a warp
// finds the beginning of its stretch in the bounds of the groups, in few instructions, without a list.
struct few_rows_t {
    static constexpr int most_rows = 8, most_groups = 128;

    // For each number of groups with rows, lane by lane: the stretch's first and last group among them, its
    // first unit and its end.
    uint32_t groups = 0, units = 0;

    __device__ static bool fit(const matmul_args_t &a) {
        const row_groups_t &g = a.groups;
        return a.grouped && a.M <= most_rows && a.src_terms == 1 && g.groups <= most_groups
               && (g.grouping == mxdnn_row_grouping_ends || g.grouping == mxdnn_row_grouping_starts)
               && a.panel_end <= 0xFFFF && !g.group_ids && !g.map && g.first_id == 0 && g.ids >= g.groups
               && g.experts >= g.groups;
    }
    __device__ void prepare(unsigned units_block, unsigned cluster, unsigned clusters) {
        const unsigned all = min(threadIdx.x % 32, unsigned(most_rows)) * units_block, each = all / clusters,
                       more = all - each * clusters; // the first `more` stretches have one more
        const unsigned begin = each * cluster + min(cluster, more), end = begin + each + (cluster < more),
                       last = (max(end, 1u) - 1) / units_block;
        groups = begin / units_block | last << 8 | (begin == end ? 1u << 16 : 0);
        units = (begin - begin / units_block * units_block) | (end - last * units_block) << 16;
    }
    // The stretch, and its first row block, by a warp.
    __device__ stretch_place_t place(const matmul_args_t &a, row_block_t &block) const {
        constexpr int rounds = most_groups / 32;
        const int lane = int(threadIdx.x) % 32, count = int(a.groups.groups), all = int(a.groups.rows);
        const bool starts = a.groups.grouping == mxdnn_row_grouping_starts;
        const int32_t *const ends = a.groups.bounds + starts;
        int first[rounds], rows[rounds];
        unsigned busy[rounds];
#pragma unroll
        for (int j = 0; j < rounds; j++) {
            const int g = j * 32 + lane;
            first[j] = g < count && (starts || g > 0) ? ends[g - 1] : 0;
            rows[j] = g < count ? ends[g] : 0;
        }
        int number = 0;
#pragma unroll
        for (int j = 0; j < rounds; j++) {
            const int from = min(max(first[j], 0), all), to = min(max(rows[j], from), all);
            first[j] = max(from, a.row_begin);
            rows[j] = max(min(to, a.row_begin + a.M) - first[j], 0);
            busy[j] = __ballot_sync(~0u, rows[j] > 0);
            number += __popc(busy[j]);
        }
        const unsigned g = __shfl_sync(~0u, groups, number), u = __shfl_sync(~0u, units, number);
        stretch_place_t place;
        int before = 0, group = -1, last = -1, first_row = 0, group_rows = 0;
#pragma unroll
        for (int j = 0; j < rounds; j++) {
            const int rank = before + __popc(busy[j] & ((1u << lane) - 1));
            before += __popc(busy[j]);
            if (rows[j] <= 0) continue;
            if (rank == int(g & 255)) group = j * 32 + lane, first_row = first[j], group_rows = rows[j];
            if (rank == int(g >> 8 & 255)) last = j * 32 + lane;
        }
        const unsigned has_first = __ballot_sync(~0u, group >= 0), has_last = __ballot_sync(~0u, last >= 0);
        if (g >> 16 || !has_first || !has_last) return place;
        const int from = __ffs(int(has_first)) - 1;
        place.group = __shfl_sync(~0u, group, from);
        place.last_group = __shfl_sync(~0u, last, __ffs(int(has_last)) - 1);
        place.unit = int(u & 0xFFFF), place.end = int(u >> 16);
        block = {place.group, __shfl_sync(~0u, first_row, from), __shfl_sync(~0u, group_rows, from)};
        return place;
    }
    // The number of units of the first item.
    __device__ static int first_units(const stretch_place_t &place, int units_block, int units_each) {
        if (place.group < 0) return 0;
        return units_of_item(
                (place.group == place.last_group ? place.end : units_block) - place.unit, units_each);
    }
};

// Iterates over the items of a stretch. Used by whole warps.
template <int panels, int row_tiles>
struct stretch_t {
    int first, units = 0; // of this item: the first unit of its row block, and the number of units; 0 units:
                          // the end

    __device__ stretch_t(const work_list_t &list, const matmul_args_t &args,
            const panels_t<panels> &panel_map, const block_cost_t<row_tiles> &cost,
            const stretch_place_t &place)
        : list_(list), args_(args), cost_(cost), units_block_(panel_map.units()),
          units_each_(panel_map.units_each()), unit_(place.unit), last_group_(place.last_group),
          end_(place.end) {
        if (place.group < 0) return;
        enter(place.group);
        choose();
    }
    __device__ void next() {
        unit_ += units;
        choose();
    }
    __device__ row_block_t block() const { return list_.block_of(group_, at_, blocks_, cost_.step()); }
    // Whether the row block may have more than eight rows.
    __device__ bool has_two() const { return cost_.has_two(list_.rows[group_]); }

private:
    const work_list_t &list_;
    const matmul_args_t &args_;
    block_cost_t<row_tiles> cost_;
    int units_block_, units_each_; // units of a row block; units of an item, at most
    int group_, blocks_, at_;      // of this item: the group, its row blocks, and the number of its row block
    int unit_;                     // its first unit among those of all row blocks
    int last_group_, end_;         // the last group of the stretch, and the end in that group

    __device__ void enter(int group) { group_ = group, blocks_ = cost_.blocks(list_.rows[group]); }
    // An item begins here.
    __device__ void choose() {
        units = 0;
        if (group_ == last_group_ && unit_ >= end_) return;
        if (unit_ == blocks_ * units_block_) {
            enter(list_.group_of(args_, list_.first_share[group_ + 1]));
            unit_ = 0;
        }
        at_ = unit_ < units_block_ ? 0 : unit_ / units_block_;
        first = unit_ - at_ * units_block_;
        const int rest = min(units_block_ - first, group_ == last_group_ ? end_ - unit_ : units_block_);
        units = units_of_item(rest, units_each_);
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
