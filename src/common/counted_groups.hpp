// SPDX-License-Identifier: Apache-2.0
// Groups of rows of which only the first ones count: the others are padding. Pure functions of index tensors,
// on hosts and devices.
#pragma once

#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {

struct counted_groups_t : row_groups_t {
    const int32_t *counts = nullptr; // [ranks][groups]; null: all rows of a group count
    int64_t ranks = 0;

    // Of `all` rows of group g. Whatever the counts are, the answer is within them.
    MXDNN_HD int64_t rows_that_count(int64_t g, int64_t all) const {
        if (!counts) return all;
        int64_t count = 0;
        for (int64_t r = 0; r < ranks; r++) count += counts[r * groups + g];
        return count < 0 ? 0 : count < all ? count : all;
    }
    // Rows of scales of group g, padding included. Blocks of rows begin anew in each group.
    MXDNN_HD int64_t blocks_of(int64_t g, int64_t block) const { return div_up(group(g).count, block); }
};

} // namespace impl
} // namespace mxdnn
