// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

#include <algorithm>

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

namespace {

constexpr int64_t tile = 64; // rows and columns of a tile of weights

struct candidate_t {
    matmul_plan_t plan;
    double cost;
};

void consider(candidate_t &best, const candidate_t &c) {
    if (c.cost < best.cost) best = c;
}

// Few rows: in bytes that the busiest multiprocessor reads.
void consider_few_rows(
        candidate_t &best, int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count) {
    const int64_t panels_all = div_up(N, tile), tiles = div_up(K, tile);
    const int64_t rows_each = std::max<int64_t>(1, div_up(rows, groups)),
                  busy = std::min<int64_t>(rows, groups);
    // What an item costs besides its bytes (filling the ring, adding up, storing), as bytes; more where two
    // CTAs add up together.
    constexpr double per_item = 24e3, per_shared_item = 40e3;
    for (int v = 0; v < int(sizeof(few_rows_variants) / sizeof(few_rows_variants[0])); v++) {
        const few_rows_shape_t &f = few_rows_variants[v];
        const int64_t blocks = busy * div_up(rows_each, 8 * f.row_tiles),
                      items = blocks * div_up(panels_all, f.panels);
        const double stage = double(f.panels) * tile_bytes
                             + double(std::min<int64_t>(rows_each, 8 * f.row_tiles)) * tile * 2;
        for (int splits = 1; splits <= std::min(2, sm_count); splits++) {
            const int64_t clusters = sm_count / splits, rounds = div_up(items, clusters);
            const double cost =
                    double(rounds)
                    * (double(div_up(tiles, splits)) * stage + (splits > 1 ? per_shared_item : per_item));
            consider(best, {{kernel_t::few_rows, v, splits, int(std::min(items, clusters)) * splits}, cost});
        }
    }
}

// Many rows: in cycles of the busiest multiprocessor.
void consider_many_rows(candidate_t &best, int64_t rows, int64_t N, int64_t K, int groups, int sm_count) {
    constexpr int panels = 4;
    const int64_t tiles = div_up(K, tile), panel_groups = div_up(N, tile * panels);
    const int64_t rows_each = std::max<int64_t>(1, div_up(rows, groups)),
                  busy = std::min<int64_t>(rows, groups);
    for (int v = 0; v < int(sizeof(many_rows_widths) / sizeof(many_rows_widths[0])); v++) {
        const int width = many_rows_widths[v];
        const int64_t items = busy * div_up(rows_each, width) * panel_groups;
        // 64 rows of K: 8 cycles of the tensor cores for every source row, and what decoding takes.
        const double stage = std::max(600., 250. + 8. * width), per_item = 2000. + 20. * width;
        for (int splits = 1; splits <= std::min(2, sm_count); splits++) {
            const int64_t clusters = sm_count / splits, rounds = div_up(items, clusters);
            // The kernel shares K in one round only, and how many rounds groups take is known on the device.
            if (splits > 1 && (rounds > 1 || groups > 1)) continue;
            const double cost = double(rounds) * (double(div_up(tiles, splits)) * stage + splits * per_item);
            consider(best, {{kernel_t::many_rows, v, splits, int(std::min(items, clusters)) * splits}, cost});
        }
    }
}

} // namespace

matmul_plan_t plan_matmul(int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count) {
    candidate_t best{{kernel_t::few_rows, 0, 1, 1}, 1e300};
    // Beyond two eights of rows mma.sync, and then decoding the weights once for every 16 rows, cost more
    // than the wider tiles of wgmma.
    if (div_up(rows, groups) <= 16)
        consider_few_rows(best, rows, N, K, groups, tile_bytes, sm_count);
    else
        consider_many_rows(best, rows, N, K, groups, sm_count);
    return best.plan;
}

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
