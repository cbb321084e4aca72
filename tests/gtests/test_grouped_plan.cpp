// SPDX-License-Identifier: Apache-2.0
// The division of a grouped_matmul. Nothing runs: the plan is a function of counts and machine.
#include <gtest/gtest.h>

#include <algorithm>
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
    k.gemm_rows = 128;
    k.row_step = 32;
    k.gemm_panels = 4;
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

grouped_limits_t limits(int64_t hint = 0) {
    return grouped_limits(2880, 5760, 2880, hint, machine(16), kernels());
}

grouped_plan_t plan(const grouped_shape_t &s, const segments_t &g, int threads) {
    return plan_grouped_matmul(s, g.data(), int64_t(g.size()), limits(), machine(threads), kernels());
}

// Every row and column of every segment belongs to one task.
void expect_cover(const grouped_shape_t &s, const segments_t &g, const grouped_plan_t &p) {
    std::vector<std::vector<int>> seen;
    const int64_t blocks = div_up(s.dst_n, p.columns);
    for (const auto &one : g) seen.emplace_back(size_t(row_parts(one, p) * blocks), 0);
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
        EXPECT_EQ(p.rows % kernels().direct_rows, 0);
        EXPECT_EQ(p.rows % kernels().row_step, 0);
        expect_cover(s, g, p);
    }
}

// Kernels that decode again: rows that are just too many for one part are one, and one long segment does not
// divide the others.
TEST(grouped_plan, parts_of_tiles) {
    matmul_kernels_t k = kernels();
    k.direct_rows = k.row_step = 48;
    k.direct_on_tiles = k.only_direct = k.decodes_again = true;
    const auto parts = [&](const std::vector<int> &counts) {
        const segments_t g = segments(counts);
        const grouped_limits_t l = grouped_limits(2880, 5760, 2880, 0, machine(1), k);
        EXPECT_EQ(l.task_rows, 144);
        const grouped_plan_t p =
                plan_grouped_matmul(shape(2880), g.data(), int64_t(g.size()), l, machine(1), k);
        EXPECT_LE(p.rows + p.joined, l.task_rows + 48);
        std::vector<int64_t> n;
        for (const auto &one : g) n.push_back(row_parts(one, p));
        return n;
    };
    using n = std::vector<int64_t>;
    EXPECT_EQ(parts({100, 155, 128}), (n{1, 1, 1}));
    EXPECT_EQ(parts({128, 170, 128, 128}), (n{1, 2, 1, 1}));
    EXPECT_EQ(parts({300}), n{2});
}

double cost(const grouped_shape_t &s, const segments_t &g, const grouped_plan_t &p, int64_t t) {
    grouped_tasks_t tasks(p, s, g.data());
    const grouped_task_t task = tasks.find(t);
    const grouped_segment_t &one = g[size_t(task.segment)];
    const double rows = double(std::min<int64_t>(p.rows, one.count - task.part * p.rows));
    // Decoding a panel costs as much as some rows.
    return (rows + 16) * double(std::min(p.columns, s.dst_n - task.block * p.columns));
}

// The largest work of a thread relative to an equal share, where idle threads take tasks of others.
double imbalance(const grouped_shape_t &s, const segments_t &g, int threads) {
    const grouped_plan_t p = plan(s, g, threads);
    const int n = int(std::min<int64_t>(threads, p.tasks));
    std::vector<int64_t> next, end;
    for (int i = 0; i < n; i++) {
        next.push_back(first_task(p, s, g.data(), int64_t(g.size()), i, n));
        end.push_back(first_task(p, s, g.data(), int64_t(g.size()), i + 1, n));
        EXPECT_LE(next[size_t(i)], end[size_t(i)]);
    }
    EXPECT_EQ(next[0], 0);
    EXPECT_EQ(end.back(), p.tasks);
    std::vector<double> busy(size_t(n), 0.);
    double total = 0;
    for (int64_t done = 0; done < p.tasks; done++) {
        // The first free thread takes the next task of its own share, or of the next share that has any.
        const size_t who = size_t(std::min_element(busy.begin(), busy.end()) - busy.begin());
        size_t from = who;
        while (next[from] == end[from]) from = (from + 1) % size_t(n);
        const double c = cost(s, g, p, next[from]++);
        busy[who] += c;
        total += c;
    }
    return *std::max_element(busy.begin(), busy.end()) * threads / total;
}

TEST(grouped_plan, no_routing_leaves_threads_idle) {
    for (int threads : {1, 2, 16}) {
        EXPECT_LT(imbalance(shape(5760), segments({1, 1, 1, 1}), threads), 1.1)
                << threads << " threads, one token";
        EXPECT_LT(imbalance(shape(5760), segments(std::vector<int>(32, 8)), threads), 1.05);
        EXPECT_LT(imbalance(shape(5760), segments({4096, 1, 2, 3, 1, 9}), threads), 1.1) << "one busy expert";
        EXPECT_LT(imbalance(shape(64), segments({4096}), threads), 1.4) << "few columns";
    }
}

TEST(grouped_plan, shares_are_worth_the_same) {
    std::mt19937 rng(12);
    for (int round = 0; round < 100; round++) {
        std::vector<int> counts(1 + rng() % 130);
        for (int &c : counts) c = rng() % 4 ? int(rng() % 30) : int(rng() % 700);
        const segments_t g = segments(counts);
        if (g.empty()) continue;
        const grouped_shape_t s = shape(2880);
        const int threads = 1 + int(rng() % 16);
        const grouped_plan_t p = plan(s, g, threads);
        double total = 0, most = 0, largest = 0;
        for (int i = 0; i < threads; i++) {
            double share = 0;
            const int64_t n = int64_t(g.size()), end = first_task(p, s, g.data(), n, i + 1, threads);
            for (int64_t t = first_task(p, s, g.data(), n, i, threads); t < end; t++) {
                share += cost(s, g, p, t);
                largest = std::max(largest, cost(s, g, p, t));
            }
            most = std::max(most, share);
            total += share;
        }
        // Either end is within a task of where it should be.
        EXPECT_LE(most, total / threads + 2 * largest) << threads << " threads";
    }
}

TEST(grouped_plan, limits_follow_the_hint_and_never_vanish) {
    EXPECT_GE(limits().window_rows, limits().task_rows);
    EXPECT_EQ(limits(1).window_rows, row_granule(kernels()));
    for (int64_t K : {1, 64, 2880, 1 << 20})
        for (int64_t n : {1, 64, 2880, 1 << 20})
            for (int64_t hint : {0, 1, 100, 1 << 20}) {
                const grouped_limits_t l = grouped_limits(K, K * 2, n, hint, machine(16), kernels());
                EXPECT_GE(l.window_rows, 1);
                EXPECT_GE(l.task_rows, kernels().row_step);
                EXPECT_GE(l.sum_rows, 1);
            }
}

TEST(grouped_plan, is_printed) {
    const segments_t g = segments({1, 0, 300});
    EXPECT_EQ(describe(plan(shape(2880), g, 1), g.data(), 2),
            "experts2:direct1:rows301/192:columns64:tasks135");
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
