// SPDX-License-Identifier: Apache-2.0
// grouped_matmul of cuda:sm_90 and rows:sm_80 on random problems.
#include "cuda_grouped_problem.hpp"

using namespace cuda_test;
using namespace cuda_test::grouped;

namespace {

bool on_hopper() { return gpu().get_target() == "cuda:sm_90"; }

constexpr const char *fp8_impl = "cuda:sm_90:f8_e4m3";

void run_seeds(unsigned first, unsigned count, kind_t kind, int times, const char *impl = "cuda:sm_90",
        bool special_scales = false) {
    for (unsigned seed = first; seed < first + count; seed++) {
        problem_of_test_t p(seed, kind);
        p.special_scales = special_scales;
        const std::string what = "seed " + std::to_string(seed) + " " + p.text();
        auto pd = p.make_pd();
        ASSERT_TRUE(go_to(pd, impl)) << what;
        p.make_weights(pd.weights_desc());
        p.expect_right(p.run(pd, times), what);
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(cuda_sm90_grouped, random_problems_are_within_their_bounds) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(100, 150, kind_t::small, 1);
}

TEST(cuda_sm90_grouped, special_scales_count) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    for (const char *impl : {"cuda:sm_90", "rows:sm_80"}) {
        run_seeds(100, 20, kind_t::small, 1, impl, true);
        if (HasFatalFailure()) return;
        run_seeds(500, 2, kind_t::many, 1, impl, true);
    }
}

// Several items for each multiprocessor, of one to four panels.
TEST(cuda_sm90_grouped, grouped_gemv_of_many_columns) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(900, 4, kind_t::wide, 1);
}

TEST(cuda_sm90_grouped, many_items_of_each_multiprocessor) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(950, 1, kind_t::turns, 1);
}

// So many rows that rows with one destination are chained, and added in several passes over the columns.
TEST(cuda_sm90_grouped, gemm_that_meet) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(500, 12, kind_t::many, 1);
}

// One CTA adds up all columns of a token.
TEST(cuda_sm90_grouped, rows_of_many_tokens_that_meet) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(550, 6, kind_t::tokens, 1);
}

// At the rate of FP8, which relaxed sums allow.
TEST(cuda_sm90_grouped, rows_of_fp8) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(1000, 20, kind_t::fp8, 1, fp8_impl);
}

// Rows gathered by either kernel, and in parts of any size.
TEST(cuda_sm90_grouped, gathered_rows_give_the_bits_of_neighbours) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    int compared = 0;
    for (unsigned seed = 600; seed < 640; seed++) {
        problem_of_test_t p(seed, seed % 2 ? kind_t::many : kind_t::small);
        if (!p.gathers) continue;
        p.make_weights(p.make_pd().weights_desc());
        problem_of_test_t neighbours = p.gathered();
        neighbours.rows_hint = 0;
        const bytes_t want = neighbours.run(neighbours.make_pd());
        for (const int64_t hint : {0, 1, 150}) {
            p.rows_hint = hint;
            EXPECT_EQ(p.run(p.make_pd()), want) << "seed " << seed << " hint " << hint << " " << p.text();
        }
        compared++;
    }
    EXPECT_GT(compared, 10);
}

TEST(cuda_sm90_grouped, the_same_bits_every_time) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(700, 6, kind_t::small, 4);
    run_seeds(710, 3, kind_t::many, 4);
    run_seeds(720, 1, kind_t::wide, 4);
    run_seeds(730, 2, kind_t::fp8, 4, fp8_impl);
}

// The implementation that every device has.
TEST(cuda_rows_grouped, random_problems_are_within_their_bounds) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(100, 100, kind_t::small, 1, "rows:sm_80");
    run_seeds(900, 2, kind_t::wide, 1, "rows:sm_80");
    run_seeds(500, 6, kind_t::many, 4, "rows:sm_80");
}

// Few rows of some of them have a kernel of Hopper's own.
void run_int4(unsigned first, unsigned count, kind_t kind, int &on_sm90) {
    for (unsigned seed = first; seed < first + count; seed++)
        for (const char *impl : {"cuda:sm_90", "rows:sm_80"}) {
            problem_of_test_t p(seed, kind, true);
            auto pd = p.make_pd();
            if (!go_to(pd, impl)) {
                ASSERT_STREQ(impl, "cuda:sm_90");
                continue;
            }
            on_sm90 += impl == std::string("cuda:sm_90");
            p.make_weights(pd.weights_desc());
            p.expect_right(p.run(pd), std::string(impl) + " seed " + std::to_string(seed) + " " + p.text());
            if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(cuda_rows_grouped, every_int4) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    int on_sm90 = 0;
    run_int4(2000, 60, kind_t::small, on_sm90);
    if (HasFatalFailure()) return;
    run_int4(2900, 4, kind_t::wide, on_sm90);
    EXPECT_GT(on_sm90, 10);
}

// For compute-sanitizer: one of each kind.
TEST(cuda_sm90_grouped, packed_few) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(800, 4, kind_t::small, 1);
    run_seeds(810, 1, kind_t::many, 1);
    run_seeds(800, 2, kind_t::small, 1, "rows:sm_80");
    int on_sm90 = 0;
    run_int4(2000, 3, kind_t::small, on_sm90);
    run_seeds(810, 1, kind_t::many, 1, "rows:sm_80");
}

TEST(cuda_sm90_grouped, packed_few_rows_of_fp8) {
    if (!on_hopper()) GTEST_SKIP() << "no Hopper device";
    run_seeds(820, 2, kind_t::fp8, 1, fp8_impl);
}

} // namespace
