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
// rows in a kernel that takes 16.
template <int row_tiles>
struct block_cost_t {
    static_assert(row_tiles == 1 || row_tiles == 2, "those whose costs are known");
    static constexpr int rows = 8 * row_tiles, one = row_tiles == 1 ? 1 : 5, two = 6;

    int terms; // bf16 rows for each row of a group; at most three

    __device__ int blocks(int group_rows) const {
        return terms == 1 ? (group_rows + rows - 1) / rows : (group_rows + rows / terms - 1) / (rows / terms);
    }
    // The rows of a group are divided in multiples of this. A block has room for that many.
    __device__ int step() const { return terms < 3 ? 8 / terms : 1; }
    // The blocks of a group are about equally large: all have more than eight rows, or none has.
    __device__ bool has_two(int group_rows) const { return row_tiles == 2 && group_rows * terms > 8; }
    __device__ int of_group(int group_rows) const {
        return blocks(group_rows) * (has_two(group_rows) ? two : one);
    }
    // The number of units of a group that begin before a position in its costs.
    __device__ int units_before(int group_rows, unsigned position) const {
        return int(has_two(group_rows) ? (position + two - 1) / two : (position + one - 1) / one);
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
    // An item begins here. The last two items of a row block have about equal size.
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
        units = rest >= 2 * units_each_ ? units_each_ : rest > units_each_ ? (rest + 1) / 2 : rest;
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
