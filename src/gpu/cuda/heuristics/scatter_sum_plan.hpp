// SPDX-License-Identifier: Apache-2.0
// Rows that meet (SCATTER_IDX) wait in the scratchpad to be added up, in f32: how many columns of them at a
// time. A pure function of sizes.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// The room for such rows: what so many rows need, within bounds; runtime_dim: any number. Less room means
// more passes, and each leaves multiprocessors without work at its end. 4096 tokens with four rows of 2880
// take two passes.
constexpr int64_t least_sum_bytes = int64_t(32) << 20, most_sum_bytes = int64_t(128) << 20;
// Who says by max_rows_hint how many rows there will be gets room for them, up to this.
constexpr int64_t most_hinted_bytes = int64_t(1) << 30;
int64_t sum_bytes(int64_t rows, int64_t columns, int64_t most = most_sum_bytes);

struct sum_plan_t {
    // The size of the chains of rows, which come first in the scratchpad: the successor of each row, and the
    // heads. 0: there are so few rows that they are searched.
    int64_t next_bytes, first_bytes;
    int panels;         // panels of columns at a time; 0: there is not even room for one
    int64_t row_stride; // of the rows that wait, in elements
};

// The plan for so many bytes. Panels are `step` columns of dst each; the last one may be narrower.
sum_plan_t plan_sums(int64_t rows, int64_t dst_rows, int64_t columns, int64_t step, int64_t bytes);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
