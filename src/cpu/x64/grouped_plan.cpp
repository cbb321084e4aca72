// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/grouped_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

// More rows at a time gain nothing: decoding an expert again is then a few percent of the work.
constexpr int64_t most_window_rows = 4096;
constexpr int64_t most_window_bytes = 48 << 20; // prepared rows and their f32 results
constexpr int64_t most_sum_bytes = 24 << 20;
// The cost of decoding a panel, in rows multiplied by a decoded panel.
constexpr int64_t decoding_rows = 16;

int64_t within(int64_t x, int64_t low, int64_t high) { return std::min(std::max(x, low), high); }

} // namespace

int64_t row_granule(const matmul_kernels_t &kernels) {
    return std::lcm<int64_t>(kernels.direct_rows, kernels.row_step);
}

grouped_limits_t grouped_limits(int64_t K, int64_t row_bytes, int64_t dst_n, int64_t rows_hint,
        const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    grouped_limits_t l;
    const int64_t granule = row_granule(kernels);
    l.task_rows = round_up(max_plan_rows(K, 0, machine, kernels), granule);
    const int64_t result_bytes = int64_t(sizeof(float)) * std::max<int64_t>(dst_n, 1);
    l.window_rows = within(most_window_bytes / std::max({row_bytes, result_bytes, int64_t(1)}), l.task_rows,
            most_window_rows);
    l.sum_rows = within(most_sum_bytes / result_bytes, 64, most_window_rows);
    if (rows_hint > 0) {
        const int64_t hint = std::max(rows_hint, granule);
        l.window_rows = std::min(l.window_rows, hint);
        l.task_rows = std::min(l.task_rows, round_up(hint, granule));
        l.sum_rows = std::min(l.sum_rows, hint);
    }
    return l;
}

grouped_plan_t plan_grouped_matmul(const grouped_shape_t &s, const grouped_segment_t *segments, int64_t n,
        const grouped_limits_t &limits, const matmul_machine_t &machine, const matmul_kernels_t &kernels) {
    grouped_plan_t p;
    bool all_direct = true;
    int64_t most = 1;
    for (int64_t i = 0; i < n; i++) {
        all_direct = all_direct && segments[i].direct;
        most = std::max<int64_t>(most, segments[i].count);
    }
    // Calls of gemm kernels take several panels at a time. A call with fewer panels costs as much.
    const int64_t panels = all_direct ? 1 : kernels.gemm_panels;
    const int64_t least = std::max(s.column_step, panels * panel_columns);
    const int64_t granule = row_granule(kernels);
    p.joined = joined_rows(kernels);
    const auto count = [&](int64_t columns) {
        int64_t tasks = 0;
        for (int64_t i = 0; i < n; i++) tasks += row_parts(segments[i], p);
        return tasks * div_up(s.dst_n, columns);
    };
    // Parts of about equal length of the longest segment, unless others would have more parts: each part
    // reads and decodes its weights.
    p.rows = limits.task_rows;
    const int64_t fewest = count(s.dst_n), parts = parts_of(most, limits.task_rows, p.joined);
    p.rows = round_up(div_up(std::max<int64_t>(most - p.joined, 1), parts), granule);
    if (count(s.dst_n) > fewest) p.rows = limits.task_rows;
    p.columns = plan_columns(
            least, s.column_step, wanted_tasks(grouped_tasks_per_thread, machine.threads), count);
    // With few columns and many rows, parts of the rows decode the same weights. This is better than idle
    // threads.
    while (p.rows / 2 >= granule && count(p.columns) < 2 * machine.threads)
        p.rows = round_up(p.rows / 2, granule);
    p.together = p.columns;
    if (kernels.k_part && most > kernels.rows_of_all_k)
        p.columns *= plan_tasks_together(count(p.columns), machine.threads);
    p.tasks = count(p.columns);
    return p;
}

int64_t first_task(const grouped_plan_t &p, const grouped_shape_t &shape, const grouped_segment_t *segments,
        int64_t n_segments, int i, int n) {
    if (i >= n) return p.tasks;
    // Every column of a part has the same cost. The last part of a segment may be short.
    const int64_t blocks = div_up(shape.dst_n, p.columns);
    const auto whole = [&](const grouped_segment_t &s) {
        return decoding_rows + std::min<int64_t>(p.rows, s.count);
    };
    const auto cost = [&](const grouped_segment_t &s) { return s.count + row_parts(s, p) * decoding_rows; };
    int64_t total = 0, tasks = 0;
    for (int64_t s = 0; s < n_segments; s++) total += cost(segments[s]);
    double left = double(total) * i / n; // work before the share
    for (int64_t s = 0; s < n_segments; s++) {
        const grouped_segment_t &one = segments[s];
        const int64_t parts = row_parts(one, p), before_last = (parts - 1) * whole(one);
        if (double(cost(one)) >= left) {
            const double at =
                    left <= double(before_last)
                            ? left / double(whole(one))
                            : double(parts - 1)
                                      + (left - double(before_last)) / double(cost(one) - before_last);
            return std::min(tasks + int64_t(std::llround(at * double(blocks))), p.tasks);
        }
        left -= double(cost(one));
        tasks += parts * blocks;
    }
    return p.tasks;
}

grouped_task_t grouped_tasks_t::find(int64_t t) {
    if (t < before_) segment_ = before_ = 0;
    while (t >= before_ + tasks_of(segment_)) before_ += tasks_of(segment_++);
    const int64_t rest = t - before_;
    return {segment_, rest / blocks_, rest % blocks_};
}

std::string describe(const grouped_plan_t &p, const grouped_segment_t *segments, int64_t n) {
    int64_t rows = 0, direct = 0;
    for (int64_t i = 0; i < n; i++) {
        rows += segments[i].count;
        direct += segments[i].direct;
    }
    return "experts" + std::to_string(n) + ":direct" + std::to_string(direct) + ":rows" + std::to_string(rows)
           + "/" + std::to_string(p.rows) + ":columns" + std::to_string(p.columns) + ":tasks"
           + std::to_string(p.tasks);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
