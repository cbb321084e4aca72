// SPDX-License-Identifier: Apache-2.0
// The plans that choose a Hopper kernel, and the space for rows that are summed. They are pure functions,
// tested without a device.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/types.hpp"
#include "gpu/cuda/heuristics/gemm_f4.hpp"
#include "gpu/cuda/heuristics/grouped_int4.hpp"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"
#include "gpu/cuda/heuristics/scatter_sum_plan.hpp"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

using namespace mxdnn::impl;
using namespace mxdnn::impl::cuda::packed;
using mxdnn::impl::cuda::kernel_id_t;

namespace {

TEST(packed_matmul_plan, makes_a_launch_for_every_size) {
    for (int64_t rows : {1, 2, 8, 9, 16, 17, 31, 64, 100, 256, 1000, 4096, 100000})
        for (int64_t N : {1, 64, 100, 2880, 4096, 5760, 8192})
            for (int64_t K : {0, 8, 64, 2880, 8192})
                for (int groups : {0, 1, 4, 128})
                    for (int sms : {1, 2, 78, 132}) {
                        const matmul_plan_t p = plan_matmul(rows, N, K, groups, 2176, sms);
                        EXPECT_GE(p.grid, 1);
                        EXPECT_LE(p.grid, p.kernel == kernel_id_t::sm90_gemv ? 2 * sms : sms);
                        const bool gemm = p.kernel == kernel_id_t::sm90_gemm,
                                   narrow = gemm && is_narrow(p.shape);
                        const int pair = narrow ? narrow_cluster(narrow_shape(p.shape).parts)
                                         : gemm ? gemm_pair(gemm_widths[p.shape])
                                                : 1;
                        if (narrow) {
                            EXPECT_EQ(groups, 0);
                            EXPECT_EQ(p.splits, 1);
                            const narrow_shape_t shape = narrow_shape(p.shape);
                            const int panels = int(div_up(N, 64)),
                                      blocks = narrow_blocks(shape, panels, p.grid),
                                      block = narrow_sharers(shape.parts)
                                              * narrow_box_rows(shape, int(rows), blocks);
                            EXPECT_GE(block * blocks, rows);
                            EXPECT_LT(block * (blocks - 1), rows); // each has rows
                            EXPECT_LE(block, shape.width);
                            EXPECT_EQ(p.grid, narrow_block_ctas(shape, panels) * blocks);
                            EXPECT_GE(int64_t(p.grid) * shape.panels * 64, N * shape.parts * blocks);
                        }
                        EXPECT_TRUE(p.splits >= 1
                                    && p.splits <= (p.kernel == kernel_id_t::sm90_gemm ? most_parts : 2));
                        EXPECT_EQ(p.grid % (p.splits * pair), 0);
                        if (groups <= 1) {
                            EXPECT_EQ(p.kernel != kernel_id_t::sm90_gemm, rows <= 16);
                        }
                        EXPECT_EQ(p.kernel == kernel_id_t::sm90_gemv, groups == 0 && rows <= 16);
                        if (p.kernel == kernel_id_t::sm90_gemv) {
                            EXPECT_GE(8 * gemv_tiles[p.shape], rows);
                        }
                        // Sums over more than one CTA take one round of gemm, and there is room.
                        if (p.kernel == kernel_id_t::sm90_gemm && p.splits > 1) {
                            EXPECT_EQ(groups, 0);
                            EXPECT_LE(p.splits * rows * parts_stride(N), sms * most_sums);
                            const int64_t items = div_up(rows, gemm_widths[p.shape]) * div_up(N, 256 / pair);
                            EXPECT_LE(div_up(items, pair) * p.splits * pair, p.grid);
                        }
                    }
}

// Terms of a source row are rows to few rows, which have to hold them, and passes through K to many.
TEST(packed_matmul_plan, has_room_for_the_terms_of_rows) {
    for (int64_t rows : {1, 5, 6, 8, 9, 16, 17, 300})
        for (int terms : {2, 3})
            for (int groups : {0, 1, 128}) {
                const matmul_plan_t p = plan_matmul(rows, 4096, 4096, groups, 2176, 132, gemm_all, terms);
                EXPECT_EQ(p.kernel == kernel_id_t::sm90_gemv, groups == 0 && rows * terms <= 16);
                if (p.kernel == kernel_id_t::sm90_gemv) {
                    EXPECT_GE(8 * gemv_tiles[p.shape], rows * terms);
                }
                if (groups <= 1 && rows * terms > 16) {
                    EXPECT_EQ(p.kernel, kernel_id_t::sm90_gemm);
                }
            }
}

// Runs with as many rows as gemv can hold, terms included; then all rows at once.
TEST(packed_matmul_plan, grouped_gemv_again_and_again) {
    for (const int terms : {1, 2, 3}) {
        const int64_t each = rows_per_gemv(64, terms);
        EXPECT_EQ(each, gemv_most / terms);
        for (const int64_t rows : {1, 5, 16, 17, 64}) EXPECT_EQ(rows_per_gemv(rows, terms), each) << rows;
        EXPECT_EQ(rows_per_gemv(4096, terms), 4096);
    }
}

TEST(sm80_matmul_plan, has_a_block_for_every_row) {
    for (int64_t rows : {1, 2, 8, 9, 47, 48, 49, 4096, 100000})
        for (int64_t N : {1, 64, 2880})
            for (int groups : {0, 1, 4, 128})
                for (int terms : {1, 2, 3})
                    for (int sms : {1, 108}) {
                        const matmul_plan_t p = plan_sm80_matmul(rows, N, groups, sms, terms);
                        EXPECT_EQ(p.kernel, kernel_id_t::sm80_gemm);
                        EXPECT_TRUE(p.grid >= 1 && p.grid <= sms && p.splits == 1);
                        if (groups <= 1) {
                            EXPECT_EQ(sm80_gemm_tiles[p.shape] == 1, rows * terms <= 8);
                        }
                    }
    EXPECT_EQ(plan_sm80_matmul(1, 4096, 0, 108).grid, 64);
    EXPECT_EQ(plan_sm80_matmul(4096, 4096, 0, 108).grid, 108);
}

// Sizes of models: every multiprocessor has work, except where two panels per CTA are too few.
TEST(packed_matmul_plan, fills_the_device) {
    for (int64_t rows : {1, 16, 256, 4096})
        EXPECT_GE(plan_matmul(rows, 8192, 8192, 0, 2176, 132).grid, 120) << rows;
    EXPECT_GE(plan_matmul(256, 4096, 4096, 0, 2176, 132).grid, 120);
    EXPECT_EQ(plan_matmul(1, 4096, 4096, 0, 2176, 132).splits, 2);
    // K is shared by CTAs of no cluster, so that few are left out.
    EXPECT_GE(plan_matmul(80, 8192, 8192, 0, 2176, 132).grid, 128);
    // Fewer rows have a panel for each CTA, if there are panels for all.
    EXPECT_TRUE(is_narrow(plan_matmul(64, 8192, 8192, 0, 2176, 132).shape));
    EXPECT_FALSE(is_narrow(plan_matmul(64, 8192 + 320, 8192, 0, 2176, 132).shape));
    // More rows are divided into blocks, if there is room for all CTAs.
    const auto blocks = [](int64_t rows, int64_t N, int64_t K) {
        const matmul_plan_t p = plan_matmul(rows, N, K, 0, 2176, 132);
        return is_narrow(p.shape) ? narrow_blocks(narrow_shape(p.shape), int(N / 64), p.grid) : 0;
    };
    EXPECT_EQ(blocks(192, 8192, 8192), 2);
    EXPECT_EQ(blocks(256, 8192, 8192), 2);
    EXPECT_EQ(blocks(256, 8192, 4096), 2);
    EXPECT_EQ(blocks(512, 4096, 4096), 4);
    EXPECT_EQ(blocks(640, 2880, 2880), 5);
    EXPECT_EQ(blocks(2048, 1024, 4096), 16);
    EXPECT_EQ(blocks(96, 2880, 2880), 2);
    EXPECT_EQ(blocks(384, 4096, 14336), 3);
    EXPECT_EQ(blocks(640, 2048, 7168), 4); // of 160 rows
    // Three panels of a CTA.
    EXPECT_EQ(blocks(768, 2880, 2880), 8);
    EXPECT_EQ(blocks(1024, 2880, 2880), 8);
    EXPECT_EQ(blocks(512, 5760, 2880), 4);
    // Where blocks would be small beside what a step costs, or do not fit.
    EXPECT_EQ(blocks(512, 8192, 8192), 0);
    // With fewer panels, the CTAs of a cluster share K.
    const auto parts = [](int64_t rows, int64_t N, int64_t K) {
        return narrow_shape(plan_matmul(rows, N, K, 0, 2176, 132).shape).parts;
    };
    EXPECT_EQ(parts(128, 8192, 8192), 2);
    EXPECT_EQ(parts(256, 4096, 14336), 2);
    EXPECT_EQ(parts(256, 5760, 2880), 2);
    EXPECT_EQ(parts(256, 4096, 4096), 2);
    EXPECT_EQ(parts(32, 8192, 8192), 1);
    EXPECT_EQ(parts(32, 4096, 4096), 2);
    EXPECT_EQ(parts(64, 2880, 5760), 2);
    EXPECT_EQ(parts(64, 4096, 14336), 2);
    EXPECT_EQ(parts(32, 1024, 8192), 4);
    EXPECT_EQ(parts(64, 1024, 4096), 4);
    // Three panels of four CTAs, where a CTA for each panel would leave a third of them without work.
    for (int64_t rows : {80, 100, 192}) EXPECT_EQ(parts(rows, 2880, 2880), 4);
    EXPECT_EQ(parts(320, 2880, 2880), 4);
    EXPECT_EQ(parts(128, 5760, 2880), 4);
    EXPECT_EQ(parts(128, 4096, 4096), 1);
    EXPECT_EQ(narrow_variants(8192, 132), 22);
    EXPECT_EQ(narrow_variants(4096, 132), 31);
    EXPECT_EQ(narrow_variants(1024, 132), 34);
    EXPECT_EQ(narrow_variants(16896, 132), 10);
    EXPECT_EQ(narrow_variants(28672, 132), 0);
    // Columns beyond what an int counts in panels.
    EXPECT_EQ(narrow_variants(int64_t(1) << 38, 132), 0);
    for (const int64_t N : {int64_t(1) << 33, int64_t(3) << 36, int64_t(1) << 38})
        EXPECT_FALSE(is_narrow(plan_matmul(64, N, 64, 0, 2176, 132).shape)) << N;
    // Parts of K that are added up by another kernel cost more.
    for (int64_t rows : {65, 72, 80, 112})
        EXPECT_TRUE(is_narrow(plan_matmul(rows, 4096, 4096, 0, 2176, 132).shape)) << rows;
    EXPECT_TRUE(is_narrow(plan_matmul(302, 1024, 4096, 0, 2176, 132).shape));
    // Long products take wide blocks, short ones of other formats a width by what decoding takes.
    EXPECT_EQ(gemm_width(plan_matmul(757, 8192, 8192, 0, 2176, 132).shape), 256);
    EXPECT_EQ(gemm_width(plan_matmul(112, 4096, 1024, 0, 4224, 132, gemm_common).shape), 32);
    EXPECT_EQ(plan_matmul(112, 4096, 1024, 0, 4224, 132, gemm_common).splits, 1);
    for (int64_t rows : {17, 24, 32, 40, 48, 56})
        EXPECT_TRUE(is_narrow(plan_matmul(rows, 8192, 8192, 0, 2176, 132).shape)) << rows;
    EXPECT_GE(plan_matmul(4, 5760, 2880, 4, 2176, 132).grid, 110);
}

// A decoding kernel has one CTA per multiprocessor, so that CTAs of the next kernel fit beside them. It has
// fewer where most would have no work, and two where there is more work.
TEST(packed_matmul_plan, grouped_gemv_of_one_matrix_leave_the_next_kernel_one_place_on_each_multiprocessor) {
    const auto grid = [](int64_t rows, int64_t panels) {
        return plan_matmul(rows, 64 * panels, 4096, 0, 2176, 132).grid;
    };
    for (int64_t rows : {1, 8, 16}) {
        for (int64_t panels : {34, 40, 64, 66}) EXPECT_EQ(grid(rows, panels), 132) << rows << ", " << panels;
        for (int64_t panels : {1, 8, 33, 67, 128, 132}) EXPECT_EQ(grid(rows, panels), 2 * panels) << rows;
        EXPECT_EQ(grid(rows, 1000), 264);
    }
}

// Rows are spread over groups at random. The chosen block has room for more rows than the mean, so that few
// groups need a second block, which reads and decodes their weights again.
TEST(packed_matmul_plan, leaves_room_for_groups_above_the_mean) {
    const auto plan = [](int64_t tokens) { return plan_matmul(4 * tokens, 5760, 2880, 128, 2176, 132); };
    for (int64_t tokens : {1, 8, 32, 48, 52, 64, 128, 256}) {
        EXPECT_EQ(plan(tokens).kernel, kernel_id_t::sm90_grouped_gemv) << tokens;
        // From two rows each on, some may have more than eight.
        EXPECT_EQ(grouped_gemv_tiles[plan(tokens).shape], tokens < 52 ? 1 : 2) << tokens;
    }
    // Formats whose blocks of eight rows cost more in the kernel for 16.
    EXPECT_EQ(plan_matmul(4 * 64, 5760, 2880, 128, 2176, 132, gemm_common).shape, 0);
    EXPECT_EQ(plan_matmul(4 * 256, 5760, 2880, 128, 2176, 132, gemm_common).shape, 1);
    EXPECT_EQ(plan(1024).kernel, kernel_id_t::sm90_gemm);
    EXPECT_EQ(gemm_widths[plan(1024).shape], 48);
    EXPECT_EQ(gemm_widths[plan(4096).shape], 144);
    EXPECT_EQ(gemm_widths[plan(8192).shape], 288); // half of the groups have more than the mean of 256
}

// With int4, blocks have eight rows until sm80_gemm, whose blocks have 48, takes less time.
TEST(packed_matmul_plan, groups_of_int4) {
    const auto plan = [](int64_t rows, int groups) {
        return plan_grouped_int4(rows, 5760, 2880, groups, 2304, 132);
    };
    for (int64_t tokens : {1, 64, 256, 512, 1024, 2048}) {
        EXPECT_EQ(plan(4 * tokens, 128).kernel, kernel_id_t::sm90_grouped_gemv) << tokens;
        EXPECT_EQ(grouped_gemv_tiles[plan(4 * tokens, 128).shape], 1) << tokens;
    }
    EXPECT_EQ(plan(4 * 8192, 128).kernel, kernel_id_t::sm80_gemm);
    EXPECT_EQ(plan(32, 1).kernel, kernel_id_t::sm90_grouped_gemv);
    EXPECT_EQ(plan(48, 1).kernel, kernel_id_t::sm80_gemm);
    for (int64_t rows : {0, 1, 7, 100, 5000})
        for (int sms : {1, 2, 132}) {
            const matmul_plan_t p = plan_grouped_int4(rows, 320, 64, 8, 2304, sms);
            EXPECT_TRUE(p.grid >= 1 && p.grid <= sms && p.grid % p.splits == 0);
        }
}

// Decoding to FP8 pays where each group has many rows; the grid is whole pairs of CTAs.
TEST(packed_matmul_plan, rows_of_fp8) {
    EXPECT_FALSE(fp8_pays(4 * 1024, 128));
    EXPECT_FALSE(fp8_pays(4 * 4096, 128));
    EXPECT_TRUE(fp8_pays(4 * 8192, 128));
    EXPECT_TRUE(fp8_pays(1000, 5));
    EXPECT_FALSE(fp8_pays(0, 1));
    for (int64_t rows : {128, 700, 32768})
        for (int groups : {1, 3, 128})
            for (int64_t N : {6, 5760})
                for (int sms : {2, 3, 132}) {
                    const matmul_plan_t p = plan_fp8_matmul(rows, N, groups, sms);
                    EXPECT_EQ(p.kernel, kernel_id_t::sm90_gemm);
                    EXPECT_EQ(p.shape, gemm_fp8);
                    EXPECT_EQ(p.splits, 1);
                    EXPECT_EQ(p.grid % gemm_pair(gemm_fp8_width), 0);
                    EXPECT_GT(p.grid, 0);
                    EXPECT_LE(p.grid, sms);
                }
    EXPECT_EQ(plan_fp8_matmul(32768, 5760, 128, 132).grid, 132);
}

// Weights in n64_f4 are multiplied in FP8 for any number of rows, in blocks as wide as most groups need.
TEST(packed_matmul_plan, rows_of_fp8_by_weights_in_their_layout) {
    const auto width = [](int64_t tokens) {
        const matmul_plan_t p = plan_f4_matmul(4 * tokens, 5760, 128, 132, false);
        EXPECT_EQ(p.kernel, kernel_id_t::sm90_gemm);
        EXPECT_TRUE(is_f4(p.shape) && !keeps_sums(p.shape));
        EXPECT_EQ(p.grid, 132);
        return f4_width(p.shape);
    };
    EXPECT_EQ(width(64), 16);
    EXPECT_EQ(width(256), 16);
    EXPECT_EQ(width(512), 32);
    EXPECT_EQ(width(1024), 48);
    EXPECT_EQ(width(1280), 48); // two blocks for few
    EXPECT_EQ(width(1536), 96); // two of 48 for half of them
    EXPECT_EQ(width(2048), 96);
    EXPECT_EQ(width(3072), 128);
    EXPECT_EQ(width(4096), 144);
    EXPECT_EQ(width(5120), 192); // a block for most groups, where 144 would need two
    EXPECT_EQ(width(7168), 128); // two blocks for most
    EXPECT_EQ(width(8192), 144); // two blocks for nearly all
    EXPECT_EQ(plan_f4_matmul(0, 6, 1, 2, false).grid, 1);
}

// Where sums may stay in the tensor cores, they do where that takes less time: not with few rows.
TEST(packed_matmul_plan, sums_that_stay_in_the_tensor_cores) {
    for (const int64_t tokens : {1, 64, 256, 512, 1024, 1536, 2048, 2560}) {
        const matmul_plan_t p = plan_f4_matmul(4 * tokens, 5760, 128, 132, true);
        EXPECT_FALSE(keeps_sums(p.shape)) << tokens;
        EXPECT_EQ(p.shape, plan_f4_matmul(4 * tokens, 5760, 128, 132, false).shape) << tokens;
    }
    const auto width = [](int64_t tokens) {
        const matmul_plan_t p = plan_f4_matmul(4 * tokens, 5760, 128, 132, true);
        EXPECT_TRUE(keeps_sums(p.shape)) << tokens;
        return f4_width(p.shape);
    };
    EXPECT_EQ(width(3072), 144);
    EXPECT_EQ(width(4096), 144);
    EXPECT_EQ(width(4352), 160); // a block for most groups, where 144 would need two
    EXPECT_EQ(width(4608), 160);
    EXPECT_EQ(width(4928), 160);
    EXPECT_EQ(width(5008), 256);
    EXPECT_EQ(width(5120), 256);
    EXPECT_EQ(width(6144), 256);
    EXPECT_EQ(width(7168), 256);
    EXPECT_EQ(width(8192), 144); // two blocks for nearly all
    // Never elsewhere.
    for (int64_t rows = 1; rows < 100000; rows += 97)
        for (const int groups : {1, 8, 128})
            EXPECT_FALSE(keeps_sums(plan_f4_matmul(rows, 5760, groups, 132, false).shape));
}

// Rows that are quantised in execute come while many of them are multiplied.
TEST(packed_matmul_plan, rows_that_come_meanwhile) {
    const auto makers = [](int64_t tokens, bool any) {
        const matmul_plan_t p = plan_f4_matmul(4 * tokens, 5760, 128, 132, any);
        return plan_makers(p, 4 * tokens, 5760, 2880, 128, 132);
    };
    for (const bool any : {false, true}) {
        EXPECT_EQ(makers(64, any).ctas, 0);
        EXPECT_EQ(makers(1024, any).ctas, 0); // blocks of 48 rows
        EXPECT_EQ(makers(2048, any).ctas, 48);
        EXPECT_EQ(makers(2048, any).rounds, 2);
        EXPECT_EQ(makers(4096, any).rounds, 3);
        EXPECT_EQ(makers(8192, any).rounds, 5);
    }
    EXPECT_EQ(makers(5120, false).ctas, 0); // blocks of 192 rows
    EXPECT_EQ(makers(5120, true).rounds, 4);
    EXPECT_EQ(makers(6144, true).rounds, 4);
    EXPECT_EQ(makers(7168, true).rounds, 4);
    // Items for all rounds; and no more multiprocessors than others.
    for (int64_t rows = 1; rows < 1000000; rows += rows / 7 + 1)
        for (const int64_t N : {64, 640, 5760})
            for (const int groups : {1, 8, 128}) {
                const matmul_plan_t p = plan_f4_matmul(rows, N, groups, 132, true);
                const makers_t m = plan_makers(p, rows, N, 2880, groups, 132);
                if (m.ctas == 0) continue;
                EXPECT_EQ(p.grid, 132);
                EXPECT_LT(m.ctas, 66);
                EXPECT_TRUE(m.rounds > 0 && m.rounds < 256) << rows;
            }
}

TEST(rows_sum_plan, fits_its_room_and_covers_all_columns) {
    for (int64_t rows : {1, 8, 1024, 1025, 16384, 100000, 500000})
        for (int64_t dst_rows : {1, 4096, 100000})
            for (int64_t columns : {1, 32, 64, 100, 2880, 8192})
                for (int64_t step : {32, 64})
                    for (const int64_t known : {rows, rows / 8, runtime_dim}) {
                        const int64_t bytes = sum_bytes(known, columns);
                        EXPECT_GE(bytes, least_sum_bytes);
                        EXPECT_LE(bytes, most_sum_bytes);
                        const sum_plan_t p = plan_sums(rows, dst_rows, columns, step, bytes);
                        if (known == rows && dst_rows <= rows && 4 * rows * (columns + 4) <= most_sum_bytes) {
                            EXPECT_EQ(p.panels, div_up(columns, step)); // one pass
                        }
                        if (p.panels == 0) {
                            EXPECT_GT(4 * rows * (step + 4) + 4 * dst_rows + 512, bytes);
                            continue;
                        }
                        EXPECT_EQ(p.next_bytes > 0, rows > 1024);
                        EXPECT_GE(p.row_stride, std::min(p.panels * step, columns));
                        EXPECT_EQ(p.row_stride % 4, 0); // rows start on 16 bytes
                        EXPECT_LE(p.next_bytes + p.first_bytes + 4 * rows * p.row_stride, bytes);
                        // No pass is much narrower than the others.
                        const int64_t all = div_up(columns, step), passes = div_up(all, p.panels);
                        EXPECT_GE(all - (passes - 1) * p.panels, p.panels - 4 * passes);
                    }
    EXPECT_EQ(plan_sums(int64_t(1) << 30, 1, 64, 64, most_sum_bytes).panels, 0);
}

TEST(rows_sum_plan, expert_layers_take_few_passes) {
    EXPECT_EQ(plan_sums(4 * 1024, 1024, 2880, 64, most_sum_bytes).panels, 45);
    EXPECT_EQ(plan_sums(4 * 4096, 4096, 2880, 64, most_sum_bytes).panels, 24); // of 45
    EXPECT_EQ(plan_sums(4 * 4096, 4096, 2880, 64, most_sum_bytes).panels % 4, 0);
    // With a hint, long prompts take one.
    const int64_t rows = 4 * 8192, hinted = sum_bytes(rows, 2880, most_hinted_bytes);
    EXPECT_EQ(plan_sums(rows, 8192, 2880, 64, hinted).panels, 45);
    EXPECT_LT(plan_sums(rows, 8192, 2880, 64, sum_bytes(rows, 2880)).panels, 45);
    EXPECT_EQ(sum_bytes(int64_t(1) << 40, 2880, most_hinted_bytes), most_hinted_bytes);
}

} // namespace
