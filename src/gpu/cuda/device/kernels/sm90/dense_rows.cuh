// SPDX-License-Identifier: Apache-2.0
// Matmul of one matrix of weights for few rows of the source (decoding): bound by reading the weights, so
// everything is arranged for an uninterrupted stream of them, and for few instructions beside decoding. (What
// belongs to many experts is few_rows.cuh's.)
//
// A work item is `panels` panels of 64 columns, all rows of the source, and a share of K. For each panel a
// CTA has `teams` groups of four warps, which divide K: a group has a part of it for itself, and a ring of
// stages of its own, so that it waits for none of the others. One more warp keeps the rings full, a lane for
// each: a stage is `stage_steps` steps of 64 rows of K, which lie one after the other in a panel, one bulk
// copy. A warp takes 16 columns of its group's steps: it decodes them to fragments and multiplies with
// mma.sync, weights as the 16-row A operand, source rows as its 8 columns. The source stays in shared memory,
// all that the CTA needs of it where this fits, else span after span; a span comes in pieces, so that the
// first steps do not wait for the last. At the end of an item the groups' sums add up in shared memory, in
// fixed order.
//
// Where there are few items, or much of the source for each, the two CTAs of a cluster share K; each finishes
// half of the columns, for which the other writes its sums into its shared memory. (Larger clusters do not
// fit: the 132 multiprocessors of an H200 lie in groups of 16 and 18, which hold 30 clusters of 4.)
//
// With programmatic dependent launch a kernel starts where the one before it leaves room, and has its first
// weights under way when that one ends; only then does it read the source.
#pragma once

#include <type_traits>

#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/rows/finish.cuh"
#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

struct dense_rows_t {
    static constexpr int group_warps = 4, group = group_warps * 32;
    static constexpr int step_rows = 64, src_step_bytes = step_rows * 2;
    static constexpr int max_stages = 64;  // of all rings
    static constexpr int pieces = 4;       // that a team's span of the source comes in
    static constexpr int team_barrier = 1; // the first team's; 0 is __syncthreads()
    static constexpr int shared_per_sm = 228 * 1024, shared_reserved = 1024; // the second for each CTA
};

// One variant of the kernel: rows in eights, panels and teams of a CTA, and how many CTAs have to fit into a
// multiprocessor: registers and shared memory are divided among them.
template <typename format_, int row_tiles_, int panels_, int teams_, int ctas_>
struct dense_rows_variant_t {
    using format = format_;
    using k = dense_rows_t;
    static constexpr int row_tiles = row_tiles_, panels = panels_, teams = teams_, ctas = ctas_;
    static constexpr int groups = panels * teams, warps = groups * k::group_warps;
    static constexpr int consumers = groups * k::group, threads = consumers + 32;
    static constexpr int rows = 8 * row_tiles;
    // Stages are about equally large. Tiles of int4 have up to four steps.
    static constexpr int stage_steps = format::bits == 4 ? 4 : 2;
    static constexpr int step_bytes = k::step_rows * panel_columns * format::bits / 8;
    struct head_t {
        uint64_t full[k::max_stages], empty[k::max_stages], source[teams * k::pieces];
        uint64_t sums_ready, sums_free;
    };
    static_assert(teams * k::pieces <= 32, "a lane for each");
    static constexpr int head_bytes = (int(sizeof(head_t)) + 127) / 128 * 128;
    // Sums of all teams, or, where K is shared, of twice as many for half of the columns. Rows are 4 floats
    // further apart than their columns need, for the banks.
    static constexpr int sum_bytes = teams * rows * (panels * panel_columns + 2 * 4) * 4;
    static constexpr int bytes = k::shared_per_sm / ctas - k::shared_reserved;
    // What the rings and the source share. At most:
    static constexpr int room_bytes = bytes - head_bytes - sum_bytes,
                         stage_bytes = stage_steps * (format::max_header + step_bytes);
    static_assert(room_bytes - dense_rows_source_bytes / ctas >= 2 * groups * stage_bytes, "two stages");
};

// Adds the products of 64 rows of weights with those of the source, which ldmatrix has brought.
template <typename format, bool any, int row_tiles>
__device__ __forceinline__ void add_step(float (&sum)[2][row_tiles][4], const typename format::raw_t &raw,
        const uint32_t (&b)[row_tiles][2][4]) {
    if constexpr (has_unscaled<format> && !any) {
#pragma unroll
        for (int h = 0; h < 2; h++) { // blocks have 32 rows at least
            float part[row_tiles][4] = {};
#pragma unroll
            for (int i = 0; i < 2; i++) {
                uint32_t a[4];
                format::decode_unscaled(a, raw, h * 2 + i);
#pragma unroll
                for (int t = 0; t < row_tiles; t++) mma_bf16(part[t], a, b[t][h][i * 2], b[t][h][i * 2 + 1]);
            }
#pragma unroll
            for (int column = 0; column < 2; column++) {
                const float factor = format::unscaled_factor(raw, h * 2, column);
#pragma unroll
                for (int t = 0; t < row_tiles; t++)
#pragma unroll
                    for (int e = column * 2; e < column * 2 + 2; e++)
                        sum[h][t][e] = fmaf(part[t][e], factor, sum[h][t][e]);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t a[format::terms][4];
            decode_terms<format, any>(a, raw, i);
#pragma unroll
            for (int t = 0; t < row_tiles; t++)
#pragma unroll
                for (int term = 0; term < format::terms; term++)
                    mma_bf16(sum[(i + term) % 2][t], a[term], b[t][i / 2][i % 2 * 2],
                            b[t][i / 2][i % 2 * 2 + 1]);
        }
    }
}

template <typename variant>
__global__ void __launch_bounds__(variant::threads, variant::ctas)
        dense_rows(const __grid_constant__ matmul_args_t args) {
    using namespace ptx;
    using k = dense_rows_t;
    using format = typename variant::format;
    using raw_t = typename format::raw_t;
    constexpr int rows = variant::rows, row_tiles = variant::row_tiles, panels = variant::panels;
    constexpr int teams = variant::teams, groups = variant::groups, stage_steps = variant::stage_steps;
    extern __shared__ __align__(1024) uint8_t shared[];
    typename variant::head_t &head = *reinterpret_cast<typename variant::head_t *>(shared);
    let_later_kernels_start();

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int terms = args.src_terms, src_rows = args.M * terms; // whose sums add up at the end
    const bool shares = args.splits > 1;                         // K, with the other CTA of a cluster
    const int rank = shares ? int(cluster_rank()) : 0;
    const int panels_all = (args.N + panel_columns - 1) / panel_columns;
    const int items = (panels_all + panels - 1) / panels;
    const int first_item = int(blockIdx.x) >> shares, item_step = int(gridDim.x) >> shares;
    // Shares of K in tiles, which are not divided, and in steps. Those of one step are of constant size.
    const int shift = format::one_step_tiles ? 0 : args.tiling.tile_steps_shift;
    const int tile_bytes =
            format::one_step_tiles ? format::max_header + variant::step_bytes : args.tiling.tile_bytes;
    const int steps_all = (args.K + k::step_rows - 1) / k::step_rows;
    const int tiles_all = (steps_all + (1 << shift) - 1) >> shift, half = shares ? tiles_all / 2 : 0;
    const int tile_begin = rank ? half : 0, tiles = (shares && !rank ? half : tiles_all) - tile_begin;
    const int tiles_each = (tiles + teams - 1) / teams; // of a team
    const int step_begin = tile_begin << shift, steps = min(tiles << shift, steps_all - step_begin);
    const auto team_begin = [&](int team) { return min(team * tiles_each, tiles); };

    const uint32_t sums = shared_address(shared) + variant::head_bytes, source = sums + variant::sum_bytes;
    // Steps of a team whose source is there at a time. Between rows 16 bytes more, for the banks of ldmatrix.
    constexpr int source_most = dense_rows_source_bytes / variant::ctas;
    const int span = min(tiles_each << shift,
            (source_most / src_rows - 16) / (teams * k::src_step_bytes) / stage_steps * stage_steps);
    const int pitch = teams * span * k::src_step_bytes + 16;
    const uint32_t source_bytes = (src_rows * pitch + 127) / 128 * 128;
    const int stage_bytes = (stage_steps >> shift) * tile_bytes;
    const int ring =
            min(k::max_stages / groups, int(variant::room_bytes - source_bytes) / (groups * stage_bytes));
    const uint32_t sums_ready = shared_address(&head.sums_ready), sums_free = shared_address(&head.sums_free);
    constexpr uint32_t to_empty = sizeof(head.full); // from a full barrier to the empty one of its stage
    const auto ring_of = [&](int group) { return source + source_bytes + group * ring * stage_bytes; };
    const auto full_of = [&](int group) { return shared_address(head.full) + 8 * group * ring; };
    if (warp == variant::warps) {
        for (int i = lane; i < groups * ring; i += 32) {
            barrier_init(full_of(0) + 8 * i, 1);
            barrier_init(full_of(0) + to_empty + 8 * i, k::group_warps);
        }
        if (lane < teams * k::pieces) barrier_init(shared_address(head.source + lane), panels * k::group);
        if (lane == 0) {
            // Where K is shared, half of the warps have columns that this CTA finishes.
            barrier_init(sums_ready, variant::consumers >> shares);
            barrier_init(sums_free, variant::warps << shares);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (shares) cluster_arrive();

    const uint8_t *weights = static_cast<const uint8_t *>(args.weights) + args.prefix;
    if (warp == variant::warps) { // weights
        if (lane >= groups) return;
        const int slot = lane / teams, begin = team_begin(lane % teams), end = team_begin(lane % teams + 1);
        const int64_t first = int64_t(tile_begin + begin) * tile_bytes;
        // The last tile of a panel may be short.
        const int64_t past = tile_begin + end == tiles_all ? args.tiling.panel_bytes
                                                           : int64_t(tile_begin + end) * tile_bytes;
        int at = 0;
        uint32_t parity = 1;
        for (int item = first_item; item < items; item += item_step) {
            if (begin == end || item * panels + slot >= panels_all) continue;
            const uint8_t *panel = weights + (item * panels + slot) * args.tiling.panel_bytes;
#pragma unroll 1
            for (int64_t from = first; from < past; from += stage_bytes) {
                const int bytes = int(min(int64_t(stage_bytes), past - from));
                const uint32_t full = full_of(lane) + 8 * at;
                barrier_wait(full + to_empty, parity);
                barrier_arrive_expect(full, bytes);
                bulk_copy(ring_of(lane) + at * stage_bytes, panel + from, bytes, full);
                if (++at == ring) at = 0, parity ^= 1;
            }
        }
        return;
    }
    wait_for_earlier_kernels();

    // The same for a whole warp, as the compiler cannot see. Teams of one panel are neighbours.
    const int group = __shfl_sync(~0u, warp / k::group_warps, 0), slot = group / teams, team = group % teams;
    const int quarter = warp % k::group_warps, thread = threadIdx.x % k::group;
    const int begin = team_begin(team) << shift, // in the share
            my_steps = min(team_begin(team + 1) << shift, steps) - begin;
    const int piece_steps =
            ((span + k::pieces - 1) / k::pieces + stage_steps - 1) / stage_steps * stage_steps;
    const uint32_t source_bars = shared_address(head.source + team * k::pieces);
    const uint32_t team_source = source + team * span * k::src_step_bytes;
    // This team's source from a step on, a row for each warp.
    const int64_t src_step = (terms == 1 ? args.src_stride : args.src_stride / terms) * 2;
    const auto start_source = [&](int from_step) {
        const int here = min(span, my_steps - from_step);
#pragma unroll 1
        for (int p = 0; p < k::pieces; p++) {
            const int first = min(p * piece_steps, here), past = min(first + piece_steps, here);
            const int units = (past - first) * (k::src_step_bytes / 16);
            const int column = (step_begin + begin + from_step + first) * k::step_rows;
#pragma unroll 1
            for (int r = slot * k::group_warps + quarter; r < src_rows; r += panels * k::group_warps) {
                const uint8_t *from = static_cast<const uint8_t *>(args.src) + r * src_step;
                const uint32_t to = team_source + r * pitch + first * k::src_step_bytes;
#pragma unroll 4
                for (int u = lane; u < units; u += 32) {
                    const bool valid = column + u * 8 < args.K;
                    copy_16(to + u * 16, from + (valid ? (column + u * 8) * 2 : 0), valid);
                }
            }
            copy_arrive(source_bars + 8 * p);
        }
    };
    if (first_item < items) start_source(0);
    uint32_t source_parity = 0;

    // Who finishes: rank q of the cluster the q-th half of the results, which come in quads of columns. A
    // thread has one quad of the rows that follow at `row_step`.
    const int quads = panels * (panel_columns / 4) >> shares, quad = int(threadIdx.x) % quads;
    const int row_step = variant::consumers / quads, first_row = int(threadIdx.x) / quads;
    const int sum_pitch = quads * 4 + 4, part_bytes = rows * sum_pitch * 4;
    // The 16 columns of this warp go to the CTA that finishes them.
    const int owner = shares ? (slot * 4 + quarter) * 4 / quads : 0;
    const place_t place = format::place(thread, args.tiling);
    // The step that has codes for 32 rows only.
    const int rest = args.K % k::step_rows;
    const int short_step = rest && rest <= k::step_rows / 2 ? steps_all - 1 - step_begin - begin : -1;
    int at = 0;
    uint32_t parity = 0;
    int sums_parity = 0;
    for (int item = first_item; item < items; item += item_step) {
        const bool last_item = item + item_step >= items;
        // Two sums, of even and odd steps of 16, because a product waits for the one before it.
        float sum[2][row_tiles][4] = {};
        uint32_t source_at[row_tiles];
        // Step j of a stage.
        const auto multiply = [&](auto any, const raw_t &raw, int j) {
            uint32_t b[row_tiles][2][4];
#pragma unroll
            for (int t = 0; t < row_tiles; t++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    load_matrix_4(b[t][h], source_at[t] + j * k::src_step_bytes + h * 64);
            add_step<format, decltype(any)::value>(sum, raw, b);
        };
        const int last = item * panels + slot < panels_all ? my_steps : 0;
        int to_next_span = 0, to_next_piece = 0;
        uint32_t piece = source_bars;
        // Also where there is no panel: all warps of a team bring its source.
#pragma unroll 1
        for (int s = 0; s < my_steps; s += stage_steps) {
            if (to_next_span == 0) {
                if (my_steps > span && (s || item != first_item)) { // another one than is there
                    for (int p = 0; p < k::pieces; p++) barrier_wait(source_bars + 8 * p, source_parity);
                    named_barrier(k::team_barrier + team, panels * k::group);
                    start_source(s);
                    source_parity ^= 1;
                }
                to_next_span = span, piece = source_bars, to_next_piece = 0;
#pragma unroll
                for (int t = 0; t < row_tiles; t++) // rows past the last are those of another: never stored
                    source_at[t] = team_source + min(t * 8 + lane % 8, src_rows - 1) * pitch + lane / 8 * 16;
            }
            to_next_span -= stage_steps;
            if (last == 0) continue;
            if (to_next_piece == 0) {
                barrier_wait(piece, source_parity);
                piece += 8, to_next_piece = piece_steps;
            }
            to_next_piece -= stage_steps;
            const uint32_t full = full_of(group) + 8 * at, stage = ring_of(group) + at * stage_bytes;
            barrier_wait(full, parity);
            const auto load = [&](int j) {
                const uint32_t tile = stage + (j >> shift) * tile_bytes;
                const shared_reader_t scales{tile + place.scales},
                        codes{tile + place.codes + (j & ((1 << shift) - 1)) * variant::step_bytes};
                if constexpr (format::bits == 8)
                    return format::load(scales, codes, args.tiling, s + j != short_step);
                else
                    return format::load(scales, codes, args.tiling);
            };
            // The usual case: a whole stage of which nothing is special.
            const int here = min(last - s, stage_steps);
            bool done = false;
            if (here == stage_steps) {
                raw_t raw[stage_steps];
                uint32_t special = 0;
#pragma unroll
                for (int j = 0; j < stage_steps; j++) raw[j] = load(j);
#pragma unroll
                for (int j = 0; j < stage_steps; j++) special |= format::special(raw[j]);
                if (!__any_sync(~0u, special != 0)) {
                    if (lane == 0) barrier_arrive(full + to_empty);
#pragma unroll
                    for (int j = 0; j < stage_steps; j++) multiply(std::false_type(), raw[j], j);
                    done = true;
                }
            }
            if (!done) {
#pragma unroll 1
                for (int j = 0; j < here; j++) {
                    const raw_t raw = load(j);
                    if (__any_sync(~0u, format::special(raw) != 0))
                        multiply(std::true_type(), raw, j);
                    else
                        multiply(std::false_type(), raw, j);
                }
                __syncwarp();
                if (lane == 0) barrier_arrive(full + to_empty);
            }
            if (++at == ring) at = 0, parity ^= 1;
#pragma unroll
            for (int t = 0; t < row_tiles; t++) source_at[t] += stage_steps * k::src_step_bytes;
        }

        // Sums go to the CTA that finishes the columns. Lanes have columns lane / 4 and 8 more of the 16 of
        // their warp, and two rows of every eight.
        const bool first = item == first_item;
        if (shares && first) cluster_wait(); // the other's barriers stand
        if (!first) barrier_wait_cluster(sums_free, sums_parity ^ 1);
        const uint32_t part =
                sums + (rank * teams + team) * part_bytes
                + (lane % 4 * 2 * sum_pitch + (slot * 4 + quarter) * 16 - owner * quads * 4 + lane / 4) * 4;
        const auto put = [&](auto store) {
#pragma unroll
            for (int t = 0; t < row_tiles; t++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    store((t * 8 + i % 2) * sum_pitch * 4 + i / 2 * 32, sum[0][t][i] + sum[1][t][i]);
        };
        if (owner == rank) {
            put([&](int offset, float v) { store_shared(part + offset, v); });
            // Each thread here announces what one of the other CTA sends.
            barrier_arrive_expect(sums_ready, shares ? rows * 16 * 4 / 32 : 0);
        } else {
            const uint32_t there = cluster_address(part, owner), bar = cluster_address(sums_ready, owner);
            put([&](int offset, float v) { cluster_store_async(there + offset, v, bar); });
        }
        if (first_row < args.M || !last_item || shares) {
            const columns_t columns(
                    args, 0, item * panels * panel_columns + (rank * quads + quad) * 4, format::sum_scale);
            barrier_wait_cluster(sums_ready, sums_parity);
#pragma unroll 1
            for (int row = first_row; row < args.M; row += row_step) {
                float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
                const uint8_t *from = shared + variant::head_bytes + (row * terms * sum_pitch + quad * 4) * 4;
#pragma unroll 1
                for (int term = 0; term < terms; term++, from += sum_pitch * 4)
#pragma unroll
                    for (int p = 0; p < 2 * teams; p++) {
                        if (p >= teams << shares) break;
                        const float4 o = *reinterpret_cast<const float4 *>(from + p * part_bytes);
                        v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
                    }
                columns.store<1>(args, args.row_begin + row, 1, args.row_begin + args.M, &v.x, &v.x, 0);
            }
        }
        sums_parity ^= 1;
        if (!last_item) {
            __syncwarp();
            if (lane < (1 << shares)) cluster_barrier_arrive(cluster_address(sums_free, lane));
        }
    }
}

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
