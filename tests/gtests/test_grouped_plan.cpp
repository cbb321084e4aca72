// SPDX-License-Identifier: Apache-2.0
// How a grouped_matmul is divided, without running one: the plan is a function of counts and machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "cpu/x64/grouped_plan.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

matmul_machine_t machine(int threads) { return {cpu_isa_t::avx512_core_amx, 32 << 10, 2 << 20, threads}; }

matmul_kernels_t kernels() {
    matmul_kernels_t k;
    k.direct_rows = 12;
    k.dense_rows = 32;
    k.dense_panels = 4;
    k.compute_bytes = 2;
    return k;
}

using segments_t = std::vector<grouped_segment_t>;
segments_t segments(const std::vector<int> &counts) {
    segments_t s;
    int first = 0;
    for (size_t e = 0; e < counts.size(); e++) {
        if (counts[e] > 0) s.push_back({int32_t(e), first, counts[e], counts[e] <= 2, false});
        first += counts[e];
    }
    return s;
}

grouped_shape_t shape(int64_t dst_n, int64_t column_step = 16) {
    grouped_shape_t s;
    s.dst_n = dst_n;
    s.column_step = column_step;
    return s;
}

grouped_limits_t limits(int64_t hint = 0) { return grouped_limits(2880, 5760, 2880, hint, machine(16), kernels()); }

grouped_plan_t plan(const grouped_shape_t &s, const segments_t &g, int threads) {
    return plan_grouped_matmul(s, g.data(), int64_t(g.size()), limits(), machine(threads), kernels());
}

// Every row and column of every segment belongs to one task.
void expect_cover(const grouped_shape_t &s, const segments_t &g, const grouped_plan_t &p) {
    std::vector<std::vector<int>> seen;
    const int64_t blocks = div_up(s.dst_n, p.columns);
    for (const auto &one : g) seen.emplace_back(size_t(row_parts(one, p.rows) * blocks), 0);
    grouped_tasks_t tasks(p, s, g.data());
    for (int64_t t = 0; t < p.tasks; t++) {
        const grouped_task_t task = tasks.find(t);
        ASSERT_LT(task.segment, int64_t(g.size()));
        seen[size_t(task.segment)][size_t(task.part * blocks + task.block)]++;
    }
    for (const auto &one : seen)
        for (int n : one) EXPECT_EQ(n, 1);
}

TEST(grouped_plan, tasks_cover_everything_once) {
    std::mt19937 rng(11);
    for (int round = 0; round < 200; round++) {
        std::vector<int> counts(1 + rng() % 40);
        for (int &c : counts) c = rng() % 3 ? int(rng() % 40) : rng() % 5 ? 0 : int(rng() % 2000);
        const segments_t g = segments(counts);
        if (g.empty()) continue;
        const grouped_shape_t s = shape(1 + int64_t(rng() % 700), rng() % 2 ? 16 : 32);
        const grouped_plan_t p = plan(s, g, 1 + int(rng() % 16));
        EXPECT_LE(p.columns, max_plan_columns);
        EXPECT_EQ(p.columns % s.column_step, 0);
        EXPECT_LE(p.rows, limits().task_rows);
        expect_cover(s, g, p);
    }
}

// The largest share of a thread that takes the next task whenever it is free, beside an equal share.
double imbalance(const grouped_shape_t &s, segments_t g, int threads) {
    std::sort(g.begin(), g.end(), [](const auto &a, const auto &b) { return a.count > b.count; });
    const grouped_plan_t p = plan(s, g, threads);
    grouped_tasks_t tasks(p, s, g.data());
    std::vector<double> busy(size_t(threads), 0.);
    double total = 0;
    for (int64_t t = 0; t < p.tasks; t++) {
        const grouped_task_t task = tasks.find(t);
        const grouped_segment_t &one = g[size_t(task.segment)];
        const double rows = double(one.direct ? one.count : std::min<int64_t>(p.rows, one.count - task.part * p.rows));
        // Decoding a panel is worth some rows.
        const double cost = (rows + 16) * double(std::min(p.columns, s.dst_n - task.block * p.columns));
        *std::min_element(busy.begin(), busy.end()) += cost;
        total += cost;
    }
    return *std::max_element(busy.begin(), busy.end()) * threads / total;
}

TEST(grouped_plan, no_routing_leaves_threads_idle) {
    for (int threads : {1, 2, 16}) {
        EXPECT_LT(imbalance(shape(5760), segments({1, 1, 1, 1}), threads), 1.1) << threads << " threads, one token";
        EXPECT_LT(imbalance(shape(5760), segments(std::vector<int>(32, 8)), threads), 1.05);
        EXPECT_LT(imbalance(shape(5760), segments({4096, 1, 2, 3, 1, 9}), threads), 1.1) << "one busy expert";
        EXPECT_LT(imbalance(shape(64), segments({4096}), threads), 1.4) << "few columns";
    }
}

TEST(grouped_plan, limits_follow_the_hint_and_never_vanish) {
    EXPECT_GE(limits().window_rows, limits().task_rows);
    EXPECT_LT(limits(1).window_rows, 64);
    for (int64_t K : {1, 64, 2880, 1 << 20})
        for (int64_t n : {1, 64, 2880, 1 << 20})
            for (int64_t hint : {0, 1, 100, 1 << 20}) {
                const grouped_limits_t l = grouped_limits(K, K * 2, n, hint, machine(16), kernels());
                EXPECT_GE(l.window_rows, 1);
                EXPECT_GE(l.task_rows, kernels().dense_rows);
                EXPECT_GE(l.sum_rows, 1);
            }
}

TEST(grouped_plan, is_printed) {
    const segments_t g = segments({1, 0, 300});
    EXPECT_EQ(describe(plan(shape(2880), g, 1), g.data(), 2), "experts2:direct1:rows301/320:columns64:tasks90");
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
