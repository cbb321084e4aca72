// SPDX-License-Identifier: Apache-2.0
// How a grouped_matmul is divided: pure functions of shape, counts, ISA, caches and threads, so that
// they can be tested and printed without running anything.
//
// Rows are taken in windows: whole experts while their rows fit, a larger expert in parts. A window's
// rows are prepared once; its rows times columns are then divided by work, whichever experts they
// belong to, so that neither many idle experts nor one busy one leaves a thread without work.
#pragma once

#include "cpu/x64/matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

// An expert's rows are only cut where whole calls of either kind of kernel end, so that it shows in no bit
// of the results: multiples of this.
int64_t row_granule(const matmul_kernels_t &kernels);

// Sizes that hold for every execution, whatever its rows: they size the scratchpad.
struct grouped_limits_t {
    int64_t window_rows = 1; // prepared at a time
    int64_t task_rows = 1;   // multiplied at a time by one thread
    int64_t sum_rows = 1;    // rows of the destination in which rows meet at a time
};
// `row_bytes`: of a prepared row; `dst_n`: columns of the destination; a hint of 0 is none.
grouped_limits_t grouped_limits(int64_t K, int64_t row_bytes, int64_t dst_n, int64_t rows_hint,
        const matmul_machine_t &machine, const matmul_kernels_t &kernels);

// Rows [first, first + count) of a window: those of one expert, or a part of them.
struct grouped_segment_t {
    int32_t expert, first, count;
    bool direct;   // decode in registers
    bool in_place; // kernels read the caller's rows
};

struct grouped_shape_t {
    int64_t dst_n = 0;        // columns of the destination
    int64_t column_step = 16; // they come in multiples of this
};

struct grouped_plan_t {
    int64_t columns = 64; // of the destination per task
    int64_t rows = 1;     // of a segment per task
    int64_t tasks = 0;
};

// Tasks that are wanted of a window, for each thread: the last ones to finish keep the others waiting for a
// fraction of one.
constexpr int64_t grouped_tasks_per_thread = 8;
// Tasks of one window. Results do not depend on it.
grouped_plan_t plan_grouped_matmul(const grouped_shape_t &shape, const grouped_segment_t *segments, int64_t n,
        const grouped_limits_t &limits, const matmul_machine_t &machine, const matmul_kernels_t &kernels);

// Parts that the rows of a segment are cut into.
inline int64_t row_parts(const grouped_segment_t &s, int64_t rows) { return div_up(int64_t(s.count), rows); }

// What task t does: segments in the order given, all columns of some rows next to each other. Walks on
// from the task before it.
struct grouped_task_t {
    int64_t segment = 0, part = 0, block = 0; // part of its rows, block of columns
};
class grouped_tasks_t {
public:
    grouped_tasks_t(
            const grouped_plan_t &plan, const grouped_shape_t &shape, const grouped_segment_t *segments)
        : plan_(plan), blocks_(div_up(shape.dst_n, plan.columns)), segments_(segments) {}
    grouped_task_t find(int64_t t);

private:
    int64_t tasks_of(int64_t segment) const { return row_parts(segments_[segment], plan_.rows) * blocks_; }
    const grouped_plan_t plan_;
    const int64_t blocks_;
    const grouped_segment_t *segments_;
    int64_t segment_ = 0, before_ = 0; // tasks before the segment
};

// First task of thread i's share of n: shares are tasks in a row, so that a thread keeps an expert's rows in
// its cache and reads its weights in order, and are worth about the same; i = n gives the end. A thread that
// is done goes on with what others have left.
int64_t first_task(const grouped_plan_t &plan, const grouped_shape_t &shape,
        const grouped_segment_t *segments, int64_t n_segments, int i, int n);

std::string describe(const grouped_plan_t &plan, const grouped_segment_t *segments, int64_t n);

} // namespace x64
} // namespace impl
} // namespace mxdnn
