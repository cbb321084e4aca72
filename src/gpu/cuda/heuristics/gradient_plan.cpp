// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/heuristics/gradient_plan.hpp"

#include <algorithm>
#include <cmath>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

gradient_plan_t plan_gradient(int64_t M, int64_t N, int64_t groups, int64_t rows, int sm_count) {
    // Pairs read less, but wait for each other, and one of them computes nothing where the number of tiles is
    // odd. They pay where groups are long.
    constexpr int64_t long_group = 1024;
    constexpr gradient_variant_t one = gradient_variants[0];
    const bool pairs = rows >= long_group * groups && div_up(N, one.n) % 2 == 0;
    gradient_plan_t plan{pairs ? 1 : 0, 0, 1};
    const gradient_variant_t &v = gradient_variants[plan.variant];
    const int64_t units = groups * div_up(M, v.tile_m()) * div_up(N, v.n * v.pair);
    plan.grid = int(std::min<int64_t>(std::max<int64_t>(units, 1), sm_count / v.pair)) * v.pair;
    // What is computed at the same time is about as many columns of a as of b.
    plan.band = int(std::max<int64_t>(1, std::lround(std::sqrt(double(sm_count) * v.n / v.tile_m()))));
    return plan;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
