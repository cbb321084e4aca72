// SPDX-License-Identifier: Apache-2.0
// How sm90_gradient divides gradients of weights into tiles: a pure function of sizes.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {

// A consumer warpgroup sums `halves` times 64 rows of n columns. In turns, the two of a CTA have a tile each,
// and one stores while the other multiplies; otherwise they share a tile of twice as many rows. Pairs of CTAs
// send each other what both read.
struct gradient_variant_t {
    int halves, n;
    bool turns;
    int pair;

    constexpr int tile_m() const { return 64 * halves * (turns ? 1 : 2); }
};

constexpr gradient_variant_t gradient_variants[] = {{2, 192, true, 2}};
constexpr int gradient_variant_count = sizeof(gradient_variants) / sizeof(gradient_variants[0]);

struct gradient_plan_t {
    int variant, grid, band;
    bool pairs_m;
};

gradient_plan_t plan_gradient(int64_t M, int64_t N, int64_t groups, int sm_count);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
