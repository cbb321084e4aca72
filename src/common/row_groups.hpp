// SPDX-License-Identifier: Apache-2.0
// Which rows belong to which expert: the one reading of offsets, counts, ids and maps that every
// implementation of grouped_matmul uses, on hosts and devices. Pure functions of index tensors.
#pragma once

#include "common/error.hpp"
#include "common/formats/swizzle_128x4.hpp"

namespace mxdnn {
namespace impl {

// Rows [first, first + count) of one expert. The expert is its position in the weights; -1: the rows are not
// computed.
struct row_group_t {
    int64_t first, count;
    int expert;
};

struct row_groups_t {
    mxdnn_row_grouping_t grouping = mxdnn_row_grouping_ends;
    int64_t groups = 0;                 // with row_ids every row is a group
    int64_t rows = 0;                   // the largest possible number; a padded group has rows / groups
    const int32_t *bounds = nullptr;    // ends [groups], starts [groups + 1], counts [groups] or ids [rows];
                                        // null, of padded groups: none of their rows is padding
    const int32_t *group_ids = nullptr; // [groups]; null: group g is expert g
    // Ids are below `ids`. A map, or counting from `first`, turns them into experts of the weights.
    int64_t ids = 0, first_id = 0, experts = 0;
    const int32_t *map = nullptr;

    // Reads again what check() accepted. Whatever the tensors contain by then, the answer stays within the
    // rows and experts that exist.
    MXDNN_HD row_group_t group(int64_t g) const {
        if (grouping == mxdnn_row_grouping_row_ids) return {g, 1, expert_of(bounds[g])};
        int64_t first, end;
        switch (grouping) {
        case mxdnn_row_grouping_starts:
            first = bounds[g];
            end = bounds[g + 1];
            break;
        case mxdnn_row_grouping_padded:
            first = rows / groups * g;
            end = first + (bounds ? within(bounds[g], 0, rows / groups) : rows / groups);
            break;
        default:
            first = g == 0 ? 0 : bounds[g - 1];
            end = bounds[g];
            break;
        }
        first = within(first, 0, rows);
        return {first, within(end, first, rows) - first, expert_of(group_ids ? group_ids[g] : g)};
    }

    // The group of the row, or -1. Bounds that check() accepted ascend.
    MXDNN_HD int64_t group_of(int64_t row) const {
        if (grouping == mxdnn_row_grouping_row_ids) return row;
        int64_t low = 0,
                high = groups; // groups below `low` end at or before the row; groups from `high` on do not
        if (grouping == mxdnn_row_grouping_padded) {
            low = groups && rows ? within(row / (rows / groups), 0, groups) : groups;
            high = low;
        }
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            const row_group_t g = group(middle);
            if (g.first + g.count <= row)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == groups) return -1;
        const row_group_t g = group(low);
        return row >= g.first && row < g.first + g.count ? low : -1;
    }

    // Rows of group g and of all groups before it, each padded to whole tiles of the 128x4 order.
    MXDNN_HD int64_t swizzled_rows(int64_t g) const {
        return round_up(grouping == mxdnn_row_grouping_padded ? rows / groups : group(g).count,
                swizzle_128x4::tile_rows);
    }
    MXDNN_HD int64_t swizzled_rows_before(int64_t g) const {
        if (grouping == mxdnn_row_grouping_padded) return groups ? swizzled_rows(0) * g : 0;
        int64_t before = 0;
        for (int64_t i = 0; i < g; i++) before += swizzled_rows(i);
        return before;
    }

    // Whether every bound, id and map entry is legal, in O(groups + rows) steps.
    status_t check() const;

private:
    MXDNN_HD static constexpr int64_t within(int64_t x, int64_t lowest, int64_t highest) {
        return x < lowest ? lowest : x > highest ? highest : x;
    }
    MXDNN_HD int expert_of(int64_t id) const {
        if (id < 0 || id >= ids) return -1;
        const int64_t e = map ? map[id] : id - first_id;
        return e < 0 || e >= experts ? -1 : int(e);
    }
};

} // namespace impl
} // namespace mxdnn
