// SPDX-License-Identifier: Apache-2.0
// Copies of weights for gemm, of formats whose tiles may have several steps of 64 rows: int4 with long
// blocks.
#pragma once

#include "gpu/cuda/device/kernels/sm90/gemm_ring.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_shared.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// Copies the weights of an item for the stages of a warp. The scales of a tile are copied with each of its
// steps. Four lanes copy scales, four others codes.
template <typename cta_t>
__device__ void produce_steps(
        const cta_t &cta, int warp, int lane, int position, const row_block_t &block, int panel_group) {
    using namespace ptx;
    using shared_t = typename cta_t::shared_t;
    using k = gemm_t;
    constexpr int most = shared_t::panels, step_bytes = shared_t::step_bytes;
    const matmul_args_t &args = cta.args;
    const tiling_t &t = args.tiling;
    const int panels = cta.panel_map.slots(panel_group), slot = lane % most, shift = t.tile_steps_shift;
    const bool codes = lane >= most, copies = slot < panels && lane < 2 * most;
    const int skipped = codes ? t.header_bytes : 0, bytes = codes ? step_bytes : t.header_bytes;
    const uint8_t *weights = packed_of(args, block.expert) + args.prefix
                             + cta.panel_map.panel(panel_group, copies ? slot : 0) * t.panel_bytes + skipped;
    const uint32_t to = cta.stages + shared_t::src_bytes + slot * shared_t::slot_bytes + skipped,
                   read = cta.full + shared_t::read_offset;
    int s = cta.stage_begin + (warp + position) % k::weight_warps;
    typename cta_t::ring_t ring(position + s - cta.stage_begin);
    for (; s < cta.stage_end; s += k::weight_warps) {
        const int step = cta.tile_of(s);
        const uint32_t bar = cta.full + 8 * ring.slot;
        barrier_wait(read + 8 * ring.slot, ring.round ^ 1);
        const uint8_t *from = weights + int64_t(step >> shift) * t.tile_bytes
                              + (codes ? (step & ((1 << shift) - 1)) * step_bytes : 0);
        if (lane == 0) barrier_arrive_expect(bar, panels * (t.header_bytes + step_bytes));
        __syncwarp();
        if (copies) bulk_copy(to + ring.slot * shared_t::stage_bytes, from, bytes, bar);
        for (int i = 0; i < k::weight_warps; i++) ring.next();
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
