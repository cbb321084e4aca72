// SPDX-License-Identifier: Apache-2.0
// When weights are decoded for cuBLASLt: a pure function, tested without a device.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/types.hpp"
#include "gpu/cuda/heuristics/cublaslt_plan.hpp"

using namespace mxdnn::impl;
using namespace mxdnn::impl::cuda::cublaslt;

namespace {

int64_t panel_bytes(int64_t K, int bits) { return K * 64 * bits / 8 + K / 32 * 64; }

TEST(cublaslt_plan, room_is_bounded_and_passes_cover_all_columns) {
    for (int64_t N : {1, 63, 64, 1000, 2880, 8192, 151936})
        for (int64_t K : {8, 2880, 8192, 29568, 500000})
            for (int bits : {4, 6, 8}) {
                const plan_t p = plan(N, K, panel_bytes(K, bits), .5);
                ASSERT_NE(p.least_rows, never_rows);
                EXPECT_GE(p.least_rows, 1);
                EXPECT_EQ(p.columns % 64, 0);
                EXPECT_GE(p.columns, 64);
                EXPECT_LE(p.columns * K * 2, decoded_bytes);
                EXPECT_LT(p.columns, N + 64);
                // No pass is much narrower than the others.
                const int64_t passes = div_up(N, p.columns), last = N - (passes - 1) * p.columns;
                EXPECT_GE(last, p.columns - 64 * passes) << N << " " << K;
            }
}

TEST(cublaslt_plan, faster_kernels_and_smaller_matrices_ask_for_more_rows) {
    int64_t before = 0;
    for (double speed : {.03, .5, .75, .9, .99}) {
        const int64_t rows = plan(4096, 4096, panel_bytes(4096, 8), speed).least_rows;
        EXPECT_GT(rows, before) << speed;
        before = rows;
    }
    EXPECT_EQ(plan(4096, 4096, panel_bytes(4096, 8), 1.).least_rows, never_rows);
    EXPECT_GT(plan(256, 256, panel_bytes(256, 8), .5).least_rows,
            plan(4096, 4096, panel_bytes(4096, 8), .5).least_rows);
    EXPECT_GE(plan(4096, 4096, panel_bytes(4096, 8), .5).least_rows,
            plan(4096, 4096, panel_bytes(4096, 4), .5).least_rows);
}

TEST(cublaslt_plan, a_column_that_does_not_fit_is_left_to_others) {
    EXPECT_EQ(plan(64, decoded_bytes, panel_bytes(decoded_bytes, 4), .5).least_rows, never_rows);
    EXPECT_EQ(plan(0, 64, panel_bytes(64, 4), .5).least_rows, never_rows);
}

// The sizes of the published figures.
TEST(cublaslt_plan, where_the_lines_lie) {
    const auto least = [](int64_t size, int bits, double speed) {
        return plan(size, size, panel_bytes(size, bits), speed).least_rows;
    };
    EXPECT_LT(least(4096, 4, speed_of_sm80_gemm), 64); // from few rows on
    EXPECT_LT(least(4096, 8, .54), 1024);              // MXFP8
    EXPECT_LT(least(8192, 4, .74), 1024);              // MXFP4
    EXPECT_GT(least(8192, 4, .74), 256);               // where reading the weights is most of the time
    EXPECT_GT(least(4096, 4, .98), 8192);              // nothing to gain
}

// Compared with runs of 16 rows: not used where one or two runs are enough, and used well before many rows.
TEST(cublaslt_plan, where_runs_of_few_rows_end) {
    for (const int64_t size : {2048, 4096, 8192, 16384}) {
        const int64_t bytes = panel_bytes(size, 4),
                      usual = plan(size, size, bytes, speed_of_gemv(size, size, .21)).least_rows,
                      slow = plan(size, size, bytes, speed_of_gemv(size, size, .14)).least_rows;
        EXPECT_GT(usual, 32) << size;
        EXPECT_LT(usual, 128) << size;
        EXPECT_GT(slow, 24) << size;
        EXPECT_LT(slow, usual) << size;
    }
    EXPECT_LT(speed_of_gemv(256, 256, .21), .01); // ends only
    EXPECT_NEAR(speed_of_gemv(1 << 20, 1 << 20, .21), .21, 1e-3);
}

TEST(cublaslt_plan, fp8_pays_from_some_hundred_rows_of_large_matrices) {
    const auto least = [](int64_t size) { return least_fp8_rows(size, size, panel_bytes(size, 4)); };
    EXPECT_LT(least(8192), 512);
    EXPECT_GT(least(8192), 64);
    EXPECT_GT(least(1024), least(8192)); // launches
    EXPECT_EQ(least_fp8_rows(0, 64, 0), never_rows);
}

TEST(cublaslt_plan, steps_of_rows_ascend_from_one) {
    EXPECT_EQ(row_steps[0], 1);
    EXPECT_TRUE(std::is_sorted(std::begin(row_steps), std::end(row_steps)));
}

} // namespace
