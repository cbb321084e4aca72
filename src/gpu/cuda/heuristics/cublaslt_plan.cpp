// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/heuristics/cublaslt_plan.hpp"

#include <algorithm>
#include <cmath>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace cublaslt {

namespace {

constexpr int64_t panel_columns = 64;
// Costs in multiplications of cuBLASLt (350e12 per second on an H200): of a byte that decoding reads or
// writes (3.3e12 per second), and of one more kernel launch (4 us).
constexpr double per_byte = 106, per_launch = 1.4e9;

} // namespace

plan_t plan(int64_t N, int64_t K, int64_t panel_bytes, double other_speed) {
    const int64_t panel_decoded = std::max<int64_t>(K, 1) * panel_columns * 2,
                  panels = std::max<int64_t>(div_up(N, panel_columns), 1),
                  at_once = std::min(panels, decoded_bytes / panel_decoded);
    if (at_once == 0 || other_speed >= 1 || N < 1 || K < 1) return {never_rows, panel_columns};
    // Passes of about equal width.
    const int64_t passes = div_up(panels, at_once), columns = div_up(panels, passes) * panel_columns;
    const double decoding = double(panels) * double(panel_bytes + panel_decoded) * per_byte
                            + (2. * double(passes) - 1) * per_launch,
                 reading = double(panels) * double(panel_decoded) * per_byte, row = double(N) * double(K),
                 row_of_others = row / other_speed;
    // cuBLASLt multiplies, or reads decoded weights, whichever takes longer.
    const double rows = std::max(decoding / (row_of_others - row), (decoding + reading) / row_of_others);
    return {std::max<int64_t>(int64_t(std::ceil(rows)), 1), columns};
}

double speed_of_gemv(int64_t N, int64_t K, double all_columns) {
    // With fewer columns than half panels for all multiprocessors of an H200, a run takes as long.
    constexpr double rows = 16, ends = 9.5e8; // 2.7 us
    constexpr int64_t busy = 132 * panel_columns / 2;
    const double depth = rows * double(K);
    return depth * double(N) / (depth * double(std::max(N, busy)) / all_columns + ends);
}

int64_t least_fp8_rows(int64_t N, int64_t K, int64_t panel_bytes) {
    if (N < 1 || K < 1) return never_rows;
    // Multiplications in bf16 take twice as long, and cuda:sm_90 has at best 0.94 of cuBLASLt's rate. Three
    // more kernels are launched.
    const double making =
                         double(div_up(N, panel_columns)) * double(panel_bytes + K * panel_columns) * per_byte
                         + 3 * per_launch,
                 gain_of_a_row = double(N) * double(K) * (1 / .94 - 1 / 1.7);
    return int64_t(std::ceil(making / gain_of_a_row));
}

std::string to_string(const plan_t &p) {
    if (p.least_rows == never_rows) return "never";
    return "M>=" + std::to_string(p.least_rows) + ":" + std::to_string(p.columns) + "columns";
}

} // namespace cublaslt
} // namespace cuda
} // namespace impl
} // namespace mxdnn
