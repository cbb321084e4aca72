// SPDX-License-Identifier: Apache-2.0
// gemm_narrow's matmul where panels of 64 columns are too few for all multiprocessors, but half as many more
// would be too many. Clusters of four CTAs have three panels and the same block of rows. Three of the CTAs,
// the owners, have a panel each, and leave the last part of K to the fourth, the helper, which multiplies it
// for all three panels and sends its sums to their owners.
//
// Owners need the same rows in the same steps of 64 rows of K. Each copies every third step to all of them.
//
// Consumers are three warpgroups. Those of an owner take its steps in turn; those of the helper have a panel
// each.
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

// width: the largest number of rows of a block.
template <typename format_, int width_>
struct gemm_helped_t {
    using format = format_;
    static_assert(format::one_step_tiles && format::terms == 1, "tiles of one size");
    static constexpr int width = width_, owners = 3, cluster = owners + 1;
    static constexpr int group = 128, consumers = owners, working = consumers * group, copiers = 2,
                         threads = working + group;
    static constexpr int step_rows = 64, row_bytes = step_rows * 2, source_bytes = width * row_bytes;
    static constexpr int tile_bytes = format::max_header + step_rows * panel_columns * format::bits / 8;
    static constexpr int head_bytes = 1024, budget = 227 * 1024;
    // Sums of the helper for an owner. They lie behind its codes, which are of one panel.
    static constexpr int helped_bytes = width * panel_columns * 4;
    // A multiple of the owners, so that a slot of the ring always has the same copier and the same consumers:
    // see gemm_narrow.cuh.
    static constexpr int fit = std::min((budget - head_bytes - helped_bytes) / (source_bytes + tile_bytes),
                                 (budget - head_bytes) / (source_bytes + owners * tile_bytes)),
                         stages = fit / owners * owners;
    static_assert(stages >= 6, "too few stages to hide the latency of memory");
    struct head_t {
        uint64_t full[stages], empty[stages], read[stages]; // empty: of the CTAs that share rows
        uint64_t arrived;                                   // sums of the helper
    };
    static_assert(sizeof(head_t) <= head_bytes, "barriers");
    static constexpr int codes_at = head_bytes + stages * source_bytes,
                         helped_at = codes_at + stages * tile_bytes,
                         bytes = std::max(helped_at + helped_bytes, codes_at + stages * owners * tile_bytes);
    // What narrow_sums_t has to know: consumers of one panel that share K.
    static constexpr int steps = consumers, parts = 1, panels = 1;
    static constexpr int groups = width / 8, most_groups = (groups + steps - 1) / steps,
                         most_own = most_groups, pitch = panel_columns + 4;
    static constexpr int exchange_bytes = consumers * (steps - 1) * most_groups * group * 16,
                         buffers_bytes = 0, results_bytes = most_own * 8 * pitch * 4;
    static_assert(exchange_bytes + consumers * results_bytes <= helped_at - head_bytes, "room");
    // Named; 0 is the barrier of all threads.
    static constexpr int working_barrier = 1, panel_barrier = 2, consumer_barrier = 3;
    // Registers of a thread, which move from copiers to consumers.
    static constexpr int launch_registers = 65536 / threads / 8 * 8, copier_registers = 32,
                         working_registers =
                                 (launch_registers * threads - copier_registers * group) / working / 8 * 8;
};

template <typename v>
__global__ void __launch_bounds__(v::threads, 1)
        gemm_helped(const __grid_constant__ gemm_args_t kernel_args) {
    using namespace ptx;
    using format = typename v::format;
    const matmul_args_t &args = kernel_args.matmul;
    extern __shared__ __align__(1024) uint8_t shared[];
    typename v::head_t &head = *reinterpret_cast<typename v::head_t *>(shared);
    let_later_kernels_start();
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int rank = int(cluster_rank());
    const bool helps = rank == v::owners;
    const int panels = (args.N + panel_columns - 1) / panel_columns;
    constexpr narrow_shape_t shape = {v::width, v::cluster, v::owners};
    const int blocks = narrow_blocks(shape, panels, int(gridDim.x)), cluster = int(blockIdx.x) / v::cluster;
    const int first_panel = cluster / blocks * v::owners; // the last cluster may have fewer
    const int steps_all = (args.K + v::step_rows - 1) / v::step_rows,
              of_helper = narrow_helped_steps(steps_all), count = helps ? of_helper : steps_all - of_helper,
              first_step = helps ? steps_all - of_helper : 0; // of 64 rows of K
    const int box = narrow_box_rows(shape, args.M, blocks), box_bytes = box * v::row_bytes,
              first_row = cluster % blocks * box, rows = min(args.M - first_row, box);
    const uint32_t base = shared_address(shared), full = shared_address(head.full),
                   empty = shared_address(head.empty), read = shared_address(head.read),
                   arrived = shared_address(&head.arrived), sources = base + v::head_bytes,
                   codes = base + v::codes_at, helped = base + v::helped_at;
    const int own_panels = helps ? v::owners : 1, codes_bytes = own_panels * v::tile_bytes; // of a stage
    constexpr int weights_warp = v::working / 32, source_warp = weights_warp + v::copiers;
    if (warp == weights_warp && lane == 0) {
#pragma unroll 4
        for (int i = 0; i < v::stages; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, v::owners * 4); // a warp of each consumer that reads the rows
            barrier_init(read + 8 * i, own_panels * 4);
        }
        barrier_init(arrived, 1);
        barrier_init_fence();
        if (!helps) barrier_arrive_expect(arrived, v::helped_bytes);
    }
    __syncthreads();
    cluster_arrive();

    if (warp < weights_warp) {
        more_registers<v::working_registers>();
        cluster_wait();
        wait_for_earlier_kernels();
        const int consumer = warp / 4, thread = threadIdx.x % v::group, stride = helps ? 1 : v::consumers,
                  first = helps ? 0 : consumer;
        const place_t place = format::place(thread, args.tiling);
        const uint32_t first_b = __shfl_sync(~0u, wgmma::b_descriptor(sources), 0),
                       own_codes = codes + (helps ? consumer * v::tile_bytes : 0);
        uint32_t scales_at = own_codes + place.scales, codes_at = own_codes + place.codes;
        // Who copies the steps of this consumer.
        const uint32_t told = cluster_address(empty, helps ? rank : consumer);
        asm("" : "+r"(scales_at), "+r"(codes_at));
        float sum[v::width / 2] = {};
        typename format::raw_t raw;
        int slot = first, round = 0;
        const auto load = [&] {
            barrier_wait(full + 8 * slot, round);
            const shared_reader_t of_scales{scales_at + slot * codes_bytes},
                    of_codes{codes_at + slot * codes_bytes};
            raw = format::load(of_scales, of_codes, args.tiling);
        };
        const int own_count = __shfl_sync(~0u, (count - first + stride - 1) / stride, 0);
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
            slot += stride;
            if (slot >= v::stages) slot -= v::stages, round ^= 1;
            if (s + 1 < own_count) load();
            wgmma::wait<0>();
            wgmma::keep(a);
            __syncwarp(); // all lanes have read the weights
            if (lane == 0) {
                barrier_arrive(read + 8 * done);
                cluster_barrier_arrive_relaxed(told + 8 * done);
            }
        }
        __syncwarp();
        narrow_sums_t<v> sums{args, shared, sources, arrived, consumer, consumer, thread, 0, {}};
        if (helps) {
            const uint32_t there = cluster_address(helped + thread * 16, consumer),
                           bar = cluster_address(arrived, consumer);
#pragma unroll
            for (int g = 0; g < v::groups; g++)
                cluster_store_async(there + g * sums.group_bytes, sums.sums_of_group(sum, g), bar);
            cluster_arrive_release();
        } else {
            cluster_arrive_release();                      // no other CTA is told more
            named_barrier(v::working_barrier, v::working); // the stages are free
            sums.take(sum);
            barrier_wait_cluster(arrived, 0);
            const narrow_share_t own = sums.groups_of(consumer);
#pragma unroll
            for (int g = 0; g < v::most_groups; g++)
                if (g < own.count()) sums.add(g, helped + thread * 16 + (own.begin + g) * sums.group_bytes);
            sums.store(first_panel + rank, first_row, rows);
        }
        cluster_wait();
        return;
    }
    fewer_registers<v::copier_registers>();
    if (warp < source_warp) {
        const int number = warp - weights_warp;
        if (lane == 0) {
            const uint8_t *from[v::owners];
#pragma unroll
            for (int p = 0; p < v::owners; p++)
                from[p] = static_cast<const uint8_t *>(args.weights) + args.prefix
                          + min(first_panel + (helps ? p : rank), panels - 1) * args.tiling.panel_bytes
                          + int64_t(first_step) * v::tile_bytes;
            if (!args.constant_weights) { // an earlier kernel may write them
#pragma unroll
                for (int p = 0; p < v::owners; p++)
                    if (number == 0 && p < own_panels && count > 0)
                        bulk_prefetch(from[p], uint32_t(min(v::stages, count) * v::tile_bytes));
                wait_for_earlier_kernels();
            }
            int slot = number, round = 1, lap = 0; // lap: the step in slot 0
#pragma unroll 1
            for (int s = number; s < count; s = lap + slot) {
                const int64_t at = int64_t(s) * v::tile_bytes;
                barrier_wait(read + 8 * slot, round);
                barrier_arrive_expect(full + 8 * slot, own_panels * v::tile_bytes + box_bytes);
#pragma unroll
                for (int p = 0; p < v::owners; p++)
                    if (p < own_panels)
                        bulk_copy(codes + slot * codes_bytes + p * v::tile_bytes, from[p] + at, v::tile_bytes,
                                full + 8 * slot);
                slot += v::copiers;
                if (slot >= v::stages) slot = number, round ^= 1, lap += v::stages;
            }
        }
        __syncwarp();
        cluster_wait();
    } else {
        // An owner copies every third of the owners' steps, by one warp; the helper its own.
        if (lane == 0 && warp == source_warp && count > 0) prefetch_map(kernel_args.source_map);
        cluster_wait();
        wait_for_earlier_kernels();
        if (lane == 0 && warp == source_warp) {
            const int stride = helps ? 1 : v::owners;
#pragma unroll 1
            for (int s = helps ? 0 : rank; s < count; s += stride) {
                const int round = s / v::stages, slot = s % v::stages;
                const uint32_t to = sources + slot * v::source_bytes, bar = full + 8 * slot;
                const int column = (first_step + s) * v::step_rows;
                barrier_wait(empty + 8 * slot, ~round & 1);
                if (helps)
                    tensor_copy(to, kernel_args.source_map, column, first_row, bar);
                else
                    tensor_copy_to((1 << v::owners) - 1, to, kernel_args.source_map, column, first_row, bar);
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
