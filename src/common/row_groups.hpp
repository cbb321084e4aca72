// SPDX-License-Identifier: Apache-2.0
// Which rows belong to which expert: the one reading of offsets, counts, ids and maps that every
// implementation of grouped_matmul uses. Pure functions of index tensors on the host.
#pragma once

#include "common/error.hpp"

namespace mxdnn {
namespace impl {

// Rows [first, first + count) of one expert, counted in the weights that are here; -1: nobody computes them.
struct row_group_t {
    int64_t first, count;
    int expert;
};

struct row_groups_t {
    mxdnn_row_grouping_t grouping = mxdnn_row_grouping_ends;
    int64_t groups = 0;                 // row_ids: every row is one
    int64_t rows = 0;                   // that there are at most: a padded group has rows / groups
    const int32_t *bounds = nullptr;    // ends [groups], starts [groups + 1], counts [groups] or ids [rows]
    const int32_t *group_ids = nullptr; // [groups]; null: group g is expert g
    // Ids are below `ids` and become experts of the weights through a map, or by counting from `first`.
    int64_t ids = 0, first_id = 0, experts = 0;
    const int32_t *map = nullptr;

    // What check() accepted, read once more; whatever the tensors hold, the answer stays within the rows
    // and experts that there are.
    row_group_t group(int64_t g) const;

    // Rows before group g where each group is padded to whole tiles of the 128x4 order of scales.
    int64_t swizzled_rows_before(int64_t g) const;

    // Whether every bound, id and map entry is a legal one, in O(groups + rows) steps.
    status_t check() const;

private:
    int expert_of(int64_t id) const;
};

} // namespace impl
} // namespace mxdnn
