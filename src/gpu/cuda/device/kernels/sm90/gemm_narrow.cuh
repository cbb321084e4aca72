// SPDX-License-Identifier: Apache-2.0
// Matmul of one matrix of weights for 17 to about a thousand rows of the source, without a second kernel that
// adds up parts of K. Rows are divided into blocks. A CTA has one to three panels of 64 columns and a block
// of rows. The two CTAs of a cluster have different panels and the same rows, of which each copies half for
// both: otherwise the rows would be most of what comes from the L2 cache. Clusters with the same weights are
// neighbours, so one of them finds these in L2.
//
// Where that leaves multiprocessors without work, the CTAs of a cluster share K instead: each has a part of
// it, and the same panels and rows.
//
// A stage has 64 rows of K. Consumers are warpgroups, each with a panel. They decode weights to the register
// operand of wgmma. Those with the same panel take stages in turn. Copying a stage takes a warp about 300 ns,
// so two warps for weights and two for rows each have every second slot of the ring.
#pragma once

#include <algorithm>

#include "gpu/cuda/device/kernels/sm90/gemm_narrow_sums.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/ptx/ahead.cuh"
#include "gpu/cuda/device/ptx/registers.cuh"
#include "gpu/cuda/heuristics/gemm_narrow.hpp"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// width: the largest number of rows of a block. parts: CTAs of a cluster that share K. panels: those of a
// CTA.
template <typename format_, int width_, int parts_, int panels_>
struct gemm_narrow_t {
    using format = format_;
    static_assert(format::one_step_tiles && format::terms == 1, "tiles of one size");
    static constexpr int width = width_, parts = parts_, panels = panels_;
    static constexpr int cluster = narrow_cluster(parts), sharers = narrow_sharers(parts); // of source rows
    // steps: of a panel. Four consumers would have no registers for the sums of wider blocks.
    static constexpr int steps = std::max(1, (width > 128 ? 3 : 4) / panels), consumers = panels * steps;
    static_assert(consumers <= 4, "registers");
    static constexpr int group = 128, working = consumers * group, copiers = 2,
                         threads = working + 2 * copiers * 32;
    static constexpr int step_rows = 64, row_bytes = step_rows * 2, source_bytes = width * row_bytes;
    static constexpr int tile_bytes = format::max_header + step_rows * panel_columns * format::bits / 8,
                         codes_bytes = panels * tile_bytes;
    static constexpr int head_bytes = 1024, max_stages = 20, budget = 227 * 1024;
    // A multiple of the steps, so that a slot of the ring always has the same consumers. A barrier shows only
    // the parity of its rounds: who skipped a round of a slot could take an older one for that which it waits
    // for, when the stage between them is late.
    static constexpr int fit = std::min(max_stages, (budget - head_bytes) / (source_bytes + codes_bytes)),
                         stages = fit / steps * steps;
    static_assert(stages >= 6, "too few stages to hide the latency of memory");
    struct head_t {
        uint64_t full[stages], empty[stages], read[stages]; // empty: of the CTAs that share rows
        uint64_t arrived;                                   // sums of other CTAs
    };
    static_assert(sizeof(head_t) <= head_bytes, "barriers");
    static constexpr int codes_at = head_bytes + stages * source_bytes,
                         bytes = codes_at + stages * codes_bytes;
    // In place of the stages in the end, in groups of eight rows: sums of consumers, of CTAs, and results. A
    // row of f32 has 4 more than columns, because of the banks.
    static constexpr int groups = width / 8, most_groups = (groups + steps - 1) / steps,
                         most_own = (most_groups + parts - 1) / parts, pitch = panel_columns + 4;
    static constexpr int exchange_bytes = consumers * (steps - 1) * most_groups * group * 16,
                         buffers_bytes = consumers * (parts - 1) * most_own * group * 16,
                         results_bytes = most_own * 8 * pitch * 4;
    static_assert(exchange_bytes + buffers_bytes + consumers * results_bytes <= bytes - head_bytes, "room");
    // Named; 0 is the barrier of all threads.
    static constexpr int working_barrier = 1, panel_barrier = 2, consumer_barrier = panel_barrier + panels;
    // Registers of a thread, which move from copiers to consumers.
    static constexpr int launch_registers = 65536 / threads / 8 * 8, copier_registers = 32,
                         working_registers = std::min(
                                 232, (launch_registers * threads - copier_registers * 2 * copiers * 32)
                                              / working / 8 * 8);
};

template <typename v>
__global__ void __launch_bounds__(v::threads, 1)
        gemm_narrow(const __grid_constant__ gemm_args_t kernel_args) {
    using namespace ptx;
    using format = typename v::format;
    const matmul_args_t &args = kernel_args.matmul;
    extern __shared__ __align__(1024) uint8_t shared[];
    typename v::head_t &head = *reinterpret_cast<typename v::head_t *>(shared);
    let_later_kernels_start();
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int rank = int(cluster_rank()), part = v::parts > 1 ? rank : 0, share = v::parts > 1 ? 0 : rank;
    const int panels = (args.N + panel_columns - 1) / panel_columns;
    constexpr narrow_shape_t shape = {v::width, v::parts, v::panels};
    const int blocks = narrow_blocks(shape, panels, int(gridDim.x)), cluster = int(blockIdx.x) / v::cluster;
    // The first panel; the last cluster may have fewer.
    const int own = (cluster / blocks * v::sharers + share) * v::panels;
    const int tiles_all = (args.K + v::step_rows - 1) / v::step_rows;
    const auto tiles_before = [&](int part) { return (tiles_all * part + v::parts - 1) / v::parts; };
    const int first_tile = tiles_before(part), count = tiles_before(part + 1) - first_tile;
    const int box = narrow_box_rows(shape, args.M, blocks), block_rows = v::sharers * box,
              box_bytes = box * v::row_bytes; // rows that a CTA copies
    const int first_row = cluster % blocks * block_rows, rows = min(args.M - first_row, block_rows);
    const uint32_t base = shared_address(shared), full = shared_address(head.full),
                   empty = shared_address(head.empty), read = shared_address(head.read),
                   arrived = shared_address(&head.arrived), sources = base + v::head_bytes,
                   codes = base + v::codes_at;
    constexpr int weights_warp = v::working / 32, source_warp = weights_warp + v::copiers;
    using sums_t = narrow_sums_t<v>;
    if (warp == weights_warp && lane == 0) {
#pragma unroll 4
        for (int i = 0; i < v::stages; i++) {
            barrier_init(full + 8 * i, 2);
            barrier_init(empty + 8 * i, v::sharers * v::panels * 4); // a warp of each consumer of a stage
            barrier_init(read + 8 * i, v::panels * 4);
        }
        if (v::parts > 1) barrier_init(arrived, 1);
        barrier_init_fence();
        if (v::parts > 1) barrier_arrive_expect(arrived, sums_t::bytes_for(part));
    }
    __syncthreads();
    cluster_arrive();

    if (warp < weights_warp) {
        more_registers<v::working_registers>();
        cluster_wait();
        wait_for_earlier_kernels();
        const int consumer = warp / 4, step = consumer % v::steps, panel = consumer / v::steps,
                  thread = threadIdx.x % v::group;
        const place_t place = format::place(thread, args.tiling);
        const uint32_t first_b = __shfl_sync(~0u, wgmma::b_descriptor(sources), 0);
        uint32_t scales_at = codes + panel * v::tile_bytes + place.scales,
                 codes_at = codes + panel * v::tile_bytes + place.codes;
        const uint32_t told = cluster_address(empty, v::sharers > 1 ? lane % v::sharers : part);
        asm("" : "+r"(scales_at), "+r"(codes_at));
        float sum[v::width / 2] = {};
        typename format::raw_t raw;
        int slot = step, round = 0;
        const auto load = [&] {
            barrier_wait(full + 8 * slot, round);
            const shared_reader_t of_scales{scales_at + slot * v::codes_bytes},
                    of_codes{codes_at + slot * v::codes_bytes};
            raw = format::load(of_scales, of_codes, args.tiling);
        };
        const int own_count = __shfl_sync(~0u, (count - step + v::steps - 1) / v::steps, 0);
        if (own_count > 0) load();
#pragma unroll 1
        for (int s = 0; s < own_count; s++) {
            uint32_t a[4][4];
#pragma unroll
            for (int i = 0; i < 4; i++) format::template decode<false>(a[i], raw, i);
            if (__builtin_expect(__any_sync(~0u, format::special(raw) != 0), 0)) {
#pragma unroll
                for (int i = 0; i < 4; i++) format::template decode<true>(a[i], raw, i);
            }
            const uint32_t b = first_b + slot * (v::source_bytes / 16);
            wgmma::fence();
#pragma unroll
            for (int i = 0; i < 4; i++) wgmma::mma<v::width>(sum, a[i], b + i * wgmma::b_step);
            wgmma::commit();
            const int done = slot;
            slot += v::steps;
            if (slot >= v::stages) slot -= v::stages, round ^= 1;
            if (s + 1 < own_count) load();
            wgmma::wait<0>();
            wgmma::keep(a);
            __syncwarp(); // all lanes have read the weights
            if (lane == 0) barrier_arrive(read + 8 * done);
            if (lane < v::sharers) cluster_barrier_arrive_relaxed(told + 8 * done);
        }
        __syncwarp();
        cluster_arrive_release();                      // no other CTA is told more
        named_barrier(v::working_barrier, v::working); // the stages are free
        sums_t sums{args, shared, sources, arrived, consumer, step, thread, part, {}};
        sums.take(sum);
        cluster_wait(); // so are those of the other CTAs
        if constexpr (v::parts > 1) sums.add_parts();
        sums.store(own + panel, first_row, rows);
        return;
    }
    fewer_registers<v::copier_registers>();
    if (warp < source_warp) {
        const int number = warp - weights_warp;
        if (lane == 0) {
            const int64_t part_bytes = int64_t(count) * v::tile_bytes;
            const uint8_t *from[v::panels];
#pragma unroll
            for (int p = 0; p < v::panels; p++)
                from[p] = static_cast<const uint8_t *>(args.weights) + args.prefix
                          + min(own + p, panels - 1) * args.tiling.panel_bytes
                          + int64_t(first_tile) * v::tile_bytes;
            if (!args.constant_weights) { // an earlier kernel may write them
#pragma unroll
                for (int p = 0; p < v::panels; p++)
                    if (number == 0 && count > 0)
                        bulk_prefetch(from[p], uint32_t(min(int64_t(v::stages) * v::tile_bytes, part_bytes)));
                wait_for_earlier_kernels();
            }
            int slot = number, round = 1, lap = 0; // lap: the step in slot 0
#pragma unroll 1
            for (int s = number; s < count; s = lap + slot) {
                const int64_t at = int64_t(s) * v::tile_bytes;
                const int bytes = int(min(int64_t(v::tile_bytes), part_bytes - at));
                barrier_wait(read + 8 * slot, round);
                barrier_arrive_expect(full + 8 * slot, v::panels * bytes);
#pragma unroll
                for (int p = 0; p < v::panels; p++)
                    bulk_copy(codes + slot * v::codes_bytes + p * v::tile_bytes, from[p] + at, bytes,
                            full + 8 * slot);
                slot += v::copiers;
                if (slot >= v::stages) slot = number, round ^= 1, lap += v::stages;
            }
        }
        __syncwarp();
        cluster_wait();
    } else {
        const int number = warp - source_warp;
        if (lane == 0 && number == 0 && count > 0) prefetch_map(kernel_args.source_map);
        cluster_wait();
        wait_for_earlier_kernels();
        if (lane == 0) {
            const int row = first_row + share * box;
            int slot = number, round = 1, lap = 0;
#pragma unroll 1
            for (int s = number; s < count; s = lap + slot) {
                const uint32_t to = sources + slot * v::source_bytes + share * box_bytes,
                               bar = full + 8 * slot;
                const int column = (first_tile + s) * v::step_rows;
                barrier_wait(empty + 8 * slot, round);
                barrier_arrive_expect(bar, v::sharers * box_bytes);
                if constexpr (v::sharers > 1)
                    tensor_copy_to((1 << v::sharers) - 1, to, kernel_args.source_map, column, row, bar);
                else
                    tensor_copy(to, kernel_args.source_map, column, row, bar);
                slot += v::copiers;
                if (slot >= v::stages) slot = number, round ^= 1, lap += v::stages;
            }
        }
        __syncwarp();
    }
    cluster_arrive_release();
    cluster_wait(); // no CTA may end before the last arrival of another
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
