// SPDX-License-Identifier: Apache-2.0
// The division of gradients of weights on Hopper: every tile has a CTA, and pairs leave few CTAs idle.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/types.hpp"
#include "gpu/cuda/heuristics/gradient_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace {

TEST(gradient_plan, fits_the_device) {
    for (const int64_t M : {1, 128, 2880, 7168})
        for (const int64_t N : {1, 192, 4096, 5760})
            for (const int64_t groups : {1, 16, 256})
                for (const int64_t rows : {1, 8192, 1 << 20}) {
                    const gradient_plan_t p = plan_gradient(M, N, groups, rows, 132);
                    const gradient_variant_t &v = gradient_variants[p.variant];
                    const int64_t tiles = groups * div_up(M, v.tile_m()) * div_up(N, v.n);
                    EXPECT_LE(p.grid, 132);
                    EXPECT_GE(p.grid, v.pair);
                    EXPECT_EQ(p.grid % v.pair, 0);
                    EXPECT_GE(p.grid, std::min<int64_t>(tiles, 131)) << M << "x" << N << " of " << groups;
                    EXPECT_GE(p.band, 1);
                }
}

TEST(gradient_plan, pairs_are_for_long_groups_and_an_even_number_of_tiles) {
    const auto pair = [](int64_t N, int64_t rows) {
        return gradient_variants[plan_gradient(2880, N, 16, rows, 132).variant].pair;
    };
    EXPECT_EQ(pair(5760, 8192), 1);
    EXPECT_EQ(pair(5760, 32768), 2); // 30 tiles
    EXPECT_EQ(pair(2880, 32768), 1); // 15 tiles
}

} // namespace
} // namespace cuda
} // namespace impl
} // namespace mxdnn
