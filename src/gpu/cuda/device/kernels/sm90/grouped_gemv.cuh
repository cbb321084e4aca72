// SPDX-License-Identifier: Apache-2.0
// Matmul for few rows of the source (decoding): bound by reading the weights, so everything is
// arranged for an uninterrupted stream of them, and for multiprocessors that end together.
//
// A CTA gets an equal share of all panels of 64 columns that row blocks meet (stretch.cuh), and works on up
// to four at a time: an item, with a block of up to 8 * row_tiles rows of bf16 (a row of the source is one,
// or the sum of two or three) and all of K. Its warps pass items on to each other and never meet:
//
// - Two producers keep a ring of stages full: 128 rows of K (two tiles) of every panel by bulk copies, and
//   the same 128 columns of the source rows by copies of 16 bytes. (A bulk copy takes its warp about 30 ns
//   to start, a stage some 200 ns to go through; hence large stages, taken in turn by two warps.)
// - Four teams of four consumers: pairs of teams take stages in turn, a tile each, each warp 16 columns of
//   every panel: they decode to fragments in registers and multiply with mma.sync, weights as the 16-row A
//   operand, source rows as its 8 columns. At the end of an item each team leaves its sums in shared memory.
// - Two finishers add up the teams' sums, in fixed order, and store, while the next item is multiplied.
//
// Where there are few panels, the two CTAs of a cluster share K; each finishes half of the columns from the
// shared memory of both, again in fixed order. (Larger clusters do not fit: the 132 multiprocessors of an
// H200 lie in groups of 16 and 18, which hold 30 clusters of 4.)
//
// Programmatic dependent launch lets the next kernel of the stream start on multiprocessors that are
// done and fill its ring with weights; it waits for this one before it reads the source. (Two CTAs a
// multiprocessor would overlap more, but leave 56 registers a thread, which costs more than it gains.)
#pragma once

#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/stretch.cuh"
#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/unscaled_sums.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/ahead.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct grouped_gemv_t {
    static constexpr int panels = 4, panel_columns = packed::panel_columns, max_stages = 24;
    static constexpr int teams = 4, team_warps = 4, pairs = teams / 2, pair_warps = 2 * team_warps;
    static constexpr int consumer_warps = teams * team_warps, producer_warps = 2, finisher_warps = 2;
    static constexpr int consumers = consumer_warps * 32, finishers = finisher_warps * 32;
    static constexpr int first_producer = consumer_warps, first_finisher = first_producer + producer_warps;
    // As many warps as leave 96 registers to each thread: five for each quarter of a multiprocessor.
    static constexpr int threads = (first_finisher + finisher_warps) * 32;
    static constexpr int tile_rows = 64, tiles_per_stage = 2, stage_rows = tile_rows * tiles_per_stage;
    // A row of the source in a stage. It is 16 bytes longer than its 128 bf16, so that the eight rows of an
    // ldmatrix are in different banks.
    static constexpr int src_pitch = stage_rows * 2 + 16;
    // A row of sums: 4 floats more than the columns, for the same reason.
    static constexpr int sum_pitch = panels * panel_columns + 4;
    static constexpr int shared_bytes = 227 * 1024;
    static_assert(producer_warps == pairs, "stages in turn");
    // Named barrier of all warps except the second producer.
    static constexpr int place_barrier = 1, place_threads = threads - 32;
    static constexpr int hurried_stages = 2; // of each producer, before it waits for the list
    static constexpr int line_bytes = 128, most_prefetched = 4 << 20;
    static_assert(panels * panel_columns / 4 <= finishers, "a finisher has one quad of columns");
};

// One variant of the kernel: multiples of eight rows. sums: whether a row of the source may be the sum of
// several bf16 rows. If it never is, the kernel has fewer instructions.
template <typename format_, int row_tiles_, bool sums_>
struct grouped_gemv_variant_t {
    using format = format_;
    using k = grouped_gemv_t;
    static constexpr int row_tiles = row_tiles_, rows = 8 * row_tiles;
    static constexpr bool sums = sums_;
    struct head_t {
        uint64_t full[k::max_stages], empty[k::max_stages];
        uint64_t sums_ready, sums_read;
        work_list_t list;
        stretch_place_t place;
        int source_rows[k::threads]; // source rows of the first rows of a list that gathers
    };
    static constexpr int head_bytes = (int(sizeof(head_t)) + 127) / 128 * 128;
    static constexpr int part_bytes = rows * k::sum_pitch * 4, sum_bytes = k::teams * part_bytes;
    // Rows of the source, and a row of zeros.
    static constexpr int src_bytes = ((rows + 1) * k::src_pitch + 127) / 128 * 128;
    static constexpr int tile_bytes = format::max_header + k::tile_rows * k::panel_columns * format::bits / 8;
    static constexpr int panel_bytes = k::tiles_per_stage * tile_bytes;
    static constexpr int stage_bytes = src_bytes + k::panels * panel_bytes;
    static constexpr int fit = (k::shared_bytes - head_bytes - sum_bytes) / stage_bytes;
    // A stage has the same producer and the same pair of teams in every round. If pairs took over stages from
    // each other, a pair that is ahead could mistake the previous round for its own.
    static constexpr int stages = (fit > k::max_stages ? k::max_stages : fit) / k::pairs * k::pairs;
    static constexpr int bytes = head_bytes + sum_bytes + stages * stage_bytes;
    static_assert(stages > k::pairs, "too few stages to hide the latency of memory");
    static_assert(stages < k::threads / 32, "a warp for each initialises its barriers");
    // All panels of an item together, if there are registers for their codes and for sums of so many tiles of
    // eight rows; otherwise two at a time.
    static constexpr bool all_together(int tiles) { return format::bits == 4 && tiles == 1; }
};

// A place in the ring: a stage, and the parity of its full barrier when it has been filled in this round.
template <typename variant>
struct grouped_gemv_place_t {
    int slot = 0, parity = 0;
    __device__ __forceinline__ void next(int by) {
        slot += by;
        if (slot >= variant::stages) slot -= variant::stages, parity ^= 1;
    }
};

// v, hidden from the compiler.
__device__ __forceinline__ uint32_t kept(uint32_t v) {
    asm volatile("" : "+r"(v));
    return v;
}

template <typename variant>
__global__ void __launch_bounds__(grouped_gemv_t::threads, 1) grouped_gemv(const matmul_args_t args) {
    using namespace ptx;
    using k = grouped_gemv_t;
    using format = typename variant::format;
    constexpr int rows = variant::rows, row_tiles = variant::row_tiles, panels = k::panels;
    extern __shared__ __align__(1024) uint8_t shared[];
    typename variant::head_t &head = *reinterpret_cast<typename variant::head_t *>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const panels_t<panels> panel_map(args);
    const int tiles_all = (args.K + k::tile_rows - 1) / k::tile_rows;
    const int stages_all = (tiles_all + k::tiles_per_stage - 1) / k::tiles_per_stage;
    // The number of bf16 rows for each row of the source. The finishers add up their sums.
    const int terms = variant::sums ? args.src_terms : 1;
    const block_cost_t<row_tiles> cost(args, terms);
    // Whether K is shared with the other CTA of a cluster.
    const bool shares = args.splits > 1;
    const int rank = shares ? int(cluster_rank()) : 0;
    const int stage_begin = rank ? stages_all / 2 : 0;
    const int item_stages = (shares && !rank ? stages_all / 2 : stages_all) - stage_begin;
    constexpr int ring = variant::stages, stage_bytes = variant::stage_bytes;
    // The part of a panel in a stage: two tiles, or one tile if blocks have 128 rows.
    const bool two_step_tiles = !format::one_step_tiles && args.tiling.tile_steps_shift > 0;
    const int tile_bytes = format::one_step_tiles ? variant::tile_bytes : args.tiling.tile_bytes,
              panel_bytes = two_step_tiles ? tile_bytes : k::tiles_per_stage * tile_bytes;
    const uint32_t sums = shared_address(shared) + variant::head_bytes, stages = sums + variant::sum_bytes;
    const uint32_t full = shared_address(head.full), empty = shared_address(head.empty);
    const uint32_t sums_ready = shared_address(&head.sums_ready), sums_read = shared_address(&head.sums_read);

    // Later kernels start as soon as they can, but after the kernels that wrote a list. They may read
    // constant weights at once.
    const bool listed = args.grouped;
    if (!listed) let_later_kernels_start();
    if (lane == 0) { // of a warp for each stage, and one more
        if (warp < ring) {
            barrier_init(full + 8 * warp, 1 + 32); // announced bytes, and the lanes that copy the source
            barrier_init(empty + 8 * warp, k::pair_warps);
        } else if (warp == ring) {
            barrier_init(sums_ready, k::consumers << shares);
            barrier_init(sums_read, k::finishers << shares);
        }
        barrier_init_fence();
    }
    constexpr int zeros = k::src_pitch / 16;
    for (int i = threadIdx.x; i < ring * zeros; i += k::threads)
        *reinterpret_cast<uint4 *>(shared + variant::head_bytes + variant::sum_bytes + i / zeros * stage_bytes
                                   + rows * k::src_pitch + i % zeros * 16) = uint4{0, 0, 0, 0};
    // Small data that is read first after the wait is prefetched to L2: one line per thread of all CTAs.
    const auto prefetch = [&](const void *from, int64_t bytes) {
        const int64_t at = (int64_t(blockIdx.x) * k::threads + threadIdx.x) * k::line_bytes;
        if (from && at < bytes && bytes <= k::most_prefetched)
            prefetch_line(static_cast<const uint8_t *>(from) + at);
    };
    if (listed) prefetch(args.groups.bounds, args.groups.groups * 4);
    if (args.gather) prefetch(args.gather + args.row_begin, int64_t(args.M) * 4);
    prefetch(args.src,
            ((args.gather ? args.src_rows : args.M) * args.src_stride - args.src_stride + args.K) * 2);
    // What a producer knows of its item: its place in the ring and in the item, the row block, and weights.
    const int producer = warp - k::first_producer;
    grouped_gemv_place_t<variant> to; // its next stage
    to.slot = producer;
    int i = producer; // its number in the item
    row_block_t block{};
    int panels_here = 0;
    const uint8_t *weights = nullptr;
    // Sixteen lanes copy a row's 128 columns.
    constexpr int lanes_each = k::stage_rows / 8, rows_at_once = 32 / lanes_each,
                  copies = rows / rows_at_once;
    const int chunk = lane % lanes_each, first_row = lane / lanes_each;
    // The position in src of this lane's part of each row of a block; which rows exist, one bit each; and
    // the number of the block.
    const uint8_t *source[copies];
    uint32_t there = 0;
    int first_known = -1;
    const auto set_item = [&](const row_block_t &of, int first_unit, int units) {
        block = of;
        panels_here = panel_map.slots_of(units);
        weights = packed_of(args, block.expert) + args.prefix
                  + panel_map.panel_from(first_unit, lane) * args.tiling.panel_bytes;
    };
    const auto start_weights = [&](const grouped_gemv_place_t<variant> &to, int i) {
        const int64_t from = int64_t(stage_begin + i) * panel_bytes;
        const int bytes = int(min(int64_t(panel_bytes), args.tiling.panel_bytes - from));
        const uint32_t bar = full + 8 * to.slot;
        barrier_wait(empty + 8 * to.slot, to.parity ^ 1);
        if (lane == 0) barrier_arrive_expect(bar, panels_here * bytes);
        __syncwarp();
        if (lane < panels_here)
            bulk_copy(stages + to.slot * stage_bytes + variant::src_bytes + lane * variant::panel_bytes,
                    weights + from, bytes, bar);
    };
    const int64_t term_stride = terms == 1 ? 0 : args.src_stride / terms;
    const auto find_rows = [&](const auto &row_of) {
        if (block.first == first_known) return;
        first_known = block.first, there = 0;
#pragma unroll
        for (int j = 0; j < copies; j++) {
            const int r = first_row + j * rows_at_once, of = terms == 1 ? r : r / terms,
                      there_or_last = row_of(block.first + min(of, block.rows - 1)),
                      row = of < block.rows ? there_or_last : -1;
            if (row >= 0) there |= 1u << j;
            source[j] = static_cast<const uint8_t *>(args.src)
                        + (max(row, 0) * args.src_stride + (r - of * terms) * term_stride
                                  + stage_begin * k::stage_rows + chunk * 8)
                                  * 2;
        }
    };
    const auto start_source = [&](const grouped_gemv_place_t<variant> &to, int i) {
        const int left = args.K - (stage_begin + i) * k::stage_rows - chunk * 8; // columns
        const uint32_t valid = left > 0 ? there : 0;
        const uint32_t at = stages + to.slot * stage_bytes + first_row * k::src_pitch + chunk * 16;
#pragma unroll
        for (int j = 0; j < copies; j++) {
            if (j * rows_at_once >= block.rows * terms) break;
            copy_16(at + j * rows_at_once * k::src_pitch, source[j] + (valid ? i * k::stage_rows * 2 : 0),
                    valid >> j & 1);
        }
        copy_arrive(full + 8 * to.slot);
    };
    // Only for a plain matrix of rows it is known without reading which weights and rows are needed.
    constexpr bool may_hurry = row_tiles == 1 && !variant::sums;
    const bool hurries = may_hurry && few_rows_t::fit(args);
    bool begun = false; // the first item of a producer
    few_rows_t few;
    if (hurries) {
        few.prepare(panel_map.units(), int(blockIdx.x) >> shares, int(gridDim.x) >> shares);
        __syncthreads(); // barriers are initialised
    }
    if (listed) {
        wait_for_earlier_kernels();
        let_later_kernels_start();
    }
    // The last warps read which rows to gather, in the same way as the first ones read the list. They do not
    // use source_row_of: its load could be moved before the wait, and the kernel that is waited for may write
    // them.
    const bool gathers = listed && args.gather;
    if (const int m = k::threads - 1 - int(threadIdx.x); gathers && m < args.M) {
        const int row = args.gather[args.row_begin + m];
        head.source_rows[m] = unsigned(row) < unsigned(args.src_rows) ? row : -1;
    }
    // With a token or two, the producers begin with their first item while the others make the list.
    stretch_place_t few_place;
    if constexpr (may_hurry) {
        if (hurries && warp >= k::first_producer && warp < k::first_finisher) {
            // Rows of the source that are gathered, one for each lane.
            int gathered = -1;
            if (args.gather && lane < args.M) gathered = args.gather[args.row_begin + lane];
            row_block_t first_block{};
            few_place = few.place(args, first_block);
            if (producer == 0) {
                if (lane == 0) head.place = few_place;
                __syncwarp();
                named_barrier_arrive(k::place_barrier, k::place_threads);
            }
            if (few_place.group >= 0) {
                set_item(first_block, few_place.unit,
                        few_rows_t::first_units(few_place, panel_map.units(), panel_map.units_each()));
                for (int n = 0; n < k::hurried_stages && i < item_stages;
                        n++, i += k::producer_warps, to.next(k::producer_warps)) {
                    start_weights(to, i);
                    if (n == 0)
                        find_rows([&](int m) {
                            const int row = __shfl_sync(~0u, gathered, (m - args.row_begin) & 31);
                            return !args.gather                              ? m - args.row_begin
                                   : unsigned(row) < unsigned(args.src_rows) ? row
                                                                             : -1;
                        });
                    start_source(to, i);
                }
                begun = true;
            }
        }
    }
    head.list.build(args, [&](int group_rows) { return cost.of_group(group_rows); });
    if (shares) cluster_sync();

    // The producers find out which part of the work belongs to this CTA, and begin. The others get it from
    // the first producer, so that they do not delay the producers.
    const auto walk = [&](const stretch_place_t &place) {
        return stretch_t<panels, row_tiles>(head.list, args, panel_map, cost, place);
    };
    const auto walk_as_told = [&] {
        named_barrier(k::place_barrier, k::place_threads);
        return walk(head.place);
    };
    // Called by every thread, here and in the other CTA.
    const auto arrive = [&](uint32_t barrier) {
        barrier_arrive(barrier);
        if (shares) cluster_barrier_arrive(cluster_address(barrier, rank ^ 1));
    };
    // The sums of the other CTA have arrived, or have been read, when its arrivals have.
    const auto wait = [&](uint32_t barrier, int parity) {
        if (shares)
            barrier_wait_cluster(barrier, parity);
        else
            barrier_wait(barrier, parity);
    };

    if (warp >= k::first_finisher) {
        const auto stretch = walk_as_told();
        wait_for_earlier_kernels(); // later kernels rely on it, even if there is no work
        const int thread = int(threadIdx.x) - k::first_finisher * 32;
        int parity = 0;
        for (auto item = stretch; item.units; item.next()) {
            const row_block_t block = item.block();
            // Four columns of a row per thread. The CTAs of a cluster take equal shares of the columns.
            const int quads = panel_map.quads_of(item.units) >> shares, quad = quads * rank + thread % quads;
            const int first_row = thread / quads, row_step = k::finishers / quads;
            const columns_t columns(
                    args, block.expert, panel_map.column_from(item.first, quad), format::sum_scale);
            const auto add = [](float4 &v, const float4 &o) {
                v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
            };
            const auto sum_at = [&](int row, int column) {
                const int at = (row * k::sum_pitch + column) * 4;
                float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
                if (shares) {
#pragma unroll 1
                    for (int r = 0; r < 2; r++)
#pragma unroll
                        for (int part = 0; part < k::teams; part++)
                            add(v, cluster_load(cluster_address(sums + part * variant::part_bytes + at, r)));
                } else {
#pragma unroll
                    for (int part = 0; part < k::teams; part++)
                        add(v, *reinterpret_cast<const float4 *>(
                                       shared + variant::head_bytes + part * variant::part_bytes + at));
                }
                return v;
            };
            wait(sums_ready, parity);
            parity ^= 1;
            if (first_row < row_step) {
                const int column = panel_map.slot_column(quad);
#pragma unroll 1
                for (int row = first_row; row < block.rows; row += row_step) {
                    const auto sum_of_terms = [&](int column) {
                        float4 v = sum_at(row * terms, column);
#pragma unroll 1
                        for (int term = 1; term < terms; term++) add(v, sum_at(row * terms + term, column));
                        return v;
                    };
                    const float4 v = sum_of_terms(column),
                                 up = panel_map.up ? sum_of_terms(column + panel_columns) : v;
                    const int m = block.first + row;
                    columns.store<1>(args, m, 1, m + 1, &v.x, &up.x, 0);
                }
            }
            arrive(sums_read);
        }
    } else if (warp >= k::first_producer) {
        stretch_place_t place = few_place;
        if (!hurries) {
            place = place_of_stretch(head.list, args, panel_map.units(), cost, int(blockIdx.x) >> shares,
                    int(gridDim.x) >> shares);
            if (producer == 0) {
                if (lane == 0) head.place = place;
                __syncwarp();
                named_barrier_arrive(k::place_barrier, k::place_threads);
            }
        }
        const auto stretch = walk(place);
        bool waited = listed;
        const auto row_of = [&](int m) {
            return gathers && m - args.row_begin < k::threads ? head.source_rows[m - args.row_begin]
                                                              : source_row_of(args, m);
        };
        for (auto item = stretch; item.units; item.next()) {
            if (!begun) set_item(item.block(), item.first, item.units);
            begun = false;
            if (!waited && !args.constant_weights) { // an earlier kernel may write the weights
                const int64_t from = int64_t(stage_begin) * panel_bytes,
                              bytes = args.tiling.panel_bytes - from;
                if (producer == 0 && lane < panels_here)
                    bulk_prefetch(weights + from, uint32_t(min(int64_t(ring) * panel_bytes, bytes)));
                wait_for_earlier_kernels();
                waited = true;
            }
            // Starts as many copies of weights as are allowed before earlier kernels have ended, and at least
            // those of one stage before anything waits for the rows.
            const int first = i, ahead = min(waited ? i + 1 : ring, item_stages);
            const grouped_gemv_place_t<variant> begin = to;
            for (; i < ahead; i += k::producer_warps, to.next(k::producer_warps)) start_weights(to, i);
            if (!waited) wait_for_earlier_kernels();
            waited = true;
            find_rows(row_of);
            for (i = first, to = begin; i < ahead; i += k::producer_warps, to.next(k::producer_warps))
                start_source(to, i);
            for (; i < item_stages; i += k::producer_warps, to.next(k::producer_warps)) {
                start_weights(to, i);
                start_source(to, i);
            }
            i -= item_stages;
        }
    } else {
        const auto stretch = walk_as_told();
        const int team = warp / k::team_warps, half = team % 2, group = lane / 4, quad = lane % 4;
        const place_t place = format::place(int(threadIdx.x) % 128, args.tiling);
        // This thread's addresses in the first stage. They are stored, because the compiler would compute
        // them again in every stage.
        constexpr int step_bytes = k::tile_rows * k::panel_columns * format::bits / 8;
        const uint32_t tile = stages + variant::src_bytes + (two_step_tiles ? 0 : half * tile_bytes);
        const uint32_t scales_at = kept(tile + place.scales),
                       codes_at = kept(tile + place.codes + (two_step_tiles ? half * step_bytes : 0));
        const bool arrives = kept(lane) == 0;
        // A tile with codes for 32 rows only.
        const int rest = args.K % k::tile_rows,
                  short_tile = rest && rest <= k::tile_rows / 2 ? args.K / k::tile_rows : -1;
        // This pair's next stage: its distance in bytes from the first one, its barrier and the barrier's
        // parity.
        uint32_t stage = team / 2 * stage_bytes, bar = kept(full + team / 2 * 8), parity = 0;
        int next = team / 2;                                             // its number in the item
        const int own_stages = (tiles_all - half + 1) / 2 - stage_begin; // stages with the tile of this team
        int sums_parity = 0;
        for (auto item = stretch; item.units; item.next()) {
            const int panels_here = int(kept(panel_map.slots_of(item.units)));
            const auto multiply_item = [&](auto tiles_of) {
                using std::integral_constant;
                constexpr int tiles = decltype(tiles_of)::value; // of eight rows
                constexpr bool all_together = variant::all_together(tiles);
                // The order of a sum does not depend on where in the ring its item began.
                const int part = next * 2 + half;
                // Rows that the block does not have are replaced by the row of zeros. This takes less power
                // than old data would, and power limits the clock.
                const int rows_here = item.block().rows * terms;
                uint32_t source_at[tiles];
#pragma unroll
                for (int t = 0; t < tiles; t++) {
                    const int row = t * 8 + lane % 8;
                    source_at[t] = kept(stages + (row < rows_here ? row : rows) * k::src_pitch
                                        + half * k::tile_rows * 2 + lane / 8 * 16);
                }

                float sum[panels][tiles][4];
#pragma unroll
                for (int p = 0; p < panels; p++)
#pragma unroll
                    for (int t = 0; t < tiles; t++)
#pragma unroll
                        for (int i = 0; i < 4; i++) sum[p][t][i] = 0.f;

#pragma unroll 1
                for (; next < item_stages; next += k::pairs) {
                    barrier_wait(bar, parity);
                    if (next < own_stages) { // the last stage may be half empty
                        const uint32_t scales_here = scales_at + stage, codes_here = codes_at + stage;
                        uint32_t b[tiles][2][4];
#pragma unroll
                        for (int t = 0; t < tiles; t++)
#pragma unroll
                            for (int h = 0; h < 2; h++) load_matrix_4(b[t][h], source_at[t] + stage + h * 64);
                        // Slots without a panel have old data of an earlier stage.
                        const auto load = [&](int p) {
                            const shared_reader_t scales{scales_here + p * variant::panel_bytes},
                                    codes{codes_here + p * variant::panel_bytes};
                            if constexpr (format::bits == 8)
                                return format::load(scales, codes, args.tiling,
                                        (stage_begin + next) * 2 + half != short_tile);
                            else
                                return format::load(scales, codes, args.tiling);
                        };
                        // Several panels together, whose products are independent.
                        const auto multiply_by = [&](auto any, auto *sum, const auto &raw) {
                            constexpr int count = int(sizeof(raw) / sizeof(raw[0]));
                            if constexpr (has_unscaled<format>) {
#pragma unroll
                                for (int h = 0; h < 2; h++)
#pragma unroll
                                    for (int p = 0; p < count; p++)
                                        add_unscaled<format, any, tiles, calls_any<format>>(sum[p], raw[p], h,
                                                args.K - ((stage_begin + next) * 2 + half) * k::tile_rows,
                                                [&](int t, uint32_t(&of)[4]) {
#pragma unroll
                                                    for (int i = 0; i < 4; i++) of[i] = b[t][h][i];
                                                });
                            } else {
#pragma unroll
                                for (int i = 0; i < 4; i++)
#pragma unroll
                                    for (int p = 0; p < count; p++) {
                                        uint32_t a[4];
                                        format::template decode<decltype(any)::value>(a, raw[p], i);
#pragma unroll
                                        for (int t = 0; t < tiles; t++)
                                            mma_bf16(sum[p][t], a, b[t][i / 2][i % 2 * 2],
                                                    b[t][i / 2][i % 2 * 2 + 1]);
                                    }
                            }
                        };
                        // Sums of weights whose scales are applied late come last, one by one: a bit each.
                        [[maybe_unused]] uint32_t special_panels = 0;
                        const auto multiply = [&](auto first, auto count) {
                            typename format::raw_t raw[count];
                            uint32_t special = 0;
#pragma unroll
                            for (int p = 0; p < count; p++) {
                                raw[p] = load(first + p);
                                special |= format::special(raw[p]);
                            }
                            if (__any_sync(~0u, special != 0)) {
                                if constexpr (has_unscaled<format>)
                                    special_panels |= ((1u << count) - 1) << first;
                                else
                                    multiply_by(std::true_type(), sum + first, raw);
                            } else {
                                multiply_by(std::false_type(), sum + first, raw);
                            }
                        };
                        constexpr integral_constant<int, 0> p0;
                        constexpr integral_constant<int, 1> p1;
                        constexpr integral_constant<int, 2> p2;
                        constexpr integral_constant<int, 3> p3;
                        constexpr integral_constant<int, 4> p4;
                        static_assert(panels == 4, "each number of them has its code");
                        if (all_together && panels_here == 4)
                            multiply(p0, p4);
                        else if (all_together && panels_here == 3)
                            multiply(p0, p3);
                        else if (panels_here > 1)
                            multiply(p0, p2);
                        else
                            multiply(p0, p1);
                        if (!all_together && panels_here == 4)
                            multiply(p2, p2);
                        else if (!all_together && panels_here == 3)
                            multiply(p2, p1);
                        if constexpr (has_unscaled<format>) {
                            // One function for all panels: it is long, and rarely runs.
#pragma unroll 1
                            for (int special = 0; special_panels >> special; special++) {
                                if (!(special_panels >> special & 1)) continue;
                                const typename format::raw_t raw[1] = {load(special)};
                                float of[1][tiles][4];
                                const auto each_sum = [&](auto &&f) {
#pragma unroll
                                    for (int p = 0; p < panels; p++)
#pragma unroll
                                        for (int i = 0; i < tiles * 4; i++)
                                            if (p == special) f(of[0][i / 4][i % 4], sum[p][i / 4][i % 4]);
                                };
                                each_sum([](float &v, float &of_panel) { v = of_panel; });
                                multiply_by(std::true_type(), of, raw);
                                each_sum([](float &v, float &of_panel) { of_panel = v; });
                            }
                        }
                    }
                    __syncwarp();
                    if (arrives) barrier_arrive(bar + sizeof(head.full)); // its stage is empty
                    stage += k::pairs * stage_bytes, bar += k::pairs * 8;
                    if (stage >= ring * stage_bytes)
                        stage -= ring * stage_bytes, bar -= ring * 8, parity ^= 1;
                }
                next -= item_stages;

                wait(sums_read, sums_parity ^ 1);
                sums_parity ^= 1;
                float *own =
                        reinterpret_cast<float *>(shared + variant::head_bytes + part * variant::part_bytes)
                        + quad * 2 * k::sum_pitch + warp % k::team_warps * 16 + group;
#pragma unroll
                for (int p = 0; p < panels; p++) {
                    if (p >= panels_here) break;
#pragma unroll
                    for (int t = 0; t < tiles; t++)
#pragma unroll
                        for (int i = 0; i < 4; i++)
                            own[(t * 8 + i % 2) * k::sum_pitch + p * k::panel_columns + i / 2 * 8] =
                                    sum[p][t][i];
                }
            };
            if (row_tiles == 1 || !item.has_two())
                multiply_item(std::integral_constant<int, 1>());
            else
                multiply_item(std::integral_constant<int, row_tiles>());
            arrive(sums_ready);
        }
    }
    __syncwarp();
    if (shares) cluster_sync(); // no CTA may end before the other one has read its sums
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
