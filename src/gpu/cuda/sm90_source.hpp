// SPDX-License-Identifier: Apache-2.0
// The source as the Hopper kernels read it: rows of bf16, in place where they are that, else made in the
// scratchpad by device/kernels/sm90/source_rows.cu, so many at a time.
#pragma once

#include "common/primitive.hpp"
#include "gpu/cuda/sm90_args.hpp"
#include "gpu/cuda/source_rows_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Whether rows of this source can be read or made; else the reason to decline.
reason_t check_sm90_source(const problem_t &p);
// Whether they have to be made.
bool sm90_makes_rows(const problem_t &p);

// Of a problem whose rows are made: how many at a time, and what they take of the scratchpad.
int64_t sm90_rows_at_once(const problem_t &p);
int64_t sm90_rows_bytes(const problem_t &p);

// Makes rows [first, first + count) of the source, at most sm90_rows_at_once(), where `space` begins, and
// tells `a` of them.
status_t make_sm90_rows(
        const exec_ctx_t &ctx, int64_t first, int64_t count, char *space, sm90::matmul_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
