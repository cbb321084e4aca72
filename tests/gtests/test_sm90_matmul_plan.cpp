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
                        EXPECT_EQ(p.kernel == kernel_t::few_rows, div_up(rows, groups) <= 16);
                        // Sums over more than one CTA take one round of many_rows.
                        if (p.kernel == kernel_t::many_rows && p.splits > 1) {
                            const int64_t items = div_up(div_up(rows, groups), many_rows_widths[p.variant])
                                                  * std::min<int64_t>(rows, groups) * div_up(N, 256);
                            EXPECT_LE(items * p.splits, p.grid);
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

} // namespace
