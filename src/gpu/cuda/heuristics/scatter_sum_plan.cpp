// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/heuristics/scatter_sum_plan.hpp"

#include <algorithm>

#include "common/types.hpp"
#include "gpu/cuda/interface/scatter_sum_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

namespace {
constexpr int64_t align = 256;  // alignment of the parts, in bytes
constexpr int64_t together = 4; // panels that gemm multiplies together
} // namespace

int64_t sum_bytes(int64_t rows, int64_t columns, int64_t most) {
    // A chain takes no more room than a row of four columns.
    if (rows == runtime_dim || rows > most / (4 * (columns + 4))) return most;
    return std::max(round_up(4 * rows * (columns + 4), align), least_sum_bytes);
}

sum_plan_t plan_sums(int64_t rows, int64_t dst_rows, int64_t columns, int64_t step, int64_t bytes) {
    sum_plan_t p{};
    if (rows > max_searched_rows) {
        p.first_bytes = round_up(4 * dst_rows, align);
        p.next_bytes = round_up(4 * rows, align);
    }
    const int64_t room = std::max<int64_t>(bytes - p.first_bytes - p.next_bytes, 0),
                  of_row = room / (4 * std::max<int64_t>(rows, 1)), all = div_up(columns, step),
                  fit = of_row >= round_up(columns, 4) ? all : of_row / step;
    if (fit == 0) return p;
    // Passes of about equal width, in whole groups of panels if there is room.
    int64_t each = div_up(all, div_up(all, fit));
    if (each < all && round_up(each, together) <= fit) each = round_up(each, together);
    p.panels = int(std::min(each, all));
    p.row_stride = round_up(std::min(p.panels * step, columns), 4);
    return p;
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
