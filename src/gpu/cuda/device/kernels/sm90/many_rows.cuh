// SPDX-License-Identifier: Apache-2.0
// Matmul for many rows of the source: bound by the tensor cores.
//
// A CTA is a producer warpgroup and two consumer warpgroups, or four where rows are few. A work item is four
// panels of 64 columns (divided among the consumers), a block of up to `width` rows of the source, and a
// share of K. Columns are many and rows few because weights are four times smaller than source rows: a 256 x
// 128 tile reads 25 KB for every 64 of K from L2, a 128 x 256 tile 37 KB, and L2 could not feed that at the
// rate of the tensor cores.
//
// The producer keeps a ring of stages of 64 rows of K full: one tile of each panel by bulk copies,
// started by two warps in turn (starting one takes a warp about 30 ns, a stage some 200 ns), and the
// source rows, neighbours in memory (source_rows.cu gathers others), by one tensor copy in the swizzle that
// wgmma reads. A consumer decodes one part of a stage (a panel, or half of K) into A fragments while the
// wgmma of the part before, and those of the other consumers, run.
//
// Where there are fewer items than multiprocessors, the CTAs of a cluster share K; each adds up a
// part of the columns from the shared memory of all, in fixed order.
#pragma once

#include "gpu/cuda/device/kernels/sm90/finish.cuh"
#include "gpu/cuda/device/kernels/sm90/work_list.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace sm90 {

struct many_rows_t {
    static constexpr int panels = 4, panel_columns = sm90::panel_columns;
    static constexpr int row_step = 16; // row blocks are multiples of this
    static constexpr int group = 128;   // threads of a warpgroup
    // Warps of the producer: 0 and 1 copy weights, 2 the source.
    static constexpr int weight_warps = 2;
    static constexpr int tile_rows = 64, src_row_bytes = tile_rows * 2;
    static constexpr int max_stages = 8;
    // Sums leave by teams of consumers that have two panels: 4 floats more than the columns, so that the
    // lanes of a fragment write to different banks; rows_out rows at a time where K is not shared.
    static constexpr int teams = 2, out_pitch = panels / teams * panel_columns + 4, rows_out = 32;
    static constexpr int sum_pitch = panels * panel_columns + 4;
    static constexpr int shared_budget = 227 * 1024;
    // Named barriers; 0 is that of all threads.
    static constexpr int consumers_barrier = 1, team_barrier = 2;
};

// `width` is the n of wgmma: the rows of the source that a row block may have. Few rows are little work for
// the tensor cores and as much decoding: four consumers of a panel each hide more latency than two of two.
template <typename format, int width>
struct many_rows_shared_t {
    static_assert(
            width % many_rows_t::row_step == 0 && width <= 144, "sums of two panels fill the registers");
    using k = many_rows_t;
    static constexpr int panels_each = width <= 64 ? 1 : 2, consumer_groups = k::panels / panels_each;
    static constexpr int consumers = consumer_groups * k::group, threads = consumers + k::group;
    static constexpr int team_groups = consumer_groups / k::teams, team = team_groups * k::group;
    // Registers of a thread. They move from the producer, which needs few, to the consumers, within what the
    // CTA was launched with: an even share of 65536 for every thread, in steps of 8. (More would be waited
    // for forever.)
    static constexpr int launch_registers = 65536 / threads / 8 * 8;
    static constexpr int producer_registers = panels_each == 1 ? 32 : 56,
                         consumer_registers = panels_each == 1 ? 112 : 224;
    static_assert(
            k::group * producer_registers + consumers * consumer_registers <= threads * launch_registers,
            "registers");
    struct head_t {
        uint64_t full[k::max_stages], empty[k::max_stages];
        work_list_t list;
    };
    static constexpr int head_bytes = (int(sizeof(head_t)) + 1023) / 1024 * 1024;
    static constexpr int out_bytes = k::rows_out * k::out_pitch * 4; // of a team
    static constexpr int src_bytes = width * k::src_row_bytes;
    static constexpr int step_bytes = k::tile_rows * k::panel_columns * format::bits / 8;
    // A panel's scales and codes in a stage.
    static constexpr int slot_bytes = format::max_header + step_bytes;
    static constexpr int stage_bytes = (src_bytes + k::panels * slot_bytes + 1023) / 1024 * 1024;
    static constexpr int fit = (k::shared_budget - head_bytes - 2 * out_bytes) / stage_bytes;
    static constexpr int stages = fit < k::max_stages ? fit : k::max_stages;
    static constexpr int bytes = head_bytes + stages * stage_bytes + 2 * out_bytes;
    static_assert(stages >= 4, "too few stages to hide the latency of memory");
    static_assert(stages * stage_bytes + 2 * out_bytes >= width * k::sum_pitch * 4,
            "where K is shared, the sums take the place of the ring");
};

// Kernel parameter, where the copy engine finds the tensor map of the source rows: boxes of
// 64 columns and `width` rows.
struct many_rows_args_t {
    matmul_args_t matmul;
    alignas(64) uint8_t source_map[128]; // CUtensorMap
};

template <int registers>
__device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// The position in the ring of stages.
template <int stages>
struct ring_t {
    int slot = 0, round = 0;
    __device__ void next() {
        if (++slot == stages) slot = 0, round ^= 1;
    }
};

template <typename format, int width>
struct many_rows_cta_t {
    using k = many_rows_t;
    using shared_t = many_rows_shared_t<format, width>;
    using ring_t = sm90::ring_t<shared_t::stages>;

    const matmul_args_t &args;
    uint8_t *shared;
    uint32_t full, empty, stages; // shared addresses
    panels_t<k::panels> panel_map;
    int stage_begin, stage_end;
    int rank;

    // Weights of an item, every other stage; `position` counts the stages of all items before it.
    __device__ void produce_weights(
            int warp, int lane, int position, const row_block_t &block, int panel_group) const {
        using namespace ptx;
        const int panels = panel_map.slots(panel_group);
        const tiling_t &t = args.tiling;
        const uint8_t *weights = packed_of(args, block.expert) + args.prefix
                                 + panel_map.panel(panel_group, lane) * t.panel_bytes;
        for (int s = stage_begin + (warp + position) % k::weight_warps; s < stage_end; s += k::weight_warps) {
            const int n = position + s - stage_begin, slot = n % shared_t::stages;
            barrier_wait(empty + 8 * slot, n / shared_t::stages % 2 ^ 1);
            const int step = s & ((1 << t.tile_steps_shift) - 1); // in its tile
            const int64_t from = int64_t(s >> t.tile_steps_shift) * t.tile_bytes;
            // The last tile may end early; so far it is one step.
            const int bytes = t.tile_steps_shift ? t.header_bytes + shared_t::step_bytes
                                                 : int(min(int64_t(t.tile_bytes), t.panel_bytes - from));
            const uint32_t to =
                    stages + slot * shared_t::stage_bytes + shared_t::src_bytes + lane * shared_t::slot_bytes;
            if (lane == 0) barrier_arrive_expect(full + 8 * slot, panels * bytes);
            __syncwarp();
            if (lane >= panels) continue;
            const int first =
                    step ? t.header_bytes : bytes; // the codes of a later step are not beside the scales
            bulk_copy(to, weights + from, first, full + 8 * slot);
            if (step)
                bulk_copy(to + first, weights + from + first + step * shared_t::step_bytes, bytes - first,
                        full + 8 * slot);
        }
    }
    // By one thread. Rows of other blocks may come along, and are never used.
    __device__ void produce_rows(const void *map, int position, const row_block_t &block) const {
        using namespace ptx;
        for (int s = stage_begin; s < stage_end; s++) {
            const int n = position + s - stage_begin, slot = n % shared_t::stages;
            barrier_wait(empty + 8 * slot, n / shared_t::stages % 2 ^ 1);
            barrier_arrive_expect(full + 8 * slot, shared_t::src_bytes);
            tensor_copy(stages + slot * shared_t::stage_bytes, map, s * k::tile_rows,
                    block.first - args.row_begin, full + 8 * slot);
        }
    }

    template <int rows>
    __device__ __forceinline__ void consume(
            ring_t &ring, const row_block_t &block, int panel_group, int splits) const {
        using namespace ptx;
        constexpr int panels_each = shared_t::panels_each;
        const int consumer = threadIdx.x / k::group - 1, thread = threadIdx.x % k::group;
        float sum[panels_each][rows / 2];
#pragma unroll
        for (int p = 0; p < panels_each; p++)
#pragma unroll
            for (int i = 0; i < rows / 2; i++) sum[p][i] = 0.f;
        // A stage is two parts, so that one is decoded while the other is multiplied: a panel each, or half
        // of K of the only one.
        constexpr int parts = 2, steps = 4 / parts * panels_each;
        uint32_t a[parts][steps][4];
        const place_t place = format::place(thread, args.tiling);
        // The step of 64 rows that has codes for 32 only.
        const int rest = args.K % k::tile_rows,
                  short_step = rest && rest <= k::tile_rows / 2 ? args.K / k::tile_rows : -1;

        int last_slot = -1;
        for (int s = stage_begin; s < stage_end; s++, ring.next()) {
            barrier_wait(full + 8 * ring.slot, ring.round);
            const uint32_t stage = stages + ring.slot * shared_t::stage_bytes;
            const uint32_t tiles =
                    stage + shared_t::src_bytes + consumer * panels_each * shared_t::slot_bytes;
            const uint64_t b = wgmma::b_descriptor(stage);
            typename format::raw_t raw[panels_each];
#pragma unroll
            for (int p = 0; p < panels_each; p++) {
                const uint32_t tile = tiles + p * shared_t::slot_bytes;
                const shared_reader_t scales{tile + place.scales}, codes{tile + place.codes};
                if constexpr (format::bits == 8)
                    raw[p] = format::load(scales, codes, args.tiling, s != short_step);
                else
                    raw[p] = format::load(scales, codes, args.tiling);
            }
#pragma unroll
            for (int part = 0; part < parts; part++) {
                const int p = part * panels_each / parts, step = panels_each == 1 ? part * steps : 0;
                // Here at most the group of the other part is unfinished.
                wgmma::keep(a[part]);
                if (__any_sync(~0u, format::special(raw[p]) != 0)) {
#pragma unroll
                    for (int i = 0; i < steps; i++)
                        format::template decode<true>(a[part][i], raw[p], step + i);
                } else {
#pragma unroll
                    for (int i = 0; i < steps; i++)
                        format::template decode<false>(a[part][i], raw[p], step + i);
                }
                wgmma::fence();
#pragma unroll
                for (int i = 0; i < steps; i++)
                    wgmma::mma<rows>(sum[p], a[part][i], b + (step + i) * wgmma::b_step);
                wgmma::commit();
                wgmma::wait<1>();
                if (part == 0) { // all of the stage before has been read
                    __syncwarp();
                    if (last_slot >= 0 && thread % 32 == 0) barrier_arrive(empty + 8 * last_slot);
                    last_slot = ring.slot;
                }
            }
        }
        wgmma::wait<0>();
        wgmma::keep(a[0]);
        wgmma::keep(a[1]);
        __syncwarp();
        if (last_slot >= 0 && thread % 32 == 0) barrier_arrive(empty + 8 * last_slot);

        // Thread t has columns c and c + 8 of the 16 of its warp, rows r and r + 1 of every eight.
        const int column = thread / 32 * 16 + thread % 32 / 4, row = thread % 4 * 2;
        const auto columns_of = [&](int quad) {
            return columns_t(args, block.expert, panel_map.column(panel_group, quad), format::sum_scale);
        };
        const int up = panel_map.up ? k::panel_columns : 0; // from a gate's sum to what it gates
        if (splits == 1) {
            const int team = consumer / shared_t::team_groups,
                      member = int(threadIdx.x - k::group) % shared_t::team;
            float *out = reinterpret_cast<float *>(shared + (stages - shared_address(shared))
                                                   + shared_t::stages * shared_t::stage_bytes
                                                   + team * shared_t::out_bytes);
            const int own = consumer % shared_t::team_groups * k::panel_columns + column;
            const int quads = panel_map.quads() / k::teams, quad = member % quads;
            const columns_t columns = columns_of(team * quads + quad);
            // One loop whose code is small; only what names registers stands there once for every part.
#pragma unroll 1
            for (int r0 = 0; r0 < block.rows; r0 += k::rows_out) {
#pragma unroll
                for (int part = 0; part < rows; part += k::rows_out) {
                    if (r0 != part) continue;
#pragma unroll
                    for (int p = 0; p < panels_each; p++)
#pragma unroll
                        for (int i = 0; i < k::rows_out / 2; i++)
                            if (part / 2 + i < rows / 2)
                                out[(i / 4 * 8 + row + i % 2) * k::out_pitch + p * k::panel_columns + own
                                        + i % 4 / 2 * 8] = sum[p][(part / 2 + i) % (rows / 2)];
                }
                named_barrier(k::team_barrier + team, shared_t::team);
                constexpr int at_once = 2; // rows_out is a multiple of so many steps
                const int r_step = shared_t::team / quads, end = min(k::rows_out, block.rows - r0);
                for (int r = member / quads; r < end; r += at_once * r_step) {
                    const float *at = out + r * k::out_pitch + panel_map.slot_column(quad);
                    columns.template store<at_once>(args, block.first + r0 + r, r_step,
                            block.first + r0 + end, at, at + up, r_step * k::out_pitch);
                }
                named_barrier(k::team_barrier + team, shared_t::team);
            }
            return;
        }
        // K is shared: the ring has been read to its end, and holds the sums from here on.
        named_barrier(k::consumers_barrier, shared_t::consumers);
        float *sums = reinterpret_cast<float *>(shared + (stages - shared_address(shared)));
#pragma unroll
        for (int p = 0; p < panels_each; p++)
#pragma unroll
            for (int i = 0; i < rows / 2; i++)
                sums[(i / 4 * 8 + row + i % 2) * k::sum_pitch
                        + (consumer * panels_each + p) * k::panel_columns + column + i % 4 / 2 * 8] =
                        sum[p][i];
        cluster_sync();
        const int quads = panel_map.quads() / splits, reader = int(threadIdx.x) - k::group;
        const int quad = quads * rank + reader % quads, c = panel_map.slot_column(quad);
        const columns_t columns = columns_of(quad);
        for (int r = reader / quads; r < block.rows; r += shared_t::consumers / quads) {
            const auto sum_at = [&](int column) {
                float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
                for (int other = 0; other < splits; other++) {
                    const float4 o =
                            cluster_load(cluster_address(stages + (r * k::sum_pitch + column) * 4, other));
                    v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
                }
                return v;
            };
            const float4 v = sum_at(c), u = up ? sum_at(c + up) : v;
            columns.template store<1>(args, block.first + r, 1, block.first + block.rows, &v.x, &u.x, 0);
        }
        cluster_sync(); // nobody may leave before all have read
    }

    // Blocks run as wide as their rows need, in steps down to half of the width. With smaller steps ptxas
    // finds no registers for the sums that stay where they are, and lets one wgmma wait for the other
    // (C7512).
    static constexpr int width_step = width == 144 ? 48 : width > 48 ? 32 : k::row_step;
    template <int rows>
    __device__ __forceinline__ void consume_as_wide(
            ring_t &ring, const row_block_t &block, int panel_group, int splits) const {
        if constexpr (rows - width_step >= width / 2) {
            if (block.rows <= rows - width_step)
                return consume_as_wide<rows - width_step>(ring, block, panel_group, splits);
        }
        consume<rows>(ring, block, panel_group, splits);
    }
};

template <typename format, int width>
__global__ void __launch_bounds__(many_rows_shared_t<format, width>::threads, 1)
        many_rows(const __grid_constant__ many_rows_args_t kernel_args) {
    using namespace ptx;
    using k = many_rows_t;
    using shared_t = many_rows_shared_t<format, width>;
    extern __shared__ __align__(1024) uint8_t shared[];
    const matmul_args_t &args = kernel_args.matmul;
    typename shared_t::head_t &head = *reinterpret_cast<typename shared_t::head_t *>(shared);
    const int splits = args.splits, rank = splits > 1 ? int(cluster_rank()) : 0;
    const panels_t<k::panels> panel_map(args);
    const int stages_all = (args.K + k::tile_rows - 1) / k::tile_rows;
    const many_rows_cta_t<format, width> cta{args, shared, shared_address(head.full),
            shared_address(head.empty), shared_address(shared) + shared_t::head_bytes, panel_map,
            int(int64_t(stages_all) * rank / splits), int(int64_t(stages_all) * (rank + 1) / splits), rank};

    if (threadIdx.x == 0) {
        for (int i = 0; i < shared_t::stages; i++) {
            barrier_init(cta.full + 8 * i, 2); // announced bytes of weights and of rows
            barrier_init(cta.empty + 8 * i, shared_t::consumers / 32);
        }
        barrier_init_fence();
    }
    if (!args.grouped) let_later_kernels_start();
    wait_for_earlier_kernels();
    // Later kernels may read their weights when they start; grouped ones start before what wrote those may
    // have ended.
    if (args.grouped) let_later_kernels_start();
    head.list.build(args, width);

    const int panel_groups = panel_map.groups();
    const int items = head.list.blocks(args) * panel_groups;
    const int first_item = int(blockIdx.x) / splits, item_step = int(gridDim.x) / splits;
    if (threadIdx.x < k::group) {
        fewer_registers<shared_t::producer_registers>();
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        int position = 0;
        for (int item = first_item; item < items; item += item_step) {
            if (!panel_map.wanted(args.wanted, item % panel_groups)) continue;
            const row_block_t block = head.list.block(args, item / panel_groups, k::row_step);
            if (warp < k::weight_warps)
                cta.produce_weights(warp, lane, position, block, item % panel_groups);
            else if (threadIdx.x == k::weight_warps * 32)
                cta.produce_rows(kernel_args.source_map, position, block);
            position += cta.stage_end - cta.stage_begin;
        }
    } else {
        more_registers<shared_t::consumer_registers>();
        typename many_rows_cta_t<format, width>::ring_t ring;
        for (int item = first_item; item < items; item += item_step) {
            if (!panel_map.wanted(args.wanted, item % panel_groups)) continue;
            const row_block_t block = head.list.block(args, item / panel_groups, k::row_step);
            cta.template consume_as_wide<width>(ring, block, item % panel_groups, splits);
        }
    }
}

} // namespace sm90
} // namespace cuda
} // namespace impl
} // namespace mxdnn
