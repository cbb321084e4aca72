// SPDX-License-Identifier: Apache-2.0
// Matmul of one matrix of weights for 17 to some hundred rows of the source, without a second kernel that
// adds up parts of K. For up to 64 rows the two CTAs of a cluster have a panel of 64 columns each, and all of
// K. Each copies half of the source rows for both: otherwise the rows would be most of what comes from the L2
// cache.
//
// More rows are divided into blocks. A CTA has two panels and one block of rows, and shares the block with
// the other CTA of its cluster. Clusters with the same weights are neighbours, so one of them finds these in
// L2.
//
// Where there are few panels, the CTAs of a cluster share K instead: each has a part of it, and the same
// panel. In the end each finishes some of the columns, and reads the sums of all from their shared memory, in
// fixed order.
//
// A stage has steps of 64 rows of K, as many as there are consumers for a panel, which are warpgroups. They
// decode weights to the register operand of wgmma. In the end their sums add up in shared memory, in fixed
// order. Copying a stage takes a warp about 300 ns, so two warps for weights and two for rows take turns.
#pragma once

#include <algorithm>

#include "gpu/cuda/device/kernels/sm90/gemv.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/ptx/registers.cuh"
#include "gpu/cuda/heuristics/gemm_narrow.hpp"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// width: the largest number of rows of a block. parts: CTAs of a cluster that share K. panels: those of a
// CTA.
template <typename format_, int width_, int parts_ = 1, int panels_ = 1>
struct gemm_narrow_t {
    using format = format_;
    static constexpr int parts = parts_, panels = panels_;
    static constexpr bool shares = parts > 1;
    static_assert(format::one_step_tiles && format::terms == 1, "tiles of one size");
    static constexpr int width = width_, consumers = 4, cluster = narrow_cluster(parts);
    static constexpr int steps = consumers / panels; // of a stage
    static constexpr int group = 128, working = consumers * group, copiers = 2,
                         threads = working + 2 * copiers * 32;
    static constexpr int step_rows = 64, row_bytes = step_rows * 2, source_step = width * row_bytes,
                         source_bytes = steps * source_step;
    static constexpr int tile_bytes = format::max_header + step_rows * panel_columns * format::bits / 8,
                         codes_bytes = consumers * tile_bytes;
    static constexpr int head_bytes = 1024, max_stages = 8, budget = 227 * 1024;
    static constexpr int stages = std::min(max_stages, (budget - head_bytes) / (source_bytes + codes_bytes));
    static_assert(stages >= 4, "too few stages to hide the latency of memory");
    struct head_t {
        uint64_t full[stages], empty[stages], read[stages]; // empty: of both CTAs
    };
    static_assert(sizeof(head_t) <= head_bytes, "barriers");
    static constexpr int codes_at = head_bytes + stages * source_bytes,
                         bytes = codes_at + stages * codes_bytes;
    // Sums of a consumer. A row has 4 floats more than columns, because of the banks.
    static constexpr int pitch = panel_columns + 4, part_bytes = width * pitch * 4;
    static_assert(consumers * part_bytes <= stages * source_bytes, "in place of the stages");
    static constexpr int working_barrier = 1; // named; 0 is the barrier of all threads
    // Registers of a thread where sums need more than an equal share, which moves from copiers to consumers.
    static constexpr bool moves_registers = width > 64;
    static constexpr int copier_registers = 32, working_registers = 112;
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
    const int rank = int(cluster_rank()), panels = (args.N + panel_columns - 1) / panel_columns;
    const int blocks = narrow_blocks({v::width, v::parts, v::panels}, panels, int(gridDim.x)),
              cluster = int(blockIdx.x) / v::cluster;
    // The first panel; the last cluster may have fewer.
    const int own = (v::shares ? cluster : cluster / blocks * v::cluster + rank) * v::panels;
    const int tiles_all = (args.K + v::step_rows - 1) / v::step_rows;
    const auto tiles_before = [&](int part) { return (tiles_all * part + v::parts - 1) / v::parts; };
    const int first_tile = v::shares ? tiles_before(rank) : 0,
              tiles = (v::shares ? tiles_before(rank + 1) : tiles_all) - first_tile,
              count = (tiles + v::steps - 1) / v::steps;
    const int half = narrow_box_rows(args.M, blocks),
              half_bytes = half * v::row_bytes; // rows that a CTA copies
    const int first_row = cluster % blocks * 2 * half, rows = min(args.M - first_row, 2 * half);
    const uint32_t base = shared_address(shared), full = shared_address(head.full),
                   empty = shared_address(head.empty), read = shared_address(head.read),
                   sources = base + v::head_bytes, codes = base + v::codes_at;
    constexpr int weights_warp = v::working / 32, source_warp = weights_warp + v::copiers;
    if (warp == weights_warp && lane == 0) {
#pragma unroll 4
        for (int i = 0; i < v::stages; i++) {
            barrier_init(full + 8 * i, 2);
            barrier_init(empty + 8 * i, (v::shares ? 1 : v::cluster) * v::working / 32);
            barrier_init(read + 8 * i, v::working);
        }
        barrier_init_fence();
    }
    __syncthreads();
    cluster_arrive();

    // By consumers. Each CTA of those that share K finishes a part of the columns.
    const auto finish = [&] {
        constexpr int quads = v::panels * panel_columns / 4 / v::parts, rows_at_once = v::working / quads;
        const int quad = int(threadIdx.x) % quads + (v::shares ? rank * quads : 0),
                  slot = quad * 4 / panel_columns; // its panel
        if (own + slot >= panels) return;
        const int first = int(threadIdx.x) / quads;
        const columns_t columns(args, 0, own * panel_columns + quad * 4, format::sum_scale);
        const plain_results_t plain(args, columns, args.row_begin + first_row + first);
#pragma unroll
        for (int row = first; row < v::width; row += rows_at_once) {
            if (row >= rows) break;
            float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
            const auto add = [&](const float4 &o) { x.x += o.x, x.y += o.y, x.z += o.z, x.w += o.w; };
#pragma unroll
            for (int p = 0; p < v::parts * v::steps; p++) {
                const int at = v::head_bytes + (slot * v::steps + p % v::steps) * v::part_bytes
                               + (row * v::pitch + quad * 4 % panel_columns) * 4;
                if constexpr (v::shares)
                    add(cluster_load(cluster_address(base + at, p / v::steps)));
                else
                    add(*reinterpret_cast<const float4 *>(shared + at));
            }
            if (plain.usual) {
                plain.store(columns, x, row - first);
            } else {
                const int m = args.row_begin + first_row + row;
                columns.store<1>(args, m, 1, m + 1, &x.x, &x.x, 0);
            }
        }
    };

    if (warp < weights_warp) {
        if constexpr (v::moves_registers) more_registers<v::working_registers>();
        cluster_wait();
        wait_for_earlier_kernels();
        const int group = warp / 4, step = group % v::steps, thread = threadIdx.x % v::group;
        const place_t place = format::place(thread, args.tiling);
        const uint32_t first_b = __shfl_sync(~0u, wgmma::b_descriptor(sources + step * v::source_step), 0);
        uint32_t scales_at = codes + group * v::tile_bytes + place.scales,
                 codes_at = codes + group * v::tile_bytes + place.codes;
        const uint32_t told = cluster_address(empty, lane % v::cluster);
        asm("" : "+r"(scales_at), "+r"(codes_at));
        float sum[v::width / 2] = {};
        typename format::raw_t raw;
        int slot = 0, round = 0;
        const auto load = [&] {
            barrier_wait(full + 8 * slot, round);
            const shared_reader_t of_scales{scales_at + slot * v::codes_bytes},
                    of_codes{codes_at + slot * v::codes_bytes};
            raw = format::load(of_scales, of_codes, args.tiling);
        };
        const auto release = [&](int of) {
            barrier_arrive(read + 8 * of);
            __syncwarp();
            if constexpr (v::shares) {
                if (lane == 0) barrier_arrive(empty + 8 * of);
            } else {
                if (lane < v::cluster) cluster_barrier_arrive_relaxed(told + 8 * of);
            }
        };
        const int own_count = __shfl_sync(~0u, (tiles - step + v::steps - 1) / v::steps, 0);
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
            if (++slot == v::stages) slot = 0, round ^= 1;
            if (s + 1 < own_count) load();
            wgmma::wait<0>();
            wgmma::keep(a);
            release(done);
        }
        if (own_count < count) { // the last stage has no step for this consumer
            barrier_wait(full + 8 * slot, round);
            release(slot);
        }
        named_barrier(v::working_barrier, v::working); // the stages are free
        const uint32_t part =
                sources + group * v::part_bytes + (lane % 4 * 2 * v::pitch + warp % 4 * 16 + lane / 4) * 4;
#pragma unroll
        for (int t = 0; t < v::width / 8; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                store_shared(part + ((t * 8 + i % 2) * v::pitch + i / 2 * 8) * 4, sum[t * 4 + i]);
        if constexpr (!v::shares) {
            named_barrier(v::working_barrier, v::working);
            finish();
        }
    } else {
        if constexpr (v::moves_registers) fewer_registers<v::copier_registers>();
        if (warp < source_warp) {
            const int number = warp - weights_warp;
            if (lane == 0) {
                const int64_t part_bytes = int64_t(tiles) * v::tile_bytes;
                const uint8_t *from[v::panels];
#pragma unroll
                for (int p = 0; p < v::panels; p++)
                    from[p] = static_cast<const uint8_t *>(args.weights) + args.prefix
                              + min(own + p, panels - 1) * args.tiling.panel_bytes
                              + int64_t(first_tile) * v::tile_bytes;
                constexpr int panel_bytes = v::steps * v::tile_bytes;
                if (!args.constant_weights) { // an earlier kernel may write them
#pragma unroll
                    for (int p = 0; p < v::panels; p++)
                        if (number == 0 && count > 0)
                            bulk_prefetch(
                                    from[p], uint32_t(min(int64_t(v::stages) * panel_bytes, part_bytes)));
                    wait_for_earlier_kernels();
                }
                int slot = number, round = 1;
#pragma unroll 1
                for (int s = number; s < count; s += v::copiers) {
                    const int64_t at = int64_t(s) * panel_bytes;
                    const int bytes = int(min(int64_t(panel_bytes), part_bytes - at));
                    barrier_wait(read + 8 * slot, round);
                    barrier_arrive_expect(full + 8 * slot, v::panels * bytes);
#pragma unroll
                    for (int p = 0; p < v::panels; p++)
                        bulk_copy(codes + slot * v::codes_bytes + p * panel_bytes, from[p] + at, bytes,
                                full + 8 * slot);
                    slot += v::copiers;
                    if (slot >= v::stages) slot -= v::stages, round ^= 1;
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
                int slot = number, round = 1;
#pragma unroll 1
                for (int s = number; s < count; s += v::copiers) {
                    const int here = min(v::steps, tiles - s * v::steps);
                    barrier_wait(empty + 8 * slot, round);
                    barrier_arrive_expect(full + 8 * slot, here * 2 * half_bytes);
#pragma unroll
                    for (int j = 0; j < v::steps; j++) {
                        if (j >= here) break;
                        const uint32_t to = sources + slot * v::source_bytes + j * v::source_step;
                        const int column = (first_tile + s * v::steps + j) * v::step_rows;
                        if constexpr (v::shares) {
#pragma unroll
                            for (int box = 0; box < 2; box++)
                                tensor_copy(to + box * half_bytes, kernel_args.source_map, column, box * half,
                                        full + 8 * slot);
                        } else {
                            tensor_copy_to(3, to + rank * half_bytes, kernel_args.source_map, column,
                                    first_row + rank * half, full + 8 * slot);
                        }
                    }
                    slot += v::copiers;
                    if (slot >= v::stages) slot -= v::stages, round ^= 1;
                }
            }
            __syncwarp();
        }
    }
    if constexpr (v::shares) {
        __syncwarp();
        cluster_sync(); // all sums are there
        if (warp < weights_warp) finish();
    }
    __syncwarp();
    cluster_sync(); // no CTA may end before the last arrival of the other
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
