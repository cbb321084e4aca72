// SPDX-License-Identifier: Apache-2.0
// How sm90_gradient divides gradients of weights into tiles: a pure function of sizes.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {
namespace cuda {

// A consumer warpgroup sums `halves` times 64 rows of n columns. The two of a CTA take turns: one stores its
// tile while the other multiplies the next one. The CTAs of a pair have tiles side by side, and send each
// other what both read. Results leave through `boxes` parts of shared memory of each of a consumer's warps;
// the other consumer's have the same.
struct gradient_variant_t {
    int halves, n, pair, boxes;

    constexpr int tile_m() const { return 64 * halves; }
};

constexpr gradient_variant_t gradient_variants[] = {{2, 192, 1, 6}, {2, 192, 2, 6}};
constexpr int gradient_variant_count = sizeof(gradient_variants) / sizeof(gradient_variants[0]);

struct gradient_plan_t {
    int variant, grid, band;
};

// rows: of all groups.
gradient_plan_t plan_gradient(int64_t M, int64_t N, int64_t groups, int64_t rows, int sm_count);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
