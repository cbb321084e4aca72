// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/heuristics/gradient_plan.hpp"

#include <algorithm>
#include <cmath>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

gradient_plan_t plan_gradient(int64_t M, int64_t N, int64_t groups, int sm_count) {
    constexpr int variant = 0;
    const gradient_variant_t &v = gradient_variants[variant];
    const int64_t down = div_up(M, v.tile_m()), across = div_up(N, v.n);
    gradient_plan_t plan{variant, 0, 1, false};
    // Where a pair has one tile too many, one of its CTAs computes nothing.
    plan.pairs_m = round_up(down, v.pair) * across <= down * round_up(across, v.pair);
    const int64_t units =
            groups * (plan.pairs_m ? div_up(down, v.pair) * across : down * div_up(across, v.pair));
    plan.grid = int(std::min<int64_t>(std::max<int64_t>(units, 1), sm_count / v.pair)) * v.pair;
    // What is computed at the same time is about as many columns of a as of b.
    const double area = double(sm_count) * v.tile_m() * v.n;
    const int64_t height = int64_t(std::lround(std::sqrt(area) / v.tile_m() / (plan.pairs_m ? v.pair : 1)));
    plan.band = int(std::max<int64_t>(1, height));
    return plan;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
