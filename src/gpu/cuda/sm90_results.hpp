// SPDX-License-Identifier: Apache-2.0
// The destination as the Hopper kernels write it: rows of high precision in place, or rows of f32 in the
// scratchpad, so many at a time, which device/kernels/quantise_rows.cu makes codes of.
#pragma once

#include "common/primitive.hpp"
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Whether rows of this destination can be written or quantised; else the reason to decline.
reason_t check_sm90_results(const problem_t &p);
// Whether they have to be quantised.
bool sm90_makes_codes(const problem_t &p);
// What is known at execution only.
bool sm90_takes_results(const exec_ctx_t &ctx);

// Of a problem whose results are quantised: how many rows there is room for, what they take of the
// scratchpad, and how far they are apart there, in elements.
int64_t sm90_results_at_once(const problem_t &p);
int64_t sm90_results_bytes(const problem_t &p);
int64_t sm90_results_stride(const problem_t &p);

// Rows [first, first + count) of the destination, from their values in f32, where they are, to codes. groups:
// rows that belong to none of them stay as they are; null: all belong.
status_t quantise_sm90_rows(const exec_ctx_t &ctx, const void *values, int64_t first, int64_t count,
        const row_groups_t *groups = nullptr);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
