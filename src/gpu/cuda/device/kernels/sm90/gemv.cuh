// SPDX-License-Identifier: Apache-2.0
// Matmul of one matrix of weights for few rows of the source (decoding): bound by reading the weights, and by
// what has to happen one thing after the other between two kernels that need each other's results. So
// everything is arranged for an uninterrupted stream of weights, few instructions beside decoding, and short
// ends. (What belongs to many experts is grouped_gemv.cuh's.)
//
// A work item is a panel of 64 columns, all rows of the source, and a share of K, which the `teams` teams of
// a CTA divide, four warps each: a team has a part of K for itself, and rings of stages of its own, so that
// it waits for none of the others. A stage of the weights is `stage_steps` steps of 64 rows of K, which lie
// one after the other in a panel, one bulk copy; one of the source has the same steps of K, as boxes of eight
// or 16 rows under the copy engine's swizzle. A warp takes 16 columns of its team's steps: it decodes them to
// fragments and multiplies with mma.sync, weights as the 16-row A operand, source rows as its 8 columns. At
// the end of an item the teams' sums add up in shared memory, in fixed order. Two more warps fill the rings
// of weights and of the source; others finish the results, with all that they need for that in registers when
// the sums arrive.
//
// The two CTAs of a cluster share K; each finishes half of the columns, for which the other writes its sums
// into its shared memory. (Larger clusters do not fit: the 132 multiprocessors of an H200 lie in groups of 16
// and 18, which hold 30 clusters of 4.)
//
// With programmatic dependent launch a kernel starts where the one before it leaves room, and has its first
// weights under way when that one ends; only then does it read the source. A multiprocessor has room for two
// CTAs: where there are few columns, for the working one of this kernel and the waiting one of the next. That
// holds where every kernel puts one on each multiprocessor: what a smaller grid leaves free, two CTAs of the
// next one would share, which then takes twice as long. Therefore a grid has spare CTAs, which only keep
// places until those of the next kernel have found theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/gemv_one_row.cuh"
#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/unscaled_sums.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/ahead.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/heuristics/packed_matmul_plan.hpp"
#include "gpu/cuda/interface/sm90_mapped_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct gemv_t {
    static constexpr int team_warps = 4, team = team_warps * 32;
    static constexpr int step_rows = 64, row_bytes = step_rows * 2; // of the source in a step
    static constexpr int max_stages = 32;                           // of all rings of a kind
    static constexpr int source_stages = 4;                         // of a ring of the source, at most
    static constexpr int swizzle_bytes = 1024;                      // period of the swizzle
    static constexpr int all_barrier = 1;                           // barrier of all warps, used once
    static constexpr int place_ns = 2000; // time until all CTAs of a kernel are placed
    static constexpr int shared_per_sm = 228 * 1024,
                         shared_reserved = 1024; // the second number is for each CTA
};

// One variant of the kernel: multiples of eight rows, or one row (one_row.cuh).
template <typename format_, int row_tiles_, bool one_row_ = false>
struct gemv_variant_t {
    using format = format_;
    using k = gemv_t;
    static constexpr bool one_row = one_row_;
    static constexpr int row_tiles = row_tiles_, rows = 8 * row_tiles, teams = 2;
    // With eight rows it gains nothing that sums over two steps meet their scales at once.
    static constexpr bool long_blocks = has_long_blocks<format> && row_tiles > 1;
    static constexpr int warps = teams * k::team_warps;
    static constexpr int weights_warp = warps, source_warp = warps + 1, finish_warp = warps + 2;
    static constexpr int finishers = row_tiles == 1 ? 1 : 4; // warps that finish results
    static constexpr int consumers = teams * k::team, threads = consumers + (2 + finishers) * 32;
    // Long stages need fewer instructions. Those of 8-bit weights need more room and registers than 16 rows
    // leave. Tiles of int4 have up to four steps.
    static constexpr int stage_steps = format::bits < 8 || row_tiles == 1 ? 4 : 2;
    static constexpr int step_bytes = k::step_rows * panel_columns * format::bits / 8;
    static constexpr int source_step = rows * k::row_bytes, source_stage = stage_steps * source_step;
    static_assert(source_step % k::swizzle_bytes == 0, "a box begins where the swizzle does");
    // For few rows a warp copies the source with its own instructions, one for each row of a stage. These do
    // not queue in the copy engine behind the weights of the next kernel. For more rows that would be too
    // many instructions, so they are copied as boxes of a tensor.
    static constexpr bool boxes = row_tiles > 1;
    static_assert(boxes || stage_steps * k::row_bytes == 32 * 16, "a lane for 16 bytes of a stage's row");
    static_assert(!one_row || (row_tiles == 1 && stage_steps == one_row_t::steps), "one_row.cuh");
    struct barriers_t {
        uint64_t full[k::max_stages], empty[k::max_stages];
    };
    struct head_t {
        barriers_t weights, source;
        uint64_t sums_ready, sums_free;
        alignas(16) uint32_t args[sizeof(matmul_args_t) / 4];
    };
    // The sums of all teams. If K is shared, twice as many sums, for half of the columns. Rows have 4 floats
    // more than columns, because of the banks.
    static constexpr int sum_rows = one_row ? 1 : rows;
    static constexpr int sums_at = (int(sizeof(head_t)) + 127) / 128 * 128,
                         sum_bytes = teams * sum_rows * (panel_columns + 2 * 4) * 4;
    // Weights that are fetched before the earlier kernel has ended delay its last CTAs, which are still
    // reading. So a ring that does not hold all weights has fewer stages than there is room for: two, or
    // three short ones. With 16 rows the room is used for more of the source.
    static constexpr int part_stages = stage_steps < 4 ? 3 : 2;
    // The number of rings of the source and of the weights, and the largest stage of the weights.
    static constexpr int source_at = (sums_at + sum_bytes + k::swizzle_bytes - 1) / k::swizzle_bytes
                                     * k::swizzle_bytes,
                         bytes = k::shared_per_sm / gemv_ctas - k::shared_reserved,
                         stage_bytes = stage_steps * (format::max_header + step_bytes);
    static constexpr int source_room = bytes - source_at - part_stages * teams * stage_bytes;
    static constexpr int source_ring = std::min(k::source_stages, source_room / (teams * source_stage)),
                         codes_at = source_at + teams * source_ring * source_stage,
                         room_bytes = bytes - codes_at;
    static_assert(source_ring >= 2 && part_stages >= 2, "two stages");
    static_assert(teams * source_ring <= k::max_stages, "barriers");
};

// Whether results are rounded sums with a bias, four columns in one store; and the registers that this needs.
struct plain_results_t {
    bool usual;

    __device__ plain_results_t(const matmul_args_t &a, const columns_t &columns, int row)
        : stride_(a.dst_stride), type_(a.dst_type),
          to_(static_cast<uint16_t *>(a.dst) + (row * a.dst_stride + columns.column - a.dst_first)) {
        usual = (type_ == value_type_t::bf16 || type_ == value_type_t::f16)
                && a.activation == activation_t::none && !a.row_weights && !a.row_factors
                && a.old_scale == 0.f && columns.valid == 4 && a.dst_stride % 4 == 0
                && reinterpret_cast<uintptr_t>(to_) % 8 == 0;
    }
    // The row that is this many after the first.
    __device__ __forceinline__ void store(const columns_t &c, const float4 &v, int row) const {
        const float by = c.scale.sum, expert = c.scale.expert;
        *reinterpret_cast<uint2 *>(to_ + row * stride_) =
                make_uint2(pair_of(type_, v.x * by * expert + c.bias[0], v.y * by * expert + c.bias[1]),
                        pair_of(type_, v.z * by * expert + c.bias[2], v.w * by * expert + c.bias[3]));
    }

private:
    int64_t stride_;
    value_type_t type_;
    uint16_t *to_;
};

// Adds the products of 64 rows of weights with the source rows that ldmatrix loaded.
template <typename format, bool any, int sets, int row_tiles>
__device__ __forceinline__ void add_step(float (&sum)[sets][row_tiles][4], const typename format::raw_t &raw,
        const uint32_t (&b)[row_tiles][2][4]) {
    if constexpr (has_unscaled<format>) {
        static_assert(!any, "what is special is added by halves");
#pragma unroll
        for (int h = 0; h < 2; h++) // blocks have at least 32 rows
            add_unscaled<format, false, row_tiles>(sum[h % sets], raw, h, 0, [&](int t, uint32_t(&of)[4]) {
#pragma unroll
                for (int i = 0; i < 4; i++) of[i] = b[t][h][i];
            });
    } else {
        static_assert(sets == 2, "of even and odd steps");
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t a[4];
            format::template decode<any>(a, raw, i);
#pragma unroll
            for (int t = 0; t < row_tiles; t++)
                mma_bf16(sum[i % 2][t], a, b[t][i / 2][i % 2 * 2], b[t][i / 2][i % 2 * 2 + 1]);
        }
    }
}

template <typename variant>
__global__ void __launch_bounds__(variant::threads, gemv_ctas)
        gemv(const __grid_constant__ mapped_args_t kernel_args) {
    using namespace ptx;
    using k = gemv_t;
    using format = typename variant::format;
    using raw_t = typename format::raw_t;
    const matmul_args_t &args = kernel_args.matmul;
    constexpr int sum_rows = variant::sum_rows, row_tiles = variant::row_tiles, teams = variant::teams;
    constexpr int stage_steps = variant::stage_steps, source_ring = variant::source_ring;
    extern __shared__ __align__(1024) uint8_t shared[];
    typename variant::head_t &head = *reinterpret_cast<typename variant::head_t *>(shared);
    let_later_kernels_start();

    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int terms = args.src_terms, src_rows = args.M * terms; // the finishers add up the sums of the terms
    const bool shares = args.splits > 1; // K is shared with the other CTA of a cluster
    const int rank = shares ? int(cluster_rank()) : 0;
    const int items = (args.N + panel_columns - 1) / panel_columns;
    const int number = int(blockIdx.x) >> shares, item_step = int(gridDim.x) >> shares;
    if (number >= items) { // spare
        wait_for_earlier_kernels();
        sleep_ns(k::place_ns);
        return;
    }
    // Shares of K in tiles, which are not divided, and in steps. Shares of tiles with one step have a
    // constant size.
    const int shift = format::one_step_tiles ? 0 : args.tiling.tile_steps_shift;
    const int tile_bytes =
            format::one_step_tiles ? format::max_header + variant::step_bytes : args.tiling.tile_bytes;
    const int steps_all = (args.K + k::step_rows - 1) / k::step_rows;
    const int tiles_all = (steps_all + (1 << shift) - 1) >> shift, half = shares ? tiles_all / 2 : 0;
    const int tile_begin = rank ? half : 0, tiles = (shares && !rank ? half : tiles_all) - tile_begin;
    const int tiles_each = (tiles + teams - 1) / teams; // of a team
    const int step_begin = tile_begin << shift, steps = min(tiles << shift, steps_all - step_begin);
    const auto team_begin = [&](int team) { return min(team * tiles_each, tiles); };

    const uint32_t base = shared_address(shared), sums = base + variant::sums_at;
    const int stage_bytes = (stage_steps >> shift) * tile_bytes;
    const int room = min(k::max_stages / teams, variant::room_bytes / (teams * stage_bytes));
    const bool holds_all = tiles_each << shift <= room * stage_steps;
    const int ring = holds_all ? room : min(room, variant::part_stages);
    const uint32_t sums_ready = shared_address(&head.sums_ready), sums_free = shared_address(&head.sums_free);
    // From the full barrier of a stage to its empty one.
    constexpr uint32_t to_empty = uint32_t(offsetof(typename variant::barriers_t, empty));
    const auto ring_of = [&](int team) { return base + variant::codes_at + team * ring * stage_bytes; };
    const auto full_of = [&](int team) { return shared_address(head.weights.full) + 8 * team * ring; };
    const auto source_of = [&](int team) {
        return base + variant::source_at + team * (source_ring * variant::source_stage);
    };
    const auto source_full_of = [&](int team) {
        return shared_address(head.source.full) + 8 * team * source_ring;
    };

    // The barriers of the other CTA are initialised, and the earlier kernel has ended. Every warp that has
    // arrived at the cluster's barrier waits there or ends, because racecheck lets no warp through while one
    // is working.
    const auto wait_for_others = [&] {
        if (shares) cluster_wait();
        wait_for_earlier_kernels();
    };

    if (warp == variant::weights_warp) {
        // Initialises all barriers together: initialising one waits for all copies of the CTA in flight, and
        // continues before the others are initialised. One lane does this, so that addresses are the same for
        // a warp. Lanes would do it one after the other, 95 cycles each.
        if (lane == 0) {
#pragma unroll 4
            for (int i = 0; i < teams * ring; i++) {
                barrier_init(full_of(0) + 8 * i, 1);
                barrier_init(full_of(0) + to_empty + 8 * i, k::team);
            }
#pragma unroll
            for (int i = 0; i < teams * source_ring; i++) {
                barrier_init(source_full_of(0) + 8 * i, variant::boxes ? 1 : 32);
                barrier_init(source_full_of(0) + to_empty + 8 * i, k::team);
            }
            // If K is shared, half of the warps have columns that this CTA finishes.
            barrier_init(sums_ready, variant::consumers >> shares);
            barrier_init(sums_free, variant::finishers * 32 << shares);
        }
        barrier_init_fence();
        __syncwarp();
        named_barrier_arrive(k::all_barrier, variant::threads);
        if (shares) cluster_arrive();
        if (lane < teams) {
            const int begin = team_begin(lane), end = team_begin(lane + 1);
            const int64_t first = int64_t(tile_begin + begin) * tile_bytes;
            // The last tile of a panel may be short.
            const int64_t past = tile_begin + end == tiles_all ? args.tiling.panel_bytes
                                                               : int64_t(tile_begin + end) * tile_bytes;
            const uint8_t *weights = static_cast<const uint8_t *>(args.weights) + args.prefix;
            if (!args.constant_weights) { // an earlier kernel may write them
                const uint8_t *panel = weights + number * args.tiling.panel_bytes;
                if (begin < end)
                    bulk_prefetch(panel + first, uint32_t(min(int64_t(ring) * stage_bytes, past - first)));
                wait_for_earlier_kernels();
            }
            int at = 0, lap = 0;
            for (int item = number; item < items; item += item_step) {
                if (begin == end) continue;
                const uint8_t *panel = weights + item * args.tiling.panel_bytes;
#pragma unroll 1
                for (int64_t from = first; from < past; from += stage_bytes) {
                    const int bytes = int(min(int64_t(stage_bytes), past - from));
                    const uint32_t full = full_of(lane) + 8 * at;
                    barrier_wait(full + to_empty, ~lap & 1);
                    barrier_arrive_expect(full, bytes);
                    bulk_copy(ring_of(lane) + at * stage_bytes, panel + from, bytes, full);
                    if (++at < ring) continue;
                    if (lap == 0) wait_for_others(); // nothing leaves the ring before
                    at = 0, lap++;
                }
            }
        }
        return;
    }
    // For the finishers: constant memory is cold in every launch.
    if (warp == variant::finish_warp && lane == 0) *reinterpret_cast<matmul_args_t *>(head.args) = args;
    if constexpr (variant::one_row) { // zeros where there is no source
        constexpr int all = teams * source_ring * variant::source_stage / 16;
        for (int i = threadIdx.x; i < all && warp < variant::warps; i += variant::consumers)
            reinterpret_cast<uint4 *>(shared + variant::source_at)[i] = make_uint4(0, 0, 0, 0);
    }
    named_barrier(k::all_barrier, variant::threads);
    if (shares) cluster_arrive();

    if (warp == variant::source_warp) {
        if (variant::boxes && lane == 0 && steps > 0) prefetch_map(kernel_args.source_map);
        wait_for_others();
        if constexpr (!variant::boxes) {
            const uint8_t *src = static_cast<const uint8_t *>(args.src);
            const int64_t row_bytes = (terms == 1 ? args.src_stride : args.src_stride / terms) * 2;
            // The position of a lane's 16 bytes in a stage, with the swizzle.
            const auto place = [&](int row) {
                constexpr int units = k::row_bytes / 16;
                return lane / units * variant::source_step + row * k::row_bytes + (lane % units ^ row) * 16;
            };
            int at[teams] = {};
            uint32_t parity[teams];
            for (uint32_t &p : parity) p = 1;
            for (int item = number; item < items; item += item_step) {
#pragma unroll 1
                for (int s = 0; s < tiles_each << shift; s += stage_steps) {
#pragma unroll
                    for (int t = 0; t < teams; t++) {
                        const int begin = team_begin(t) << shift,
                                  past = min(team_begin(t + 1) << shift, steps);
                        if (begin + s >= past) continue;
                        const int end = min(args.K, (step_begin + past) * k::step_rows);
                        const int row = (step_begin + begin + s) * k::step_rows + lane * one_row_t::lane_rows;
                        const int valid = min(max(end - row, 0), one_row_t::lane_rows);
                        const uint32_t full = source_full_of(t) + 8 * at[t];
                        barrier_wait(full + to_empty, parity[t]);
                        const uint32_t to = source_of(t) + at[t] * variant::source_stage;
                        const uint8_t *from = src + (valid ? int64_t(row) * 2 : 0);
                        if constexpr (variant::one_row) {
                            one_row_t::copy(to + place(one_row_t::block(lane)), from, valid * 2);
                        } else {
#pragma unroll
                            for (int r = 0; r < variant::rows; r++, from += row_bytes)
                                if (r < src_rows) one_row_t::copy(to + place(r), from, valid * 2);
                        }
                        copy_arrive(full);
                        if (++at[t] == source_ring) at[t] = 0, parity[t] ^= 1;
                    }
                }
            }
        } else if (lane < teams) {
            const int begin = team_begin(lane) << shift, past = min(team_begin(lane + 1) << shift, steps);
            int at = 0;
            uint32_t parity = 1;
            for (int item = number; item < items; item += item_step) {
#pragma unroll 1
                for (int s = begin; s < past; s += stage_steps) {
                    const int here = min(past - s, stage_steps);
                    const uint32_t full = source_full_of(lane) + 8 * at;
                    const uint32_t to = source_of(lane) + at * variant::source_stage;
                    barrier_wait(full + to_empty, parity);
                    barrier_arrive_expect(full, here * variant::source_step);
#pragma unroll
                    for (int j = 0; j < stage_steps; j++)
                        if (j < here)
                            tensor_copy(to + j * variant::source_step, kernel_args.source_map,
                                    (step_begin + s + j) * k::step_rows, 0, full);
                    if (++at == source_ring) at = 0, parity ^= 1;
                }
            }
        }
        return;
    }

    // Rank q of the cluster finishes the q-th half of the results, which are divided into quads of columns.
    const int quads = panel_columns / 4 >> shares;
    const int sum_pitch = quads * 4 + 4, part_bytes = sum_rows * sum_pitch * 4;
    if (warp >= variant::finish_warp) {
        const matmul_args_t &a = *reinterpret_cast<const matmul_args_t *>(head.args);
        const int thread = int(threadIdx.x) - variant::finish_warp * 32;
        const int quad = thread % quads, first_row = thread / quads;
        const int row_step = variant::finishers * 32 / quads, row_end = a.M;
        uint32_t parity = 0;
        wait_for_others();
        for (int item = number; item < items; item += item_step) {
            const columns_t columns(
                    a, 0, item * panel_columns + (rank * quads + quad) * 4, format::sum_scale);
            const plain_results_t plain(a, columns, a.row_begin + first_row);
            barrier_wait_cluster(sums_ready, parity);
            parity ^= 1;
#pragma unroll 1
            for (int row = first_row; row < row_end; row += row_step) {
                float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
                const uint8_t *from = shared + variant::sums_at + (row * terms * sum_pitch + quad * 4) * 4;
#pragma unroll 1
                for (int term = 0; term < terms; term++, from += sum_pitch * 4)
#pragma unroll
                    for (int p = 0; p < 2 * teams; p++) {
                        if (p >= teams << shares) break;
                        const float4 o = *reinterpret_cast<const float4 *>(from + p * part_bytes);
                        v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
                    }
                if (plain.usual)
                    plain.store(columns, v, row - first_row);
                else
                    columns.store<1>(a, a.row_begin + row, 1, a.row_begin + a.M, &v.x, &v.x, 0);
            }
            if (item + item_step < items)
                for (int r = 0; r <= shares; r++) cluster_barrier_arrive(cluster_address(sums_free, r));
        }
        return;
    }

    // Nothing can be multiplied yet. Waiting at barriers would take issue slots from the kernel before.
    wait_for_others();
    const int team = warp / k::team_warps, quarter = warp % k::team_warps, thread = threadIdx.x % k::team;
    const int begin = team_begin(team) << shift, my_steps = min(team_begin(team + 1) << shift, steps) - begin;
    // The 16 columns of this warp go to the CTA that finishes them.
    const int owner = shares ? quarter * 4 / quads : 0;
    const place_t place = format::place(thread, args.tiling);
    // A step with codes for 32 rows only.
    const int rest = args.K % k::step_rows;
    const int short_step = rest && rest <= k::step_rows / 2 ? steps_all - 1 - step_begin - begin : -1;
    // The beginning of this lane's row in a box, and the position of its 16 bytes there, with the swizzle.
    const uint32_t source_row = source_of(team) + lane % 8 * k::row_bytes + (lane / 8 ^ lane % 8) * 16;
    int at = 0, source_at = 0;
    uint32_t parity = 0, source_parity = 0, sums_parity = 0;
    for (int item = number; item < items; item += item_step) {
        // Two sums, of even and odd steps of 16, because a product waits for the one before it.
        constexpr int sets = variant::long_blocks ? 1 : 2;
        float sum[sets][row_tiles][4] = {};
        [[maybe_unused]] one_row_sums_t<format> one_row;
        // The fragments of eight source rows for step j of a stage, or half of it.
        const auto load_half = [&](uint32_t(&b)[4], int j, int t, int h) {
            const uint32_t from = source_row + source_at * variant::source_stage + j * variant::source_step
                                  + t * 8 * k::row_bytes;
            load_matrix_4(b, from ^ h * 64); // 32 columns further
        };
        const auto load_source = [&](uint32_t(&b)[2][4], int j, int t) {
            for (int h = 0; h < 2; h++) load_half(b[h], j, t, h);
        };
        // Step j of a stage. left: rows of K from its first one on, where that may matter.
        const auto multiply = [&](auto any, const raw_t &raw, int j, int left = k::step_rows) {
            constexpr bool special = decltype(any)::value;
            if constexpr (has_unscaled<format> && special && !variant::one_row) {
                // Special cases need so many registers that the source is read when it is needed.
#pragma unroll
                for (int h = 0; h < 2; h++)
                    add_unscaled<format, true, row_tiles>(sum[h % sets], raw, h, left,
                            [&](int t, uint32_t(&b)[4]) { load_half(b, j, t, h); });
            } else {
                uint32_t b[row_tiles][2][4];
#pragma unroll
                for (int t = 0; t < row_tiles; t++) load_source(b[t], j, t);
                if constexpr (variant::one_row)
                    one_row.add_special(raw, b[0], lane % 4 == j, left);
                else
                    add_step<format, special>(sum, raw, b);
            }
        };
        const auto source_full = [&] { return source_full_of(team) + 8 * source_at; };
#pragma unroll 1
        for (int s = 0; s < my_steps; s += stage_steps) {
            const int here = min(my_steps - s, stage_steps);
            const uint32_t full = full_of(team) + 8 * at, stage = ring_of(team) + at * stage_bytes;
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
            // The usual case: a whole stage without special values.
            bool done = false;
            if constexpr (variant::one_row) {
                // Steps beyond the end may read anything. The source has zeros there, and weights without
                // scales are finite for all bits.
                const int mine = lane % stage_steps;
                const scales_reader_t scales{{stage + (mine >> shift) * tile_bytes + place.scales}};
                const raw_t of = format::load(scales, scales, args.tiling);
                raw_t raw[stage_steps];
#pragma unroll
                for (int j = 0; j < stage_steps; j++) raw[j] = load(j);
                if (!__any_sync(~0u, mine < here && unscaled_t<format>::special(of) != 0)) {
                    barrier_arrive(full + to_empty);
                    barrier_wait(source_full(), source_parity);
                    one_row.add(
                            raw, of, mine < here, [&](int j, uint32_t(&b)[2][4]) { load_source(b, j, 0); });
                    done = true;
                }
            }
            if constexpr (variant::long_blocks) {
                // Two steps of a tile are of one block.
                if (here == stage_steps && shift > 0) {
                    const auto codes_of = [&](int j) {
                        return shared_reader_t{stage + (j >> shift) * tile_bytes + place.codes
                                               + (j & ((1 << shift) - 1)) * variant::step_bytes};
                    };
                    raw_t raw[stage_steps];
                    uint32_t special = 0;
#pragma unroll
                    for (int j = 0; j < stage_steps; j += 2) {
                        const shared_reader_t scales{stage + (j >> shift) * tile_bytes + place.scales};
                        raw[j] = format::load_long(scales, codes_of(j), args.tiling);
                        raw[j + 1] = format::load_next(raw[j], codes_of(j + 1));
                        special |= format::special(raw[j]);
                    }
                    if (!__any_sync(~0u, special != 0)) {
                        barrier_arrive(full + to_empty);
                        barrier_wait(source_full(), source_parity);
#pragma unroll
                        for (int first = 0; first < stage_steps; first += 2) {
                            unscaled_parts_t<format, row_tiles> parts;
#pragma unroll
                            for (int j = first; j < first + 2; j++)
                                parts.add(raw[j],
                                        [&](int t, int h, uint32_t(&b)[4]) { load_half(b, j, t, h); });
                            parts.meet_scale(sum[0], raw[first]);
                        }
                        done = true;
                    }
                }
            }
            if (!variant::one_row && !done && here == stage_steps) {
                raw_t raw[stage_steps];
                uint32_t special = 0;
#pragma unroll
                for (int j = 0; j < stage_steps; j++) raw[j] = load(j);
#pragma unroll
                for (int j = 0; j < stage_steps; j++) special |= format::special(raw[j]);
                if (!__any_sync(~0u, special != 0)) {
                    barrier_arrive(full + to_empty);
                    barrier_wait(source_full(), source_parity);
#pragma unroll
                    for (int j = 0; j < stage_steps; j++) multiply(std::false_type(), raw[j], j);
                    done = true;
                }
            }
            if (!done) {
                barrier_wait(source_full(), source_parity);
#pragma unroll 1
                for (int j = 0; j < here; j++) {
                    const raw_t raw = load(j);
                    if (__any_sync(~0u, format::special(raw) != 0))
                        multiply(std::true_type(), raw, j,
                                args.K - (step_begin + begin + s + j) * k::step_rows);
                    else
                        multiply(std::false_type(), raw, j);
                }
                barrier_arrive(full + to_empty);
            }
            barrier_arrive(source_full() + to_empty);
            if (++source_at == source_ring) source_at = 0, source_parity ^= 1;
            if (++at == ring) at = 0, parity ^= 1;
        }

        // Sums go to the CTA that finishes the columns. Lanes have columns lane / 4 and lane / 4 + 8 of the
        // 16 of their warp, and two rows of every eight.
        const bool first = item == number;
        if (!first) {
            barrier_wait_cluster(sums_free, sums_parity);
            sums_parity ^= 1;
        }
        if constexpr (variant::one_row) one_row.finish();
        const uint32_t part = sums + (rank * teams + team) * part_bytes
                              + (lane % 4 * 2 * sum_pitch + quarter * 16 - owner * quads * 4 + lane / 4) * 4;
        const auto put = [&](auto store) {
            if constexpr (variant::one_row) {
                if (lane % 4 == 0)
                    for (int i = 0; i < 2; i++) store(i * 32, one_row.sum[i]);
            } else {
#pragma unroll
                for (int t = 0; t < row_tiles; t++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        store((t * 8 + i % 2) * sum_pitch * 4 + i / 2 * 32,
                                sets == 1 ? sum[0][t][i] : sum[0][t][i] + sum[sets - 1][t][i]);
            }
        };
        if (owner == rank) {
            put([&](int offset, float v) { store_shared(part + offset, v); });
            // Each thread announces what one thread of the other CTA sends.
            barrier_arrive_expect(sums_ready, shares ? sum_rows * 16 * 4 / 32 : 0);
        } else {
            const uint32_t there = cluster_address(part, owner), bar = cluster_address(sums_ready, owner);
            put([&](int offset, float v) { cluster_store_async(there + offset, v, bar); });
        }
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
