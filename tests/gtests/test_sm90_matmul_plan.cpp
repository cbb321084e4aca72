// SPDX-License-Identifier: Apache-2.0
// The plan that picks a Hopper kernel: a pure function, tested without a device.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/types.hpp"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

using namespace mxdnn::impl;
using namespace mxdnn::impl::cuda::sm90;

namespace {

TEST(sm90_matmul_plan, makes_a_launch_for_every_size) {
    for (int64_t rows : {1, 2, 8, 9, 16, 17, 31, 64, 100, 256, 1000, 4096, 100000})
        for (int64_t N : {1, 64, 100, 2880, 4096, 5760, 8192})
            for (int64_t K : {0, 8, 64, 2880, 8192})
                for (int groups : {1, 4, 128})
                    for (int sms : {1, 2, 78, 132}) {
                        const matmul_plan_t p = plan_matmul(rows, N, K, groups, 2176, sms);
                        EXPECT_GE(p.grid, 1);
                        EXPECT_LE(p.grid, sms);
                        EXPECT_TRUE(p.splits == 1 || p.splits == 2);
                        EXPECT_EQ(p.grid % p.splits, 0);
                        if (groups == 1) {
                            EXPECT_EQ(p.kernel == kernel_t::few_rows, rows <= 16);
                        }
                        // Sums over more than one CTA take one round of many_rows.
                        if (p.kernel == kernel_t::many_rows && p.splits > 1) {
                            EXPECT_EQ(groups, 1);
                            EXPECT_LE(div_up(rows, many_rows_widths[p.variant]) * div_up(N, 256) * p.splits,
                                    p.grid);
                        }
                    }
}

// What the sizes that matter get: every multiprocessor works, but where two panels a CTA are too few.
TEST(sm90_matmul_plan, fills_the_device) {
    for (int64_t rows : {1, 16, 256, 4096})
        EXPECT_GE(plan_matmul(rows, 8192, 8192, 1, 2176, 132).grid, 120) << rows;
    EXPECT_GE(plan_matmul(256, 4096, 4096, 1, 2176, 132).grid, 120);
    EXPECT_EQ(plan_matmul(1, 4096, 4096, 1, 2176, 132).splits, 2);
    EXPECT_GE(plan_matmul(4, 5760, 2880, 4, 2176, 132).grid, 110);
}

// Rows fall into groups at random: what is chosen has room for more than the mean, so that few groups need a
// second block, which reads and decodes their weights again.
TEST(sm90_matmul_plan, leaves_room_for_groups_above_the_mean) {
    const auto plan = [](int64_t tokens) { return plan_matmul(4 * tokens, 5760, 2880, 128, 2176, 132); };
    EXPECT_EQ(plan(64).kernel, kernel_t::few_rows);
    EXPECT_EQ(few_rows_variants[plan(64).variant].row_tiles, 1);
    EXPECT_EQ(plan(256).kernel, kernel_t::few_rows);
    EXPECT_EQ(few_rows_variants[plan(256).variant].row_tiles, 2);
    EXPECT_EQ(plan(1024).kernel, kernel_t::many_rows);
    EXPECT_EQ(many_rows_widths[plan(1024).variant], 48);
    EXPECT_EQ(many_rows_widths[plan(4096).variant], 144);
}

} // namespace
