// SPDX-License-Identifier: Apache-2.0
// The division of a matmul. Nothing runs: the plan is a function of shape and machine.
#include <tuple>

#include <gtest/gtest.h>

#include "common/formats/format_list.hpp"
#include "cpu/x64/kernels/kernel_list.hpp"
#include "cpu/x64/matmul_plan.hpp"
#include "cpu/x64/source_blocks.hpp"
#include "cpu/x64/task_shares.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

matmul_machine_t machine(cpu_isa_t isa, int threads) { return {isa, 32 << 10, 1 << 20, threads}; }

matmul_kernels_t avx2_kernels() {
    matmul_kernels_t k;
    k.direct_rows = 4;
    k.gemm_rows = 6;
    k.gemm_panels = 1;
    k.compute_bytes = 4;
    return k;
}

matmul_kernels_t amx_kernels() {
    matmul_kernels_t k;
    k.direct_rows = 48;
    k.direct_on_tiles = true;
    k.only_direct = true;
    k.decodes_again = true;
    k.row_step = 48;
    k.compute_bytes = 2;
    return k;
}

// Of s8 with a scale for every row.
matmul_kernels_t amx_int8_kernels() {
    matmul_kernels_t k;
    k.direct_rows = 32;
    k.direct_on_tiles = true;
    k.fused = true;
    k.gemm_rows = 32;
    k.row_step = 32;
    k.gemm_panels = 2;
    k.compute_bytes = 2;
    return k;
}

matmul_shape_t shape(int64_t M, int64_t K, int64_t N) {
    matmul_shape_t s;
    s.M = M;
    s.K = K;
    s.N = N;
    return s;
}

// Only Zen's dot products of bf16 are faster than multiplying in f32.
TEST(matmul_plan, the_compute_type_depends_on_the_family) {
    using isa_t = cpu_isa_t;
    EXPECT_EQ(preferred_compute(isa_t::avx512_core_bf16, cpu_family_t::any), mxdnn_f32);
    EXPECT_EQ(preferred_compute(isa_t::avx512_core_bf16, cpu_family_t::zen), mxdnn_data_type_undef);
    EXPECT_EQ(preferred_compute(isa_t::avx512_core_amx, cpu_family_t::any), mxdnn_data_type_undef);
    EXPECT_EQ(preferred_compute(isa_t::avx512_core, cpu_family_t::any), mxdnn_data_type_undef);
}

// Vector kernels decode in registers for twice as many rows as a call has. Fetching depends on the family.
TEST(matmul_plan, rows_that_decode_in_registers) {
    matmul_kernels_t k;
    k.direct_rows = 12;
    EXPECT_EQ(direct_rows_limit(machine(cpu_isa_t::avx512_core_bf16, 1), k), 24);
    EXPECT_EQ(direct_rows_limit(machine(cpu_isa_t::avx2, 1), k), 24);
    EXPECT_EQ(fetch_ahead(cpu_family_t::any), 0); // the kernels' own distances
    EXPECT_GT(fetch_ahead(cpu_family_t::zen), 0);
}

TEST(matmul_plan, few_rows_decode_in_registers) {
    const auto p = plan_mx_matmul(shape(1, 2880, 5760), 0, machine(cpu_isa_t::avx2, 2), avx2_kernels());
    EXPECT_EQ(describe(p), "direct:rows1:columns64");
}

// One thread has no use for several tasks, each of which costs time.
TEST(matmul_plan, one_thread_has_wide_tasks) {
    for (int threads : {1, 2}) {
        const auto p = plan_mx_matmul(shape(1, 64, 64), 0, machine(cpu_isa_t::avx2, threads), avx2_kernels());
        EXPECT_EQ(describe(p), threads == 1 ? "direct:rows1:columns64" : "direct:rows1:columns16");
    }
}

TEST(matmul_plan, little_work_is_for_one_thread) {
    EXPECT_TRUE(is_small(1, 64, 64));
    EXPECT_TRUE(is_small(32, 64, 64));
    EXPECT_FALSE(is_small(33, 64, 64));
    EXPECT_FALSE(is_small(1, 2880, 5760));
    EXPECT_FALSE(is_small(int64_t(1) << 40, int64_t(1) << 26, int64_t(1) << 40));
    EXPECT_TRUE(is_small(0, 64, 64));
}

matmul_kernels_t bf16_kernels() {
    matmul_kernels_t k;
    k.direct_rows = 12;
    k.gemm_rows = 14;
    k.row_step = 14;
    k.gemm_panels = 2;
    k.compute_bytes = 2;
    return k;
}

// Where decoding hardly costs time, more rows decode in registers; then they are divided into whole calls.
TEST(matmul_plan, kernels_know_for_how_many_rows_they_are_best) {
    auto k = bf16_kernels();
    const auto m = machine(cpu_isa_t::avx512_core_bf16, 1);
    k.best_direct_rows = 384;
    EXPECT_EQ(direct_rows_limit(m, k), 384);
    EXPECT_EQ(describe(plan_mx_matmul(shape(200, 2880, 5760), 0, m, k)), "direct:rows200:columns64");
    EXPECT_EQ(describe(plan_mx_matmul(shape(384, 8192, 5760), 0, m, k)), "direct:rows192:columns64")
            << "two parts of whole calls";
    EXPECT_FALSE(plan_mx_matmul(shape(385, 2880, 5760), 0, m, k).direct);
}

// Decoding once for more rows is better, even if these leave the second-level cache.
TEST(matmul_plan, rows_share_decoded_panels) {
    const auto m = machine(cpu_isa_t::avx512_core_bf16, 1);
    EXPECT_EQ(describe(plan_mx_matmul(shape(256, 8192, 5760), 0, m, bf16_kernels())),
            "decode+gemm:rows266:columns64:k8192");
}

// With strides of about whole pages, all rows fall into the same cache set; of half pages, every second row.
TEST(matmul_plan, rows_conflict_where_their_lines_share_a_set) {
    constexpr int64_t eight_ways = 32 << 10, twelve_ways = 48 << 10;
    for (int64_t stride : {4096, 8192, 28672, 4096 + 2}) {
        EXPECT_FALSE(rows_conflict(stride, 8, eight_ways)) << stride;
        EXPECT_TRUE(rows_conflict(stride, 9, eight_ways)) << stride;
        EXPECT_FALSE(rows_conflict(stride, 12, twelve_ways)) << stride;
        EXPECT_TRUE(rows_conflict(stride, 13, twelve_ways)) << stride;
    }
    for (int64_t stride : {2048, 6144, 4096 + 64, 8192 - 64, 5760, 1024, 64}) {
        EXPECT_FALSE(rows_conflict(stride, 12, eight_ways)) << stride;
    }
    EXPECT_TRUE(rows_conflict(2048, 17, eight_ways));
    EXPECT_FALSE(rows_conflict(4096, 1, eight_ways));
}

TEST(matmul_plan, many_rows_decode_once) {
    const auto p = plan_mx_matmul(
            shape(256, 28800, 5760), 0, machine(cpu_isa_t::avx512_core_bf16, 2), bf16_kernels());
    EXPECT_FALSE(p.direct);
    EXPECT_EQ(p.rows % 14, 0);
    EXPECT_LE(p.k_chunk * 2 * 32, (1 << 20) / 2) << "panels of a chunk stay in half of L2";
}

TEST(matmul_plan, integers_on_tiles_take_more_than_a_block) {
    const auto m = machine(cpu_isa_t::avx512_core_amx, 2);
    const auto k = amx_int8_kernels();
    EXPECT_EQ(plan_mx_matmul(shape(1024, 2880, 5760), 0, m, k).rows, 256)
            << "twice what bf16 leaves room for";
    EXPECT_TRUE(plan_mx_matmul(shape(32, 2880, 5760), 0, m, k).direct);
    EXPECT_FALSE(plan_mx_matmul(shape(33, 2880, 5760), 0, m, k).direct);
}

TEST(matmul_plan, tiles_take_all_rows_directly) {
    auto m = machine(cpu_isa_t::avx512_core_amx, 2);
    m.l2 = 2 << 20;
    EXPECT_EQ(describe(plan_mx_matmul(shape(144, 2880, 5760), 0, m, amx_kernels())),
            "direct:rows144:columns64");
    EXPECT_EQ(describe(plan_mx_matmul(shape(1000, 2880, 5760), 0, m, amx_kernels())),
            "direct:rows144:columns64")
            << "whole calls whose source takes half of L2";
    EXPECT_EQ(plan_mx_matmul(shape(1000, 8192, 5760), 0, m, amx_kernels()).rows, 48);
    EXPECT_EQ(plan_mx_matmul(shape(1000, 14336, 5760), 0, m, amx_kernels()).rows, 48);
    EXPECT_EQ(plan_mx_matmul(shape(1000, 57344, 5760), 0, m, amx_kernels()).rows, 48) << "at least one call";
    auto keeps = amx_kernels();
    keeps.decodes_again = false;
    EXPECT_EQ(plan_mx_matmul(shape(1000, 14336, 5760), 0, m, keeps).rows, 144)
            << "decoded panels serve several calls";
}

TEST(matmul_plan, rows_of_a_call_on_tiles) {
    EXPECT_EQ(plan_tile_rows(1, 48), 16);
    EXPECT_EQ(plan_tile_rows(33, 48), 48);
    EXPECT_EQ(plan_tile_rows(64, 48), 32) << "two of equal length";
    EXPECT_EQ(plan_tile_rows(256, 48), 48);
    EXPECT_EQ(plan_tile_rows(64, 64), 64) << "one call";
    EXPECT_EQ(plan_tile_rows(80, 64), 48) << "several calls are short";
    EXPECT_EQ(plan_tile_rows(80, 96), 80);
    EXPECT_EQ(plan_tile_rows(112, 96), 48);
    EXPECT_EQ(plan_tile_rows(runtime_dim, 48), 48);
    EXPECT_EQ(plan_tile_rows(runtime_dim, 96), 48);
    for (int most : {48, 64, 96})
        for (int64_t M = 1; M < 1000; M++) {
            const int rows = plan_tile_rows(M, most), several = M > most ? 48 : most;
            EXPECT_TRUE(rows >= 16 && rows <= several && rows % 16 == 0) << M;
            EXPECT_EQ(div_up(M, int64_t(rows)), div_up(M, int64_t(several))) << M << ": no more calls";
        }
}

// int4, whose direct kernel for one or two rows has no tiles.
TEST(matmul_plan, tiles_take_many_rows_of_int4) {
    matmul_kernels_t k = amx_kernels();
    k.only_direct = k.direct_on_tiles = false;
    k.many = true;
    k.direct_rows = 12;
    auto m = machine(cpu_isa_t::avx512_core_amx, 2);
    m.l2 = 2 << 20;
    EXPECT_EQ(describe(plan_mx_matmul(shape(2, 2880, 5760), 0, m, k)), "direct:rows2:columns64");
    EXPECT_EQ(describe(plan_mx_matmul(shape(256, 2880, 5760), 0, m, k)), "many:rows144:columns64");
    k.decodes_again = false;
    EXPECT_EQ(describe(plan_mx_matmul(shape(256, 2880, 5760), 0, m, k)), "many:rows288:columns64")
            << "decoded panels serve several calls";
}

// Where each thread copies its rows, parts are not longer than a thread needs, but have three calls if there
// are few threads or few rows.
TEST(matmul_plan, threads_copy_different_rows) {
    auto k = amx_kernels();
    const auto rows = [&](int64_t M, int64_t K, int threads) {
        matmul_shape_t s = shape(M, K, 768);
        s.own_parts = true;
        auto m = machine(cpu_isa_t::avx512_core_amx, threads);
        m.l2 = 2 << 20;
        return plan_mx_matmul(s, 0, m, k).rows;
    };
    EXPECT_EQ(rows(256, 1536, 1), 256) << "one part";
    EXPECT_EQ(rows(256, 1536, 2), 144);
    EXPECT_EQ(rows(256, 1536, 4), 96);
    EXPECT_EQ(rows(256, 1536, 14), 48);
    EXPECT_EQ(rows(1024, 1536, 14), 96);
    EXPECT_EQ(rows(512, 1536, 2), 288);
    k.direct_rows = k.row_step = 32;
    EXPECT_EQ(rows(64, 1536, 14), 64) << "two calls of few rows";
    k = amx_kernels();
    k.decodes_again = false;
    for (int threads : {1, 4, 14}) EXPECT_EQ(rows(1024, 1536, threads), 144) << "kept panels";
    k = amx_kernels();
    EXPECT_EQ(rows(2000, 1536, 2), 336) << "as many as take half of L2";
    EXPECT_EQ(rows(256, 4096, 2), 96);
}

TEST(matmul_plan, columns_shrink_until_every_thread_has_work) {
    const auto wide = plan_mx_matmul(shape(1, 4096, 65536), 0, machine(cpu_isa_t::avx2, 16), avx2_kernels());
    const auto narrow = plan_mx_matmul(shape(1, 4096, 256), 0, machine(cpu_isa_t::avx2, 16), avx2_kernels());
    EXPECT_EQ(wide.columns, 64);
    EXPECT_EQ(narrow.columns, 16);
}

TEST(matmul_plan, blocks_of_a_quantised_destination_stay_whole) {
    matmul_shape_t s = shape(1, 4096, 256);
    s.column_step = 32;
    EXPECT_EQ(plan_mx_matmul(s, 0, machine(cpu_isa_t::avx2, 16), avx2_kernels()).columns, 32);
}

TEST(matmul_plan, gemm_calls_waste_few_rows) {
    EXPECT_EQ(plan_gemm_rows(14, 14, 1), 14);
    EXPECT_EQ(plan_gemm_rows(16, 14, 1), 8);
    EXPECT_EQ(plan_gemm_rows(64, 14, 1), 13);
    EXPECT_EQ(plan_gemm_rows(15, 14, any_gemm_rows_step), 8);
    for (int step : {1, any_gemm_rows_step})
        for (int64_t M = 1; M < 2000; M++) {
            const int rows = plan_gemm_rows(M, 14, step);
            EXPECT_TRUE(rows > 7 && rows <= 14 && (14 - rows) % step == 0) << M;
            EXPECT_LE(round_up(M, rows), round_up(M, 14)) << M; // what is readable
        }
}

// The kernel of a call for n rows: the smallest that suffices.
int rows_of_call(const std::vector<int> &kernels, int64_t n) {
    return *std::find_if(kernels.begin(), kernels.end(), [&](int rows) { return rows >= n; });
}

TEST(matmul_plan, direct_calls_waste_no_rows) {
    for (int most : {1, 3, 4, 12}) {
        const std::vector<int> any = plan_direct_kernels(MXDNN_RUNTIME_DIM_VAL, most);
        EXPECT_TRUE(std::is_sorted(any.begin(), any.end()));
        EXPECT_EQ(any.back(), most);
        for (int n = 1; n <= most; n++) EXPECT_EQ(rows_of_call(any, n), n) << n << " " << most;
        for (int64_t M = 1; M < 100; M++) {
            const std::vector<int> known = plan_direct_kernels(M, most);
            for (int64_t r = 0; r < M; r += most) {
                const int n = int(std::min<int64_t>(M - r, most));
                EXPECT_EQ(rows_of_call(known, n), n) << M << " " << most;
            }
            EXPECT_LE(known.size(), 2u);
        }
    }
}

TEST(matmul_plan, direct_calls_have_about_equal_length) {
    EXPECT_EQ(plan_direct_rows(16, 12), 8);
    EXPECT_EQ(plan_direct_rows(12, 12), 12);
    EXPECT_EQ(plan_direct_rows(25, 12), 9);
    EXPECT_EQ(plan_direct_rows(256, 12), 12);
    EXPECT_EQ(plan_direct_rows(1, 12), 1);
    for (int64_t M : {int64_t(0), runtime_dim}) EXPECT_EQ(plan_direct_rows(M, 12), 12);
    for (int64_t M = 1; M < 60; M++) { // never more calls
        EXPECT_EQ(div_up(M, int64_t(plan_direct_rows(M, 12))), div_up(M, int64_t(12))) << M;
    }
}

// Whole tiles, or four rows more than two of them or more.
int64_t rows_on_tiles(int64_t n) {
    return n > 32 && n % 16 >= 1 && n % 16 <= 4 ? n / 16 * 16 + 4 : round_up(n, 16);
}

TEST(matmul_plan, calls_on_tiles_are_whole_tiles_or_little_more) {
    EXPECT_EQ(plan_tile_kernels(MXDNN_RUNTIME_DIM_VAL, 48), (std::vector<int>{16, 32, 36, 48}));
    EXPECT_EQ(plan_tile_kernels(MXDNN_RUNTIME_DIM_VAL, 16), (std::vector<int>{16}));
    for (int64_t M = 1; M <= 200; M++) {
        const std::vector<int> kernels = plan_tile_kernels(M, 48);
        EXPECT_EQ(kernels.back(), M >= 48 ? 48 : rows_on_tiles(M)) << M;
        const int64_t last = (M - 1) % 48 + 1;
        EXPECT_EQ(rows_of_call(kernels, last), rows_on_tiles(last)) << M;
    }
}

// A call has the kernel of its number of tiles, in every part of the rows.
TEST(matmul_plan, calls_that_decode_again_have_kernels) {
    auto m = machine(cpu_isa_t::avx512_core_amx, 1);
    m.l2 = 2 << 20;
    for (const auto &[K, most, threads] :
            {std::tuple(2880, 48, 1), {14336, 48, 1}, {2880, 64, 1}, {1024, 48, 2}, {1024, 96, 14}})
        for (int64_t M = 1; M < 1500; M++) {
            auto k = amx_kernels();
            k.direct_rows = k.row_step = plan_tile_rows(M, most);
            const int64_t joined = joined_rows(k);
            const std::vector<int> kernels = plan_tile_kernels(M, k.direct_rows, joined);
            EXPECT_TRUE(std::is_sorted(kernels.begin(), kernels.end()));
            matmul_shape_t s = shape(M, K, 5760);
            s.own_parts = threads > 1;
            m.threads = threads;
            const matmul_plan_t plan = plan_mx_matmul(s, 0, m, k);
            const int64_t parts = parts_of(M, plan.rows, joined);
            for (int64_t i = 0; i < parts; i++) {
                const int64_t rows = i + 1 < parts ? plan.rows : M - i * plan.rows;
                ASSERT_GT(rows, 0) << M;
                EXPECT_LE(rows, max_plan_rows(K, 0, m, k) + joined) << M;
                const source_blocks_t blocks = {K, 2, rows, k.direct_rows, joined};
                for (int64_t r = 0; r < rows; r += blocks.call_rows(r)) {
                    const int64_t n = blocks.call_rows(r);
                    EXPECT_EQ(rows_of_call(kernels, n), rows_on_tiles(n)) << M;
                    EXPECT_TRUE(n > 16 || M <= 16) << M;
                }
            }
        }
    m.threads = 1;
    EXPECT_EQ(
            describe(plan_mx_matmul(shape(160, 2880, 5760), 0, m, amx_kernels())), "direct:rows160:columns64")
            << "a part less";
}

// Runs of up to `most` rows have a kernel, also the last run, and also when the hint is for few rows.
TEST(matmul_plan, runs_of_one_call_have_kernels) {
    constexpr int most = 48;
    for (int64_t M = 1; M <= 300; M++)
        for (int64_t each = 16; each <= 320; each += 16) {
            const std::vector<int> kernels = plan_short_runs(M, each, most);
            EXPECT_TRUE(std::is_sorted(kernels.begin(), kernels.end()));
            bool any = false;
            for (int64_t m = 0; m < M; m += each) {
                const int64_t run = std::min(each, M - m);
                if (run > most) continue;
                any = true;
                ASSERT_FALSE(kernels.empty()) << M << " in runs of " << each;
                EXPECT_GE(kernels.back(), run) << M << " in runs of " << each;
            }
            EXPECT_EQ(!kernels.empty(), any) << M << " in runs of " << each;
        }
}

TEST(matmul_plan, chunks_of_k_are_whole_tiles_and_cover_k) {
    for (int64_t K : {1, 31, 32, 128, 129, 2880, 4096, 14336, 53248}) {
        const auto k = plan_k_chunk(K, machine(cpu_isa_t::avx512_core_amx, 1), amx_kernels());
        EXPECT_EQ(k % 32, 0) << K;
        EXPECT_GT(k, 0) << K;
        EXPECT_TRUE(k >= K || k % 128 == 0) << K;
    }
}

// Parts of K are whole tiles and about equally long. With them, the rows of a call and the codes of two
// panels leave room in the second-level cache. Shorter rows have none.
TEST(matmul_plan, parts_of_k) {
    auto m = machine(cpu_isa_t::avx512_core_amx, 1);
    m.l2 = 2 << 20;
    auto k = amx_kernels();
    const int64_t mxfp4 = 17, mxfp8 = 34; // bytes of two rows of a panel
    const auto part = [&](int64_t K, int64_t bytes) { return plan_k_part(K, K / 2 * bytes, m, k); };
    EXPECT_EQ(part(8192, mxfp8), 0);
    EXPECT_EQ(part(11264, mxfp4), 0);
    EXPECT_EQ(part(12288, mxfp4), 6144);
    EXPECT_EQ(part(14336, mxfp4), 7168);
    EXPECT_EQ(part(10240, mxfp8), 5120);
    EXPECT_EQ(part(20480, mxfp4), 6912);
    const auto rows_of_all_k = [&](int64_t M, int64_t bytes) {
        auto any = k;
        plan_k_parts(14336, 14336 / 2 * bytes, m, M, any);
        EXPECT_EQ(any.k_part, 7168);
        return any.rows_of_all_k;
    };
    EXPECT_EQ(rows_of_all_k(MXDNN_RUNTIME_DIM_VAL, mxfp4), 36);
    EXPECT_EQ(rows_of_all_k(MXDNN_RUNTIME_DIM_VAL, mxfp8), 0);
    EXPECT_EQ(rows_of_all_k(256, mxfp4), 0) << "kernels for these rows only";
    for (int64_t K = 128; K < 100000; K += 160)
        if (const int64_t rows = part(K, mxfp8)) {
            EXPECT_EQ(rows % 128, 0) << K;
            EXPECT_LT(rows, K);
            EXPECT_LE(rows * (48 * 2 + mxfp8), m.l2 * 9 / 16) << K;
            k.k_part = rows;
            EXPECT_GE(max_plan_rows(K, 0, m, k), 48) << K;
            k.k_part = 0;
        }
    k.row_step = k.direct_rows = 32;
    EXPECT_EQ(part(14336, mxfp4), 0) << "fewer rows";
    EXPECT_EQ(part(14336, mxfp8), 7168);
    m.threads = 2;
    EXPECT_EQ(part(14336, mxfp8), 0) << "several threads";
    m.threads = 1;
    k.k_part = 7168;
    EXPECT_EQ(describe(plan_mx_matmul(shape(64, 14336, 4096), 0, m, k)), "direct:rows64:columns64:k7168");
    k.decodes_again = false;
    EXPECT_EQ(part(14336, mxfp8), 0) << "decoded panels serve several calls";
    EXPECT_EQ(plan_tasks_together(1000, 1), 64);
    EXPECT_EQ(plan_tasks_together(1000, 14), 8);
    EXPECT_EQ(plan_tasks_together(384, 14), 3);
    EXPECT_EQ(plan_tasks_together(10, 14), 1);
}

TEST(matmul_plan, no_number_of_rows_exceeds_what_the_scratchpad_is_sized_for) {
    for (int64_t K : {64, 2880, 14336})
        for (int64_t hint : {0, 1, 17, 1000}) {
            const auto m = machine(cpu_isa_t::avx512_core_amx, 2);
            const int64_t most = max_plan_rows(K, hint, m, amx_kernels());
            for (int64_t M :
                    {1, 2, 11, 12, 13, 24, 25, 31, 32, 33, 255, 256, 257, 511, 512, 513, 4096, 100000}) {
                const auto p = plan_mx_matmul(shape(M, K, 4096), hint, m, amx_kernels());
                EXPECT_LE(p.rows, most) << "M " << M << " K " << K << " hint " << hint;
                EXPECT_GE(p.rows, 1);
                EXPECT_LE(p.columns, max_plan_columns);
            }
        }
}

// Selection is a function of the ISA cap, so it is tested on any machine.
TEST(kernel_selection, best_isa_that_is_allowed) {
    const quant_t &q = mx_quant;
    const auto name = [&](kernel_kind_t kind, cpu_isa_t isa, data_type_t compute) -> std::string {
        const kernel_row_t *r = find_kernel(kind, isa, mxdnn_f4_e2m1, q, compute);
        return r ? r->name : "none";
    };
    const data_type_t any = mxdnn_data_type_undef;
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx2, any), "avx2_direct_4bit");
    EXPECT_EQ(name(kernel_kind_t::gemm, cpu_isa_t::avx2, any), "avx2_gemm");
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx512_core_bf16, any), "avx512_core_bf16_direct_4bit");
    EXPECT_EQ(name(kernel_kind_t::direct, cpu_isa_t::avx512_core_amx, any), "avx512_core_amx_direct_f4");
    EXPECT_EQ(name(kernel_kind_t::fused, cpu_isa_t::avx512_core_amx, mxdnn_s8),
            "avx512_core_amx_fused_int8_f4");
    EXPECT_EQ(name(kernel_kind_t::many, cpu_isa_t::avx512_core_amx, any), "none");
    const kernel_row_t *int4 =
            find_kernel(kernel_kind_t::many, cpu_isa_t::avx512_core_amx, mxdnn_s4, int4_quant);
    ASSERT_NE(int4, nullptr);
    EXPECT_EQ(int4->name, std::string("avx512_core_amx_many_int4_bf16"));
    EXPECT_FALSE(
            find_kernel(kernel_kind_t::direct, cpu_isa_t::avx512_core_amx, mxdnn_s4, int4_quant)->on_tiles);
    EXPECT_EQ(name(kernel_kind_t::decode, cpu_isa_t::none, any), "none");
}

TEST(kernel_selection, every_format_with_a_decoder_has_all_three_kinds_from_avx2_on) {
    for (const named_format_t &f : named_formats)
        for (const auto kind : {kernel_kind_t::direct, kernel_kind_t::decode, kernel_kind_t::gemm})
            for (const isa_row_t &row : isa_list) {
                const bool found = find_kernel(kind, row.isa, f.elem, f.quant) != nullptr;
                EXPECT_EQ(found, f.decoder != decoder_t::none || kind == kernel_kind_t::gemm)
                        << f.name << " " << row.name;
            }
}

// A descriptor takes the decode kernel first, and then the others of its compute type.
TEST(kernel_selection, all_three_kinds_agree_on_a_compute_type) {
    for (const named_format_t &f : named_formats)
        for (const isa_row_t &row : isa_list)
            for (const auto family : {cpu_family_t::any, cpu_family_t::zen}) {
                const kernel_row_t *decode = find_kernel(
                        kernel_kind_t::decode, row.isa, f.elem, f.quant, preferred_compute(row.isa, family));
                if (!decode) continue;
                for (const auto kind : {kernel_kind_t::direct, kernel_kind_t::gemm})
                    EXPECT_NE(
                            find_kernel(kind, row.isa, f.elem, f.quant, decode->compute_dt, family), nullptr)
                            << f.name << " " << row.name;
            }
}

// Only where threads share the rows of kernels that decode for every call, and as many as fit.
TEST(matmul_plan, parts_that_are_prepared_together) {
    const auto parts = [](int64_t M, int64_t bytes, int threads, const matmul_kernels_t &k) {
        return plan_parts_together(M, 144, bytes, machine(cpu_isa_t::avx512_core_amx, threads), k);
    };
    const int64_t bytes = 144 * 2880 * 2;
    EXPECT_EQ(parts(1024, bytes, 16, amx_kernels()), 8);
    EXPECT_EQ(parts(144, bytes, 16, amx_kernels()), 1);
    EXPECT_EQ(parts(0, bytes, 16, amx_kernels()), 1);
    EXPECT_EQ(parts(100000, bytes, 16, amx_kernels()), 16);
    EXPECT_EQ(parts(runtime_dim, bytes, 2, amx_kernels()), 16);
    EXPECT_EQ(parts(100000, 5 << 20, 16, amx_kernels()), 3);
    EXPECT_EQ(parts(100000, 20 << 20, 16, amx_kernels()), 1);
    EXPECT_EQ(parts(1024, bytes, 1, amx_kernels()), 1);
    EXPECT_EQ(parts(1024, bytes, 16, avx2_kernels()), 1);
}

// Shares of the tasks of all parts: they follow each other, have about equal work, and begin with a part
// where they would begin a little beside it.
TEST(matmul_plan, shares_of_parts_that_threads_copy) {
    for (const int64_t M : {17, 64, 160, 256, 1024, 5000})
        for (const int64_t rows : {48, 96, 144})
            for (const int64_t tasks : {1, 6, 45, 90})
                for (const int threads : {2, 3, 8, 14, 16, 64}) {
                    const own_parts_t p{M, rows, parts_of(M, rows, 16), tasks};
                    const int n = int(std::min<int64_t>(threads, p.all_tasks()));
                    int64_t all = 0;
                    for (int64_t i = 0; i < p.parts; i++) all += p.rows_of(i);
                    EXPECT_EQ(all, M);
                    EXPECT_EQ(p.first_of_share(n, 0), 0);
                    EXPECT_EQ(p.first_of_share(n, n), p.parts * tasks);
                    const auto work = [&](int64_t first, int64_t last) {
                        int64_t sum = 0;
                        for (int64_t t = first; t < last; t++) sum += p.rows_of(t / tasks);
                        return double(sum);
                    };
                    const double each = work(0, p.all_tasks()) / n, one = double(rows + 16);
                    for (int i = 0; i < n; i++) {
                        const int64_t first = p.first_of_share(n, i), last = p.first_of_share(n, i + 1);
                        ASSERT_LE(first, last);
                        EXPECT_NEAR(work(first, last), each, 0.5 * each + 2 * one);
                    }
                }
    // Two threads for each of seven parts, the last of which is longer.
    const own_parts_t p{1024, 144, 7, 90};
    EXPECT_EQ(p.first_of_share(14, 2), 90);
    EXPECT_EQ(p.first_of_share(14, 4), 180);
    EXPECT_EQ(p.first_of_share(14, 12), 540);
}

// One thread after the other: each first has its own tasks, then those of others that it is ready for, then
// others where enough are left.
TEST(matmul_plan, threads_take_tasks_that_they_are_ready_for) {
    const auto taken = [](int64_t least, int64_t each) {
        task_shares_t::share_t memory[3];
        task_shares_t shares(memory, 3, 1, [&](int i) { return i * each; });
        std::vector<int64_t> order;
        int64_t ready = -1;
        shares.run_prepared(
                1, least, [&](int64_t t) { return t / 10 == ready; },
                [&](int64_t t) {
                    ready = t / 10;
                    order.push_back(t);
                });
        return order;
    };
    EXPECT_EQ(taken(4, 4), (std::vector<int64_t>{4, 5, 6, 7, 8, 9, 0, 1, 2, 3}));
    EXPECT_EQ(taken(2, 4), (std::vector<int64_t>{4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 10, 11}));
    EXPECT_EQ(taken(20, 10), (std::vector<int64_t>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
    EXPECT_EQ(taken(10, 10).size(), 30u);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
