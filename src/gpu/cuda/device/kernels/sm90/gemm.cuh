// SPDX-License-Identifier: Apache-2.0
// Matmul for many rows of the source: bound by the tensor cores.
//
// A CTA is a producer warpgroup and two consumer warpgroups, or four where rows are few. A work item is four
// panels of 64 columns (three or two with as many consumers, gemm_shared.cuh), a block of up to `width` rows
// of the source, and a share of K. Wide blocks leave a consumer registers for the sums of one panel only:
// then two CTAs of a cluster have two panels each, and send each other half of the source rows. Wide, because
// a weight is decoded once for all rows of a block: that costs time where the tensor cores wait for it, and
// power where they do not.
//
// The producer keeps a ring of stages of 64 rows of K full: one tile of each panel by bulk copies,
// started by two warps in turn (starting one takes a warp about 30 ns, a stage some 200 ns), and the
// source rows, neighbours in memory (convert_source.cu gathers others), by tensor copies in the swizzle that
// wgmma reads. A warpgroup that starts wgmma with A in registers stands still until the last one of them has
// begun, so what hides decoding is the other consumers' wgmma more than its own.
//
// Rows of f8_e4m3 meet MXFP4 weights at the rate of FP8 (fp8_units.cuh, fp8_kept.cuh); their stages have 128
// rows of K.
//
// Where there are fewer items than multiprocessors, several CTAs share the K of one, and put their sums where
// sum_parts.cuh adds them up.
#pragma once

#include "gpu/cuda/device/kernels/sm90/gemm_cta.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_items.cuh"
#include "gpu/cuda/device/ptx/ahead.cuh"
#include "gpu/cuda/device/ptx/registers.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template <typename format, int width>
__global__ void __launch_bounds__(gemm_shared_t<format, width>::threads, 1)
        gemm(const __grid_constant__ gemm_args_t kernel_args) {
    using namespace ptx;
    using k = gemm_t;
    using shared_t = gemm_shared_t<format, width>;
    extern __shared__ __align__(1024) uint8_t shared[];
    const matmul_args_t &args = kernel_args.matmul;
    typename shared_t::head_t &head = *reinterpret_cast<typename shared_t::head_t *>(shared);
    constexpr int pair = shared_t::pair;
    // Where rows may come, K is not shared, and rows have one term.
    constexpr bool shares = !shared_t::may_come;
    const int splits = shares ? args.splits : 1, cluster = int(blockIdx.x) / pair, k_part = cluster % splits,
              pair_rank = pair > 1 ? int(cluster_rank()) : 0;
    const panels_t<shared_t::panels> panel_map(args);
    const int tiles = (args.K + shared_t::stage_rows - 1) / shared_t::stage_rows,
              stages_all = shares ? tiles * args.src_terms : tiles;
    const gemm_cta_t<format, width> cta{args, kernel_args.parts, kernel_args.parts_stride, shared,
            shared_address(head.full), shared_address(head.empty), shared_address(head.seen),
            shared_address(shared) + shared_t::head_bytes, panel_map, stages_all * k_part / splits,
            stages_all * (k_part + 1) / splits, tiles, k_part, pair_rank,
            is_tiles_of_dst(args) || (shared_t::fp8 && is_pairs_of_dst(args))};

    // (With this line ptxas would let products at the rate of FP8 wait for each other: C7511.)
    if (!shared_t::fp8 && threadIdx.x == shared_t::weight_warps * 32 && args.K > 0)
        prefetch_map(kernel_args.source_map);
    if (threadIdx.x == 0) {
        for (int i = 0; i < shared_t::stages; i++) {
            barrier_init(cta.full + 8 * i, 2); // announced bytes of weights, and of rows
            if (pair > 1) barrier_init(cta.empty + 8 * i, pair * shared_t::consumers / 32);
            barrier_init(cta.full + shared_t::read_offset + 8 * i, shared_t::consumers);
            barrier_init(cta.seen + 8 * i, 32 * shared_t::scale_warps);
        }
        barrier_init_fence();
    }
    if constexpr (shared_t::tables > 0)
        if (threadIdx.x < shared_t::tables)
            head.fp8_tables[threadIdx.x] = f4_lookup_t::table_e4m3(int(threadIdx.x));
    // Earlier kernels may write the data that says which rows and panels there are. Without such data, only
    // weights, rows and results wait.
    const bool waits = args.grouped || args.wanted || shared_t::fp8;
    // What makes rows has waited for all earlier kernels.
    if (waits && !(shared_t::may_come && args.makers)) wait_for_earlier_kernels();
    // Later kernels may read constant weights as soon as they start. Grouped ones may start before the
    // kernels that wrote their lists have ended.
    let_later_kernels_start();
    head.list.build(args, width);

    if constexpr (pair > 1) cluster_sync(); // the barriers of the other CTA are initialised

    using paired_t = std::conditional_t<pair == 2 && !shared_t::fp8, items_of_pairs_t<format, width>,
            items_in_turn_t<format, width>>;
    using many_t = std::conditional_t<shared_t::may_come, items_in_rounds_t<format, width>, paired_t>;
    using items_t = std::conditional_t<shared_t::short_items, known_items_t<format, width>, many_t>;
    const items_t items(
            args, head, panel_map, cluster / splits, int(gridDim.x) / (splits * pair), cta.pair_rank);
    if (threadIdx.x < k::group) {
        fewer_registers<shared_t::producer_registers>();
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        int position = 0;
        bool may_read_weights = waits || args.constant_weights;
        for (int at = items.begin; at < items.end; at += items.step) {
            if (!items.wanted(at)) continue;
            const row_block_t block = items.block(at);
            if (warp < shared_t::weight_warps && !may_read_weights) {
                if (warp == 0) cta.prefetch_weights(lane, block, items.panel_group(at));
                wait_for_earlier_kernels();
                may_read_weights = true;
            }
            if (warp < shared_t::weight_warps)
                cta.produce_weights(
                        kernel_args.source_map, warp, lane, position, block, items.panel_group(at));
            else if (!shared_t::lone && threadIdx.x == shared_t::weight_warps * 32) {
                if (pair > 1 && items.is_apart(at))
                    cta.template produce_rows<1>(kernel_args.source_map, position, block);
                else
                    cta.template produce_rows<pair>(kernel_args.source_map, position, block);
            } else if constexpr (shared_t::searches) {
                if (warp >= 4 - shared_t::scale_warps)
                    cta.template look_at_scales<shared_t::scale_warps>(warp - (4 - shared_t::scale_warps),
                            lane, position, cta.factor_set(at), block, items.panel_group(at));
            }
            position += cta.stage_end - cta.stage_begin;
        }
    } else {
        more_registers<shared_t::consumer_registers>();
        typename gemm_cta_t<format, width>::ring_t ring;
        [[maybe_unused]] turn_of<format, width> turn{0};
        if constexpr (shared_t::turns) {
            turn.consumer = __shfl_sync(~0u, int(threadIdx.x) / k::group - 1, 0);
            if (turn.consumer == turn.last) turn.end();
        }
        for (int at = items.begin; at < items.end; at += items.step) {
            if (!items.wanted(at)) continue;
            const row_block_t block = items.block(at);
            cta.consume(ring, at, block, items.panel_group(at));
        }
        if constexpr (shared_t::turns)
            if (turn.consumer == 0) turn.begin();
    }
    if (shared_t::may_come) wait_for_earlier_kernels(); // which this one may not end before
    if constexpr (pair > 1) {
        __syncwarp();
        cluster_sync(); // no CTA may end before the last arrival of the other
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
