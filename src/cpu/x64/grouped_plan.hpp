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

// The rows of an expert are cut only at multiples of this, where whole calls of both kinds of kernel end. So
// cuts do not show in the results.
int64_t row_granule(const matmul_kernels_t &kernels);

// Sizes for every execution, whatever its rows. They size the scratchpad.
struct grouped_limits_t {
    int64_t window_rows = 1; // rows that are prepared together
    int64_t task_rows = 1;   // rows that one thread multiplies together
    int64_t sum_rows = 1;    // rows of the destination whose sums are computed together
};
// `row_bytes` is the size of a prepared row, `dst_n` the number of columns of the destination. A hint of 0 is
// no hint.
grouped_limits_t grouped_limits(int64_t K, int64_t row_bytes, int64_t dst_n, int64_t rows_hint,
        const matmul_machine_t &machine, const matmul_kernels_t &kernels);

// Rows [first, first + count) of a window: rows of one expert, all or some of them.
struct grouped_segment_t {
    int32_t expert, first, count;
    bool direct;   // weights are decoded in registers
    bool in_place; // kernels read the caller's rows
};

struct grouped_shape_t {
    int64_t dst_n = 0;        // columns of the destination
    int64_t column_step = 16; // columns come in multiples of this
};

struct grouped_plan_t {
    int64_t columns = 64;  // columns of the destination per task
    int64_t together = 64; // of these, columns that are multiplied together; fewer only with parts of K
    int64_t rows = 1;      // rows of a segment per task
    int64_t joined = 0;    // the last task of a segment has up to so many more
    int64_t tasks = 0;
};

// The wanted number of tasks of a window for each thread. With more tasks, threads wait less for the last
// ones.
constexpr int64_t grouped_tasks_per_thread = 8;
// The tasks of one window. Results do not depend on this division.
grouped_plan_t plan_grouped_matmul(const grouped_shape_t &shape, const grouped_segment_t *segments, int64_t n,
        const grouped_limits_t &limits, const matmul_machine_t &machine, const matmul_kernels_t &kernels);

// The number of parts of the rows of a segment.
inline int64_t row_parts(const grouped_segment_t &s, const grouped_plan_t &p) {
    return parts_of(s.count, p.rows, p.joined);
}

// What task t does. Tasks follow the segments in order; the columns of the same rows are neighbours.
// Continues from the task that was asked for before.
struct grouped_task_t {
    int64_t segment = 0, part = 0, block = 0; // segment, part of its rows, block of columns
};
class grouped_tasks_t {
public:
    grouped_tasks_t(
            const grouped_plan_t &plan, const grouped_shape_t &shape, const grouped_segment_t *segments)
        : plan_(plan), blocks_(div_up(shape.dst_n, plan.columns)), segments_(segments) {}
    grouped_task_t find(int64_t t);

private:
    int64_t tasks_of(int64_t segment) const { return row_parts(segments_[segment], plan_) * blocks_; }
    const grouped_plan_t plan_;
    const int64_t blocks_;
    const grouped_segment_t *segments_;
    int64_t segment_ = 0, before_ = 0; // before_: number of tasks before the segment
};

// The first task of thread i's share; i = n gives the end. A share is a range of tasks, so that a thread
// keeps the rows of an expert in its cache and reads weights in order. Shares have about equal cost. A thread
// that is done takes tasks of others.
int64_t first_task(const grouped_plan_t &plan, const grouped_shape_t &shape,
        const grouped_segment_t *segments, int64_t n_segments, int i, int n);

std::string describe(const grouped_plan_t &plan, const grouped_segment_t *segments, int64_t n);

} // namespace x64
} // namespace impl
} // namespace mxdnn
