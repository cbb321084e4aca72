// SPDX-License-Identifier: Apache-2.0
// Matmul for few rows of the source (decoding): bound by reading the weights, so everything is
// arranged for an uninterrupted stream of them.
//
// A CTA is teams of four consumer warps and two producer warps. A work item is up to four panels of
// 64 columns, a block of up to 8 * row_tiles rows of the source, and a share of K. The producers keep
// a ring of stages full: 128 rows of K (two tiles) of every panel by bulk copies, and the same 128
// columns of the source rows by copies of 16 bytes. (A bulk copy takes its warp about 30 ns to start,
// a stage some 200 ns to go through; hence large stages, taken in turn by two warps.) Pairs of teams
// take stages in turn, a tile each, each warp 16 columns of every panel: they decode to fragments in
// registers and multiply with mma.sync, weights as the 16-row A operand, source rows as its 8
// columns. At the end the teams' sums add up in shared memory, in fixed order.
//
// Where there are fewer items than multiprocessors, the two CTAs of a cluster share K; each adds up
// half of the columns from the shared memory of both, again in fixed order. (Larger clusters do not
// fit: the 132 multiprocessors of an H200 lie in groups of 16 and 18, which hold 30 clusters of 4.)
//
// Programmatic dependent launch lets the next kernel of the stream start on multiprocessors that are
// done and fill its ring with weights; it waits for this one before it reads the source. (Two CTAs a
// multiprocessor would overlap more, but leave 56 registers a thread, which costs more than it gains.)
#pragma once

#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/finish.cuh"
#include "gpu/cuda/device/kernels/sm90/work_list.cuh"
#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

struct few_rows_t {
    static constexpr int max_panels = 4, panel_columns = sm90::panel_columns, max_stages = 24;
    static constexpr int team_warps = 4, pair_warps = 2 * team_warps, producer_warps = 2, sum_parts = 2;
    static constexpr int tile_rows = 64, tiles_per_stage = 2, stage_rows = tile_rows * tiles_per_stage;
    // A row of the source in a stage; 16 bytes more than its 128 bf16, so that the eight rows of an
    // ldmatrix lie in different banks.
    static constexpr int src_pitch = stage_rows * 2 + 16;
    static constexpr int shared_per_sm = 228 * 1024, shared_reserved = 1024; // the second for each CTA
};

// One variant of the kernel: rows in eights, panels at a time, teams of warps, and how many CTAs have
// to fit into a multiprocessor: registers and shared memory are divided among them.
template <typename format_, int row_tiles_, int panels_, int teams_, int ctas_>
struct few_rows_variant_t {
    using format = format_;
    static constexpr int row_tiles = row_tiles_, panels = panels_, teams = teams_, ctas = ctas_;
    static constexpr int consumer_warps = teams * few_rows_t::team_warps, consumers = consumer_warps * 32;
    static constexpr int threads = consumers + few_rows_t::producer_warps * 32;
    static_assert(teams == 2 || teams == 4, "pairs of teams, whose sums have two places");
    static constexpr int shared_budget = few_rows_t::shared_per_sm / ctas - few_rows_t::shared_reserved;
    static_assert(panels >= 1 && panels <= few_rows_t::max_panels, "panels that a CTA works on at a time");
    static constexpr int rows = 8 * row_tiles;
    // A row of sums: 4 floats more than the columns, again for the banks.
    static constexpr int sum_pitch = panels * few_rows_t::panel_columns + 4;
    struct head_t {
        uint64_t full[few_rows_t::max_stages], empty[few_rows_t::max_stages];
        uint64_t sums_ready, sums_read;
        work_list_t list;
    };
    static constexpr int head_bytes = (int(sizeof(head_t)) + 127) / 128 * 128;
    static constexpr int sum_part_bytes = rows * sum_pitch * 4,
                         sum_bytes = few_rows_t::sum_parts * sum_part_bytes;
    static constexpr int src_bytes = (rows * few_rows_t::src_pitch + 127) / 128 * 128;
    static constexpr int tile_bytes =
            format::max_header + few_rows_t::tile_rows * few_rows_t::panel_columns * format::bits / 8;
    static constexpr int panel_bytes = few_rows_t::tiles_per_stage * tile_bytes;
    static constexpr int stage_bytes = src_bytes + panels * panel_bytes;
    static constexpr int fit = (shared_budget - head_bytes - sum_bytes) / stage_bytes;
    static constexpr int stages = fit > few_rows_t::max_stages ? few_rows_t::max_stages : fit;
    static constexpr int bytes = head_bytes + sum_bytes + stages * stage_bytes;
    static_assert(stages > teams / 2, "too few stages to hide the latency of memory");
};

template <typename variant>
__global__ void __launch_bounds__(variant::threads, variant::ctas) few_rows(const matmul_args_t args) {
    using namespace ptx;
    using k = few_rows_t;
    using format = typename variant::format;
    constexpr int rows = variant::rows, row_tiles = variant::row_tiles, panels = variant::panels;
    extern __shared__ __align__(1024) uint8_t shared[];
    typename variant::head_t &head = *reinterpret_cast<typename variant::head_t *>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const panels_t<panels> panel_map(args);
    const int tiles_all = (args.K + k::tile_rows - 1) / k::tile_rows;
    const int stages_all = (tiles_all + k::tiles_per_stage - 1) / k::tiles_per_stage;
    const int splits = args.splits, rank = splits > 1 ? int(cluster_rank()) : 0;
    const int stage_begin = int(int64_t(stages_all) * rank / splits);
    const int item_stages = int(int64_t(stages_all) * (rank + 1) / splits) - stage_begin;
    const int panel_groups = panel_map.groups();
    constexpr int ring = variant::stages, stage_bytes = variant::stage_bytes;
    const uint32_t sums = shared_address(shared) + variant::head_bytes, stages = sums + variant::sum_bytes;
    const uint32_t full = shared_address(head.full), empty = shared_address(head.empty);

    // Later kernels may read their weights when they start, which this one may do itself only if it is not
    // listed: before, something else may still be writing them.
    const bool listed = args.grouped;
    if (!listed) let_later_kernels_start();
    if (threadIdx.x == 0) {
        for (int i = 0; i < ring; i++) {
            barrier_init(full + 8 * i, 1 + 32); // announced bytes, and the lanes that copy the source
            barrier_init(empty + 8 * i, k::pair_warps);
        }
        barrier_init(shared_address(&head.sums_ready), splits);
        barrier_init(shared_address(&head.sums_read), splits);
        barrier_init_fence();
    }
    // Only a plain matrix of rows tells without looking which weights and rows it needs.
    if (listed) {
        wait_for_earlier_kernels();
        let_later_kernels_start();
    }
    head.list.build(args, rows);
    if (splits > 1) cluster_sync();

    const int items = head.list.blocks(args) * panel_groups;
    const int first_item = int(blockIdx.x) / splits, item_step = int(gridDim.x) / splits;

    if (warp >= variant::consumer_warps) {
        const int producer = warp - variant::consumer_warps;
        bool waited = listed;
        int position = 0; // of the item's first stage among all stages
        for (int item = first_item; item < items; item += item_step, position += item_stages) {
            const row_block_t block = head.list.block(args, item / panel_groups, 8);
            const int panel_group = item % panel_groups, panels_here = panel_map.slots(panel_group);
            const uint8_t *weights = packed_of(args, block.expert) + args.prefix
                                     + panel_map.panel(panel_group, lane) * args.tiling.panel_bytes;
            const auto start_weights = [&](int i) {
                const int slot = (position + i) % ring, s = stage_begin + i;
                const int64_t from = int64_t(s) * variant::panel_bytes;
                const int bytes = int(min(int64_t(variant::panel_bytes), args.tiling.panel_bytes - from));
                if (lane == 0) barrier_arrive_expect(full + 8 * slot, panels_here * bytes);
                __syncwarp();
                if (lane < panels_here)
                    bulk_copy(stages + slot * stage_bytes + variant::src_bytes + lane * variant::panel_bytes,
                            weights + from, bytes, full + 8 * slot);
            };
            // Sixteen lanes copy a row's 128 columns.
            constexpr int lanes_each = k::stage_rows / 8, rows_at_once = 32 / lanes_each;
            const int chunk = lane % lanes_each, first_row = lane / lanes_each;
            int source_row[rows / rows_at_once];
            const auto find_rows = [&] {
#pragma unroll
                for (int i = 0; i < rows / rows_at_once; i++) {
                    const int r = first_row + i * rows_at_once;
                    source_row[i] = r < block.rows ? source_row_of(args, block.first + r) : -1;
                }
            };
            const auto start_source = [&](int i) {
                const int slot = (position + i) % ring,
                          column = (stage_begin + i) * k::stage_rows + chunk * 8;
                const uint32_t to = stages + slot * stage_bytes + chunk * 16;
#pragma unroll
                for (int j = 0; j < rows / rows_at_once; j++) {
                    const int r = first_row + j * rows_at_once;
                    if (j * rows_at_once >= block.rows) break;
                    const bool valid = column < args.K && source_row[j] >= 0;
                    copy_16(to + r * k::src_pitch,
                            static_cast<const uint8_t *>(args.src)
                                    + (valid ? (source_row[j] * args.src_stride + column) * 2 : 0),
                            valid);
                }
                copy_arrive(full + 8 * slot);
            };
            int i = (producer + position) % k::producer_warps; // stages in turn, over all items
            if (!waited) {
                // Weights do not depend on earlier kernels; the source does.
                const int first = i, ahead = min(item_stages, ring);
                for (; i < ahead; i += k::producer_warps) start_weights(i);
                wait_for_earlier_kernels();
                waited = true;
                find_rows();
                for (i = first; i < ahead; i += k::producer_warps) start_source(i);
            } else {
                find_rows();
            }
            for (; i < item_stages; i += k::producer_warps) {
                barrier_wait(empty + 8 * ((position + i) % ring), (position + i) / ring % 2 ^ 1);
                start_weights(i);
                start_source(i);
            }
        }
        if (!waited) wait_for_earlier_kernels(); // later kernels rely on it
        return;
    }

    const int team = warp / k::team_warps, thread = threadIdx.x % 128, group = lane / 4, quad = lane % 4;
    const place_t place = format::place(thread, args.tiling);
    // The tile that has codes for 32 rows only.
    const int rest = args.K % k::tile_rows,
              short_tile = rest && rest <= k::tile_rows / 2 ? args.K / k::tile_rows : -1;
    int position = 0, sums_parity = 0;
    for (int item = first_item; item < items; item += item_step) {
        const row_block_t block = head.list.block(args, item / panel_groups, 8);

        float sum[panels][row_tiles][4];
#pragma unroll
        for (int p = 0; p < panels; p++)
#pragma unroll
            for (int t = 0; t < row_tiles; t++)
#pragma unroll
                for (int i = 0; i < 4; i++) sum[p][t][i] = 0.f;

        for (int i = team / 2; i < item_stages; i += variant::teams / 2) {
            const int slot = (position + i) % ring;
            const int tile_index = (stage_begin + i) * k::tiles_per_stage + team % 2;
            barrier_wait(full + 8 * slot, (position + i) / ring % 2);
            if (tile_index >= tiles_all) { // the last stage is half empty
                if (lane == 0) barrier_arrive(empty + 8 * slot);
                continue;
            }
            const uint32_t stage = stages + slot * stage_bytes;
            const uint32_t tile = stage + variant::src_bytes + team % 2 * variant::tile_bytes;
            uint32_t b[row_tiles][2][4];
#pragma unroll
            for (int t = 0; t < row_tiles; t++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    load_matrix_4(b[t][h], stage + (t * 8 + lane % 8) * k::src_pitch
                                                   + team % 2 * k::tile_rows * 2 + h * 64 + lane / 8 * 16);
            // A last group may have fewer panels: then what is left of an earlier stage is
            // multiplied, and never stored.
            typename format::raw_t raw[panels];
            uint32_t special = 0;
#pragma unroll
            for (int p = 0; p < panels; p++) {
                const uint32_t at = tile + p * variant::panel_bytes;
                const shared_reader_t scales{at + place.scales}, codes{at + place.codes};
                if constexpr (format::bits == 8)
                    raw[p] = format::load(scales, codes, args.tiling, tile_index != short_tile);
                else
                    raw[p] = format::load(scales, codes, args.tiling);
                special |= format::special(raw[p]);
            }
            // Panel after panel within 16 of K: consecutive products are independent.
            const auto multiply = [&](auto any) {
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int p = 0; p < panels; p++) {
                        uint32_t a[4];
                        format::template decode<decltype(any)::value>(a, raw[p], i);
#pragma unroll
                        for (int t = 0; t < row_tiles; t++)
                            mma_bf16(sum[p][t], a, b[t][i / 2][i % 2 * 2], b[t][i / 2][i % 2 * 2 + 1]);
                    }
            };
            if (__any_sync(~0u, special != 0))
                multiply(std::true_type());
            else
                multiply(std::false_type());
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + 8 * slot);
        }
        position += item_stages;

        // Teams 2 and 3 write their sums, teams 0 and 1 add their own in the same two places.
        wait_for_earlier_kernels(); // long done, but where there was nothing to read
        // Four columns a thread; the CTAs of a cluster take equal shares of the columns.
        const int quads = panel_map.quads() / splits, quad0 = quads * rank;
        const auto columns_of = [&](int quad) {
            return columns_t(
                    args, block.expert, panel_map.column(item % panel_groups, quad), format::sum_scale);
        };
        const columns_t columns = columns_of(quad0 + int(threadIdx.x) % quads);
        float *own =
                reinterpret_cast<float *>(shared + variant::head_bytes + team % 2 * variant::sum_part_bytes)
                + quad * 2 * variant::sum_pitch + warp % 4 * 16 + group;
#pragma unroll
        for (int turn = 1; turn >= 0; turn--) {
            if (team / 2 == turn) {
                constexpr bool two = variant::teams > 2;
                const bool alone = turn || !two; // nobody wrote here before
#pragma unroll
                for (int p = 0; p < panels; p++)
#pragma unroll
                    for (int t = 0; t < row_tiles; t++)
#pragma unroll
                        for (int i = 0; i < 4; i++) {
                            float &at = own[(t * 8 + i % 2) * variant::sum_pitch + p * k::panel_columns
                                            + i / 2 * 8];
                            at = alone ? sum[p][t][i] : sum[p][t][i] + at;
                        }
            }
            named_barrier(1, variant::consumers);
        }
        if (splits > 1) {
            if (threadIdx.x < splits)
                cluster_barrier_arrive(cluster_address(shared_address(&head.sums_ready), threadIdx.x));
            barrier_wait_cluster(shared_address(&head.sums_ready), sums_parity);
        }
        for (int i = threadIdx.x; i < quads * block.rows; i += variant::consumers) {
            const int row = i / quads, column = panel_map.slot_column(quad0 + i % quads);
            const auto sum_at = [&](int column) {
                const uint32_t at = sums + (row * variant::sum_pitch + column) * 4;
                float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
                const auto add = [&v](const float4 &o) { v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w; };
                for (int r = 0; r < splits; r++)
#pragma unroll
                    for (int part = 0; part < k::sum_parts; part++) {
                        const uint32_t from = at + part * variant::sum_part_bytes;
                        if (splits > 1)
                            add(cluster_load(cluster_address(from, r)));
                        else
                            add(*reinterpret_cast<const float4 *>(shared + (from - shared_address(shared))));
                    }
                return v;
            };
            const float4 v = sum_at(column), up = panel_map.up ? sum_at(column + panel_columns) : v;
            const int m = block.first + row;
            if (i == int(threadIdx.x))
                columns.store<1>(args, m, 1, m + 1, &v.x, &up.x, 0);
            else
                columns_of(quad0 + i % quads).template store<1>(args, m, 1, m + 1, &v.x, &up.x, 0);
        }
        named_barrier(1, variant::consumers);
        if (splits > 1) { // nobody may leave or overwrite sums before all have read them
            if (threadIdx.x < splits)
                cluster_barrier_arrive(cluster_address(shared_address(&head.sums_read), threadIdx.x));
            barrier_wait_cluster(shared_address(&head.sums_read), sums_parity);
            sums_parity ^= 1;
        }
    }
}

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
