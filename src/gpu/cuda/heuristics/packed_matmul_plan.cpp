// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/types.hpp"
#include "gpu/cuda/heuristics/gemm_f4.hpp"
#include "gpu/cuda/heuristics/grouped_int4.hpp"
#include "gpu/cuda/heuristics/packed_matmul_text.hpp"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

namespace {

constexpr int64_t tile = 64; // rows and columns of a tile of weights

struct candidate_t {
    matmul_plan_t plan;
    double cost;
};

void consider(candidate_t &best, const candidate_t &c) {
    if (c.cost < best.cost) best = c;
}

// The rows of the groups that have any. Only the device knows how many each has. The plan assumes that rows
// were distributed among groups at random: quantiles of the normal distribution with that mean and variance.
struct spread_t {
    static constexpr double quantiles[] = {-1.65, -1., -.67, -.39, -.13, .13, .39, .67, 1., 1.65, 2.5};
    static constexpr int count = sizeof(quantiles) / sizeof(quantiles[0]);
    double busy = 1; // groups that have rows
    int64_t rows[count];

    spread_t(int64_t all, int groups) {
        if (groups > 1) busy = groups * -std::expm1(-double(all) / groups);
        const double mean = double(all) / busy, deviation = groups > 1 ? std::sqrt(mean - 1. / busy) : 0.;
        for (int i = 0; i < count; i++)
            rows[i] = std::max<int64_t>(1, int64_t(std::lround(mean + quantiles[i] * deviation)));
    }
    int64_t most() const { return rows[count - 1]; }
    // Clusters that have work, or may have: the number of items is an estimate.
    int64_t grid(double items, int64_t clusters) const {
        return busy > 1. ? clusters
                         : std::min<int64_t>(std::max<int64_t>(int64_t(std::ceil(items)), 1), clusters);
    }
    // The mean of cost(rows) over the groups.
    template <typename F>
    double mean(F &&cost) const {
        double sum = 0;
        for (int i = 0; i < count - 1; i++) sum += cost(rows[i]);
        return sum / (count - 1);
    }
};

// The work of the busiest of so many clusters. Items are handed out in turn.
double rounds_of(double items, int64_t clusters) { return std::ceil(items / double(clusters) - 1e-9); }

// Few rows of one matrix. Two CTAs share K, which gives work to every multiprocessor. If at least half of the
// clusters have an item, and none has two, the others get a spare one (gemv.cuh says why). More items than
// clusters use the room that is for the next kernel.
matmul_plan_t plan_gemv(int64_t rows, int64_t N, int sm_count) {
    const int v = rows <= 8 * gemv_tiles[0] ? 0 : 1, splits = std::min(2, sm_count);
    const int64_t items = div_up(N, tile), clusters = sm_count / splits;
    const int64_t used = items > clusters       ? std::min(items, clusters * gemv_ctas)
                         : 2 * items > clusters ? clusters
                                                : items;
    return {kernel_id_t::sm90_gemv, v, splits, int(used) * splits};
}

struct variants_range_t {
    size_t first, end;
};

// Few rows: in bytes that the busiest multiprocessor reads. variants: those of the kernel that are
// considered.
void consider_grouped_gemv(candidate_t &best, const spread_t &spread, int64_t N, int64_t K, int tile_bytes,
        int sm_count, const variants_range_t &variants) {
    const int64_t panels_all = div_up(N, tile), tiles = div_up(K, tile);
    constexpr int panels_each = 4; // of an item
    // The cost of an item besides its bytes (filling the ring, adding up, storing), in bytes. It is higher if
    // two CTAs add up together.
    constexpr double per_item = 24e3, per_shared_item = 40e3;
    for (size_t v = variants.first; v < variants.end; v++) {
        const int64_t block_rows = 8 * grouped_gemv_tiles[v];
        const double panels = spread.busy * double(panels_all)
                              * spread.mean([&](int64_t rows) { return double(div_up(rows, block_rows)); });
        const double source =
                spread.mean([&](int64_t rows) { return double(std::min(rows, block_rows)); }) * tile * 2;
        for (int splits = 1; splits <= std::min(2, sm_count); splits++) {
            const int64_t clusters = sm_count / splits;
            // Panels are shared equally.
            const double busiest = rounds_of(panels, clusters), items = std::ceil(busiest / panels_each);
            const double cost = double(div_up(tiles, splits)) * (busiest * tile_bytes + items * source)
                                + items * (splits > 1 ? per_shared_item : per_item);
            const int64_t grid = spread.grid(panels, clusters);
            consider(best, {{kernel_id_t::sm90_grouped_gemv, int(v), splits, int(grid) * splits}, cost});
        }
    }
}

// The costs of gemm. Those of short products of one matrix are fits to times, in units of 1 / 1700 us. The
// others are cycles: long products take the power that the board has, and wide blocks take less of it.
struct gemm_costs_t {
    // Of 64 rows of K for a consumer, which decodes and waits for its products in turn: in a pair of CTAs, in
    // blocks of up to 64 rows, and in others; each with what a row adds.
    double paired, paired_row, narrow, narrow_row, narrow_width, wide, wide_row;
    double beside;         // what wide blocks take beside products
    double lonely_panel;   // a factor of wide blocks if a CTA has one panel only
    double item, item_row; // what an item takes besides
    double everywhere;     // what CTAs on all multiprocessors take from the beginning of the next kernel
    double last_round;     // the least part of a round that the last one takes if clusters are pairs
    // For parts of K and the kernel that adds them up: launching it, and the bytes of parts per unit, which
    // are written and read.
    double sum, sum_bytes;
};
constexpr gemm_costs_t long_costs = {600, 1.75, 670, 2, 1.2, 700, 4, 80, 1, 3500, 0, 0, 1, 2500, 1100},
                       mxfp4_costs = {412, 2.07, 482, 1.64, 2.23, 546, 3.81, 0, 1.14, 0, 20.5, 3270, .63,
                               6220, 2340},
                       four_bit_costs = {460, 2.08, 553, 1.65, 2.32, 853, 2.09, 0, 1, 2660, 13.8, 2890, .45,
                               4380, 1810},
                       byte_costs = {691, 1.65, 680, 1.15, 2.61, 1028, 3.34, 0, 1, 1150, 18.9, 3190, .64,
                               5420, 2000};

const gemm_costs_t &gemm_costs(int64_t rows, int64_t N, int64_t K, int tile_bytes, bool is_mxfp4) {
    constexpr int64_t most_rows = 1024;
    constexpr double most_products = 22e9;
    constexpr int few_bytes = 2560; // of a tile with codes of four bits, at most
    return rows > most_rows || double(rows) * double(N) * double(K) > most_products ? long_costs
           : is_mxfp4                                                               ? mxfp4_costs
           : tile_bytes <= few_bytes                                                ? four_bit_costs
                                                                                    : byte_costs;
}

// Many rows: what the busiest multiprocessor does. parts: the most that K is divided into.
void consider_gemm(candidate_t &best, const spread_t &spread, int64_t N, int64_t K, int sm_count, int widths,
        int parts, const gemm_costs_t &costs) {
    const int64_t tiles = div_up(K, tile);
    for (int v = 0; v < widths; v++) {
        const int width = gemm_widths[v], pair = gemm_pair(width);
        // Those that are left for one CTA of a pair make an item with those of another block.
        const double column_groups = double(div_up(N, 4 / pair * tile)) / pair;
        const double blocks = spread.busy
                              * spread.mean([&](int64_t rows) { return double(div_up(rows, width)); }),
                     items = blocks * column_groups;
        // Blocks of a group have about equal widths, and none is narrower than half of the width.
        const auto runs_of = [&](int64_t rows) {
            const int64_t each = div_up(rows, div_up(rows, width));
            int runs = width;
            for (int less; (less = gemm_narrower(width, runs)) >= each;) runs = less;
            return runs;
        };
        // The cost of 64 rows of K is the larger one of two: that of the tensor cores, 8 cycles for every
        // source row, divided by those that share them; and that of a consumer, with one panel or two.
        const double lonely = width > 64 && pair == 1 && div_up(N, tile) % 4 == 1 ? costs.lonely_panel : 1.;
        const double stage = lonely * spread.mean([&](int64_t rows) {
            const int runs = runs_of(rows);
            const double tensor = (60. + 8. * runs) / pair;
            return pair > 1      ? std::max(tensor, costs.paired + costs.paired_row * runs)
                   : width <= 64 ? std::max(
                             tensor, costs.narrow + costs.narrow_row * runs + costs.narrow_width * width)
                                 : std::max(tensor + costs.beside, costs.wide + costs.wide_row * runs);
        });
        const double item = costs.item + costs.item_row * spread.mean(runs_of);
        const int64_t clusters = sm_count / pair;
        for (int splits = 1; splits <= parts && clusters > 0; splits++) {
            const double shares = splits > 1 ? std::ceil(items) * splits : items;
            double rounds = rounds_of(shares, clusters);
            if (splits > 1 && rounds > 1) continue; // K is shared in one round only
            // Blocks may become narrower, so that there are as many items as clusters.
            if (pair > 1 && rounds > 1)
                rounds += (1 - costs.last_round) * (shares / double(clusters) - rounds);
            double cost = rounds * (double(div_up(tiles, splits)) * stage + item)
                          + costs.everywhere * std::min(1., shares / double(clusters));
            if (splits > 1) cost += costs.sum + double(splits * spread.most() * N * 4) / costs.sum_bytes;
            const int64_t grid = splits > 1 ? int64_t(shares) : spread.grid(items, clusters);
            consider(best, {{kernel_id_t::sm90_gemm, v, splits, int(grid) * pair}, cost});
        }
    }
}

// Panels of 64 columns that gemm_narrow takes, all of them at once. 0: there are more.
int narrow_panels(int64_t N, int sm_count) {
    const int64_t panels = div_up(N, tile);
    return panels > 2 * sm_count ? 0 : int(panels);
}

// The CTAs of gemm_narrow that a device can have at once.
int64_t most_narrow_ctas(const narrow_shape_t &shape, int sm_count) {
    // Multiprocessors lie in groups that clusters of four do not fill.
    return shape.parts == 4 ? sm_count * 10 / 11 : sm_count;
}

// Some rows, in one kernel: the same measure. Every cluster has one item.
void consider_gemm_narrow(candidate_t &best, int64_t rows, int64_t N, int64_t K, int sm_count) {
    const int panels = narrow_panels(N, sm_count), tiles = int(div_up(K, tile));
    for (int v = gemm_narrow_first; is_narrow(v); v++) {
        const narrow_shape_t shape = narrow_shape(v);
        const int64_t blocks = div_up(rows, shape.width), ctas = blocks * narrow_block_ctas(shape, panels);
        if (ctas == 0 || ctas > most_narrow_ctas(shape, sm_count)) continue;
        const bool helped = narrow_is_helped(shape);
        const double width = shape.width, panels_each = helped ? 1 : shape.panels,
                     steps = helped ? tiles - narrow_helped_steps(tiles) : double(div_up(tiles, shape.parts)),
                     box = narrow_sharers(shape.parts) * narrow_box_rows(shape, int(rows), int(blocks));
        // A step is decoding, products, and copies of rows, of which those that do not exist cost more if
        // they are copied for two CTAs. In the end sums of a helper, or of other parts of K, are added. The
        // more CTAs there are, the less room is for the beginning of the next kernel.
        const double missing = shape.parts == 1 ? box * double(blocks) - double(rows) : 0.,
                     step = panels_each == 1   ? 115. + 1.12 * width + .29 * box + .005 * missing * width
                            : panels_each == 2 ? 194. + 2.55 * width
                            : shape.parts > 1  ? 5.77 * width
                                               : 171. + 5.09 * width,
                     added = helped            ? 2.4 * width
                             : shape.parts > 1 ? 5.8 * width * panels_each
                                               : 0.,
                     item = 1650. + 5.8 * width * panels_each + 4320. * double(ctas) / sm_count;
        consider(best, {{kernel_id_t::sm90_gemm, v, 1, int(ctas)}, steps * step + added + item});
    }
}

// The cost of a block for 128 rows of K and four panels: of few rows that of reading the weights, of many
// that of decoding and multiplying. Each variant has code, registers and stages of its own. 3.3 of it are a
// microsecond of 128 groups of 2880 x 5760 on an H200.
struct f4_cost_t {
    double least, each, of_row;
};
constexpr f4_cost_t f4_costs[] = {{0., 955., 1.9}, {0., 965., 1.9}, {1020., 720., 14.}, {1550., 1185., 7.9},
        {1750., 1290., 6.9}, {1900., 1385., 7.}, {2300., 990., 12.1}, {1760., 1500., 4.1},
        {1930., 1060., 8.9}, {2290., 1770., 6.9}};
static_assert(std::size(f4_costs) == f4_all, "one for each variant");

double f4_block_cost(int variant, double rows) {
    const f4_cost_t &c = f4_costs[variant - gemm_f4_first];
    return std::max(c.least, c.each + c.of_row * rows);
}

} // namespace

matmul_plan_t plan_matmul(
        int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count, int widths, int terms) {
    candidate_t best{{kernel_id_t::sm90_grouped_gemv, 0, 1, 1}, 1e300};
    const spread_t few(std::max<int64_t>(rows * terms, 1), groups);
    // With more than 16 rows, mma.sync costs more than the wider tiles of wgmma; and so does decoding the
    // weights again for every 16 rows.
    if (groups == 0 && rows * terms <= gemv_most) return plan_gemv(rows * terms, N, sm_count);
    if (few.most() <= 16)
        // Experts are not chosen as evenly as `few` has it: with two rows each, some have more than eight. So
        // MXFP4 takes blocks of 16 then, of which those with up to eight rows cost hardly more.
        consider_grouped_gemv(best, few, N, K, tile_bytes, sm_count,
                {widths == gemm_all && groups > 1 && double(rows * terms) >= 2 * few.busy,
                        std::size(grouped_gemv_tiles)});
    else
        consider_gemm(best, spread_t(std::max<int64_t>(rows, 1), groups), N, K * terms, sm_count, widths,
                groups == 0 ? most_parts : 1,
                groups > 0 ? long_costs : gemm_costs(rows, N, K * terms, tile_bytes, widths == gemm_all));
    if (groups == 0 && terms == 1 && widths == gemm_all) // MXFP4
        consider_gemm_narrow(best, rows, N, K, sm_count);
    return best.plan;
}

matmul_plan_t plan_grouped_int4(
        int64_t rows, int64_t N, int64_t K, int groups, int tile_bytes, int sm_count) {
    candidate_t best{{kernel_id_t::sm90_grouped_gemv, 0, 1, 1}, 1e300};
    const spread_t spread(std::max<int64_t>(rows, 1), groups);
    consider_grouped_gemv(best, spread, N, K, tile_bytes, sm_count, {0, 1});
    // A block of 48 rows of sm80_gemm takes as long as 4.5 blocks of eight.
    const double few = spread.mean([](int64_t of_group) { return double(div_up(of_group, 8)); }),
                 many = spread.mean([](int64_t of_group) { return 4.5 * double(div_up(of_group, 48)); });
    return few <= many ? best.plan : plan_sm80_matmul(rows, N, groups, sm_count);
}

int narrow_variants(int64_t N, int sm_count) {
    const int panels = narrow_panels(N, sm_count);
    int count = 0;
    for (const narrow_shape_t &shape : narrow_shapes)
        count += panels > 0 && narrow_block_ctas(shape, panels) <= most_narrow_ctas(shape, sm_count);
    return count;
}

int64_t rows_per_gemv(int64_t rows, int terms) {
    constexpr int64_t launches = 16;
    const int64_t each = std::max<int64_t>(gemv_most / terms, 1);
    return rows > launches * each ? rows : each;
}

matmul_plan_t plan_sm80_matmul(int64_t rows, int64_t N, int groups, int sm_count, int terms) {
    const spread_t spread(std::max<int64_t>(rows * terms, 1), std::max(groups, 1));
    const int v = spread.most() <= 8 * sm80_gemm_tiles[0] ? 0 : 1;
    const int64_t block_rows = 8 * sm80_gemm_tiles[v] / terms;
    // An upper bound: every group with rows may have a block that is not full.
    const int64_t blocks = std::min<int64_t>(std::max(groups, 1), rows) + rows / block_rows;
    const int64_t grid = std::min<int64_t>(blocks * div_up(N, tile), sm_count);
    return {kernel_id_t::sm80_gemm, v, 1, int(std::max<int64_t>(grid, 1))};
}

bool fp8_pays(int64_t rows, int groups) {
    constexpr int64_t least_rows = 192; // of a group: with 128 bf16 takes 9 % less time, with 256 FP8 13 %
    return rows >= least_rows * std::max(groups, 1);
}

matmul_plan_t plan_fp8_matmul(int64_t rows, int64_t N, int groups, int sm_count) {
    constexpr int pair = gemm_pair(gemm_fp8_width);
    const spread_t spread(std::max<int64_t>(rows, 1), groups);
    const double blocks = spread.busy * spread.mean([](int64_t of_group) {
        return double(div_up(of_group, gemm_fp8_width));
    });
    const double items = blocks * double(div_up(N, 4 * tile));
    const int64_t grid = spread.grid(items, sm_count / pair);
    return {kernel_id_t::sm90_gemm, gemm_fp8, 1, int(grid) * pair};
}

matmul_plan_t plan_f4_matmul(int64_t rows, int64_t N, int groups, int sm_count, bool any) {
    const spread_t spread(std::max<int64_t>(rows, 1), groups);
    candidate_t best{{kernel_id_t::sm90_gemm, gemm_f4_first, 1, 1}, 1e300};
    for (int v = gemm_f4_first; is_f4(v); v++) {
        if (keeps_sums(v) && !any) continue;
        const int width = f4_width(v), panels = f4_panels(width);
        const double cost = spread.mean([&](int64_t of_group) {
            const int64_t blocks = div_up(of_group, width);
            return double(blocks) * f4_block_cost(v, double(div_up(of_group, blocks)));
        });
        const double blocks =
                spread.busy * spread.mean([&](int64_t of_group) { return double(div_up(of_group, width)); });
        const int64_t grid = spread.grid(blocks * double(div_up(N, panels * tile)), sm_count);
        consider(best, {{kernel_id_t::sm90_gemm, v, 1, int(grid)}, cost});
    }
    return best.plan;
}

makers_t plan_makers(
        const matmul_plan_t &plan, int64_t rows, int64_t N, int64_t K, int groups, int sm_count) {
    // Few rows are sooner made before, by all multiprocessors. One of them makes so many elements in a
    // microsecond.
    constexpr int64_t least_elements = 4096 * 2880;
    constexpr double start = 7., per_microsecond = 6.5 * 2880, cost_per_microsecond = 1620.;
    if (!f4_may_come(plan.shape) || plan.grid < sm_count || rows * K < least_elements) return {};
    const int ctas = sm_count * 4 / 11, width = f4_width(plan.shape), panels = f4_panels(width);
    const spread_t spread(rows, groups);
    const auto blocks = [&](int64_t of_group) { return double(div_up(of_group, width)); };
    const double block = spread.mean([&](int64_t of_group) {
        return blocks(of_group) * f4_block_cost(plan.shape, double(of_group) / blocks(of_group));
    }) / spread.mean(blocks);
    // An item is a block and so many panels.
    const double item = block / cost_per_microsecond * panels / 4. * double(K) / 128.,
                 items = spread.busy * spread.mean(blocks) * double(div_up(N, panels * tile)),
                 made = start + double(rows * K) / (per_microsecond * ctas);
    const int rounds = std::max(1, int(std::lround(made / item)));
    if (rounds * (sm_count - ctas) > items || rounds > UINT8_MAX || ctas > UINT8_MAX) return {};
    return {ctas, rounds};
}

std::string to_string(const matmul_plan_t &p) {
    const int v = p.shape;
    if (p.kernel == kernel_id_t::sm80_gemm)
        return "sm80_gemm:" + std::to_string(8 * sm80_gemm_tiles[v]) + "rows:grid" + std::to_string(p.grid);
    return (p.kernel == kernel_id_t::sm90_grouped_gemv
                           ? "grouped_gemv:" + std::to_string(8 * grouped_gemv_tiles[v]) + "rows"
                   : p.kernel == kernel_id_t::sm90_gemv ? "gemv:" + std::to_string(8 * gemv_tiles[v]) + "rows"
                   : is_f4(v)                           ? "gemm_f4:" + std::to_string(f4_width(v)) + "wide"
                                        + (keeps_sums(v) ? ":kept" : "")
                   : is_narrow(v)
                           ? "gemm_narrow:" + std::to_string(narrow_shape(v).width) + "wide:parts"
                                     + std::to_string(narrow_shape(v).parts)
                           : (v == gemm_fp8 ? "gemm_fp8:" : "gemm:") + std::to_string(gemm_width(v)) + "wide")
           + ":splits" + std::to_string(p.splits) + ":grid" + std::to_string(p.grid);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
