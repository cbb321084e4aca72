// SPDX-License-Identifier: Apache-2.0
// Gradients of weights for rows of bf16 or f16: of each group, the sums over its rows of the products of a's
// and b's columns.
//
// A CTA is a producer warpgroup and two consumer warpgroups. The producer keeps a ring of stages full: 64
// rows of the tile's columns of both operands, in columns of 64 elements, by tensor copies. wgmma sums along
// the rows of both, so that neither is transposed. Two CTAs of a cluster have neighbouring tiles; each copies
// half of the rows that both need, to both.
//
// Consumers take turns: the results of one tile are stored while the next one is multiplied. This matters
// where groups are short: 512 rows take little longer to multiply than their sums in f32 take to store.
// Results leave by tensor copies, because stores of fragments from registers take several times as long. The
// consumers take turns with the boxes of shared memory that they leave through, too.
//
// The last stage of a group may hold rows of the next one, which can be anything. Its rows are multiplied
// sixteen at a time. Those of the next group among the last sixteen become zeros in shared memory. Each
// element is one sum in the order of the rows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/cuda/device/kernels/sm90/gemm_ring.cuh"
#include "gpu/cuda/device/kernels/sm90/gradient_store.cuh"
#include "gpu/cuda/device/launch.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/mma/wgmma_rows.cuh"
#include "gpu/cuda/device/ptx/ahead.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/registers.cuh"
#include "gpu/cuda/device/ptx/zeros.cuh"
#include "gpu/cuda/heuristics/gradient_plan.hpp"
#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace gradient {

constexpr int group_threads = 128, consumers = 2, threads = (1 + consumers) * group_threads;
constexpr int stage_rows = 64, column_bytes = stage_rows * 128; // of 64 columns in a stage
constexpr int producer_registers = 40, consumer_registers = 232;
// Named barriers: of those who clear rows, of the consumer whose turn it is, and of each of its warps whose
// turn with the boxes it is.
constexpr int clear_barrier = 1, turn_barrier = clear_barrier + consumers,
              boxes_barrier = turn_barrier + consumers, barriers = boxes_barrier + consumers * 4;
static_assert(barriers <= 16, "barriers of a CTA");
static_assert(group_threads * (producer_registers + consumers * consumer_registers)
                      <= threads * (65536 / threads / 8 * 8),
        "registers at launch");

template <int variant>
struct shape_t {
    static constexpr gradient_variant_t v = gradient_variants[variant];
    static constexpr int halves = v.halves, n = v.n, pair = v.pair;
    static constexpr int tile_m = v.tile_m(), a_columns = tile_m / 64, b_columns = n / 64;
    static constexpr int stage_bytes = (a_columns + b_columns) * column_bytes;
    static constexpr int out_bytes = 4 * v.boxes * box_bytes;
    static constexpr int most_stages = 8;
    struct group_t {
        int first, rows;
    };
    struct head_t {
        uint64_t full[most_stages], empty[most_stages];
        group_t groups[max_gradient_groups];
    };
    static constexpr int head_bytes = (int(sizeof(head_t)) + 1023) / 1024 * 1024;
    static constexpr int fit = (227 * 1024 - head_bytes - out_bytes) / stage_bytes,
                         stages = fit < most_stages ? fit : most_stages;
    static constexpr int bytes = head_bytes + stages * stage_bytes + out_bytes;
    // Warps that read what a CTA copies, in all CTAs that it copies to.
    static constexpr int readers = 4 * pair;
};

// A value that all lanes have, as one that the compiler knows to be so. Otherwise wgmma would wait for each
// other.
template <typename T>
__device__ __forceinline__ T same_in_warp(T x) {
    return __shfl_sync(~0u, x, 0);
}

struct mapped_args_t {
    sm90_gradient_args_t g;
    alignas(64) uint8_t a_map[128], b_map[128], to_map[128]; // CUtensorMap
};

// The tiles of all groups in the order in which pairs take them: in bands of rows of tiles, so that those
// which are computed at the same time share much.
template <typename shape>
struct tiles_t {
    int down, across, band, all; // of one group, in units of pairs

    __device__ explicit tiles_t(const sm90_gradient_args_t &g) : band(g.band) {
        down = (g.M + shape::tile_m - 1) / shape::tile_m;
        across = (g.N + shape::n * shape::pair - 1) / (shape::n * shape::pair);
        all = int(g.groups.groups) * down * across;
    }
    struct tile_t {
        int group, m, n; // m, n: the first row and column of the result
    };
    __device__ tile_t tile(int i, int rank) const {
        const int each = down * across, group = i / each;
        i -= group * each;
        const int b = i / (band * across), height = min(band, down - b * band);
        i -= b * band * across;
        return {group, (b * band + i % height) * shape::tile_m, (i / height * shape::pair + rank) * shape::n};
    }
};

template <typename shape>
struct cta_t {
    using ring = packed::ring_t<shape::stages>;

    const mapped_args_t &args;
    typename shape::head_t &head;
    uint32_t full, empty, stages;
    int rank;

    // Copies the rows of a tile. Called by one thread.
    __device__ void produce(ring &r, const typename tiles_t<shape>::tile_t &t) const {
        using namespace ptx;
        const auto group = head.groups[t.group];
        for (int row = 0; row < group.rows; row += stage_rows, r.next()) {
            barrier_wait(empty + 8 * r.slot, r.round ^ 1);
            const uint32_t bar = full + 8 * r.slot, to = stages + r.slot * shape::stage_bytes;
            barrier_arrive_expect(bar, shape::stage_bytes);
            copy<shape::a_columns, shape::pair>(to, args.a_map, t.m, group.first + row, bar);
            copy<shape::b_columns, 1>(
                    to + shape::a_columns * column_bytes, args.b_map, t.n, group.first + row, bar);
        }
    }
    // Columns that so many CTAs share: each copies a part of the rows, to all.
    template <int columns, int sharers>
    __device__ __forceinline__ void copy(uint32_t to, const void *map, int x, int y, uint32_t bar) const {
        using namespace ptx;
        constexpr int part = stage_rows / sharers;
#pragma unroll
        for (int c = 0; c < columns; c++) {
            const uint32_t at = to + c * column_bytes;
            if constexpr (sharers > 1)
                tensor_copy_to(
                        (1 << sharers) - 1, at + rank * (part * 128), map, x + c * 64, y + rank * part, bar);
            else
                tensor_copy(at, map, x + c * 64, y, bar);
        }
    }

    // Signals that a warp has read a stage, to all CTAs that copy to it.
    __device__ __forceinline__ void tell_read(int slot) const {
        using namespace ptx;
        const int lane = threadIdx.x % 32;
        if constexpr (shape::pair > 1) {
            if (lane < shape::pair) cluster_barrier_arrive_relaxed(cluster_address(empty + 8 * slot, lane));
        } else if (lane == 0) {
            barrier_arrive(empty + 8 * slot);
        }
    }

    // Zeros instead of the rows from `rest` on, up to the next multiple of 16.
    __device__ __forceinline__ void clear_rows(uint32_t stage, int rest) const {
        using namespace ptx;
        constexpr int columns = shape::a_columns + shape::b_columns;
        const int chunks = (16 - rest % 16) * 8;
        for (int i = threadIdx.x % group_threads; i < chunks * columns; i += group_threads)
            store_zeros_16(stage + i / chunks * column_bytes + rest * 128 + i % chunks * 16);
        fence_for_copies();
        named_barrier(clear_barrier + threadIdx.x / group_threads - 1, group_threads);
    }

    using sums_t = float[shape::halves][shape::n / 2];

    template <bool f16>
    __device__ __forceinline__ void start(sums_t &sum, uint32_t a, uint32_t b, bool add) const {
#pragma unroll
        for (int h = 0; h < shape::halves; h++)
            wgmma::mma_rows<f16>(sum[h], a + h * (column_bytes / 16), b, add);
    }
    // The sums of a tile over so many rows. next_turn: the barrier of the consumer that may begin when all is
    // under way; 0: none.
    template <bool f16>
    __device__ __forceinline__ void multiply(ring &r, sums_t &sum, int rows, int next_turn) const {
        using namespace ptx;
        const uint32_t a = same_in_warp(wgmma::rows_descriptor(stages, column_bytes)),
                       b = same_in_warp(wgmma::rows_descriptor(
                               stages + shape::a_columns * column_bytes, column_bytes));
        constexpr int slot_step = shape::stage_bytes / 16;
        int before = -1, left = rows;
        for (; left >= stage_rows; left -= stage_rows, r.next()) {
            barrier_wait(full + 8 * r.slot, r.round);
            wgmma::fence();
#pragma unroll
            for (int i = 0; i < stage_rows / 16; i++)
                start<f16>(sum, a + r.slot * slot_step + i * wgmma::rows_step,
                        b + r.slot * slot_step + i * wgmma::rows_step, i > 0 || before >= 0);
            wgmma::commit();
            wgmma::wait<1>();
            if (before >= 0) tell_read(before);
            before = r.slot;
        }
        if (left > 0) {
            barrier_wait(full + 8 * r.slot, r.round);
            if (left % 16 > 0) clear_rows(stages + r.slot * shape::stage_bytes, left);
            uint32_t at = r.slot * slot_step;
            bool add = before >= 0;
#pragma unroll 1
            for (; left > 0; left -= 16, at += wgmma::rows_step, add = true) {
                wgmma::fence();
                start<f16>(sum, a + at, b + at, add);
                wgmma::commit();
            }
            wgmma::wait<1>();
            if (before >= 0) tell_read(before);
            before = r.slot;
            r.next();
        }
        if (next_turn) named_barrier_arrive(next_turn, consumers * group_threads);
        wgmma::wait<0>();
        if (before >= 0) tell_read(before);
    }
};

// A step through the stages of a tile that the other consumer multiplies.
template <int stages>
__device__ __forceinline__ void skip(packed::ring_t<stages> &r, int rows) {
    const int position = r.slot + (rows + stage_rows - 1) / stage_rows;
    r.round ^= position / stages & 1;
    r.slot = position % stages;
}

template <bool f16, int variant>
__global__ void __launch_bounds__(threads, 1) gradient(const __grid_constant__ mapped_args_t args) {
    using namespace ptx;
    using shape = shape_t<variant>;
    extern __shared__ __align__(1024) uint8_t shared[];
    auto &head = *reinterpret_cast<typename shape::head_t *>(shared);
    const sm90_gradient_args_t &g = args.g;
    const int rank = shape::pair > 1 ? int(cluster_rank()) : 0;
    const cta_t<shape> cta{args, head, shared_address(head.full), shared_address(head.empty),
            shared_address(shared) + shape::head_bytes, rank};
    if (threadIdx.x == 0) {
        prefetch_map(args.a_map);
        prefetch_map(args.b_map);
        for (int i = 0; i < shape::stages; i++) {
            barrier_init(cta.full + 8 * i, 1);
            barrier_init(cta.empty + 8 * i, shape::readers);
        }
        barrier_init_fence();
    }
    start_of_early_kernel();
    for (int i = threadIdx.x; i < int(g.groups.groups); i += threads) {
        const row_group_t all = g.groups.group(i);
        head.groups[i] = {int(all.first), int(g.groups.rows_that_count(i, all.count))};
    }
    __syncthreads();
    if constexpr (shape::pair > 1) cluster_sync(); // the barriers of the other CTA are initialised

    const tiles_t<shape> tiles(g);
    const int step = int(gridDim.x) / shape::pair, first = int(blockIdx.x) / shape::pair;
    packed::ring_t<shape::stages> ring;
    if (threadIdx.x < group_threads) {
        fewer_registers<producer_registers>();
        if (threadIdx.x == 0)
            for (int i = first; i < tiles.all; i += step) cta.produce(ring, tiles.tile(i, rank));
    } else {
        more_registers<consumer_registers>();
        const int consumer = same_in_warp(threadIdx.x / group_threads - 1);
        boxes_t<shape::v.boxes> boxes{g, args.to_map,
                cta.stages + shape::stages * shape::stage_bytes
                        + threadIdx.x % group_threads / 32 * shape::v.boxes * box_bytes};
        // Of this warp, and of the other consumer's that has the same boxes.
        const int warp = int(threadIdx.x - group_threads) / 32, boxes_turn = boxes_barrier + warp,
                  next_boxes_turn = boxes_barrier + (warp ^ 4);
        int turn = 0;
        for (int i = first; i < tiles.all; i += step, turn ^= 1) {
            const auto t = tiles.tile(i, rank);
            const int rows = same_in_warp(head.groups[t.group].rows);
            if (turn != consumer) {
                skip(ring, rows);
                continue;
            }
            // A tile is multiplied after the one before: a wait for a stage two rounds ahead would end at
            // once.
            if (i != first) named_barrier(turn_barrier + consumer, consumers * group_threads);
            typename cta_t<shape>::sums_t sum;
            const bool last = i + step >= tiles.all;
            cta.template multiply<f16>(ring, sum, rows, last ? 0 : turn_barrier + (consumer ^ 1));
            if (i != first) named_barrier(boxes_turn, 2 * 32);
#pragma unroll
            for (int h = 0; h < shape::halves; h++)
                boxes.template store<shape::n>(t.group, t.m + h * 64, t.n, rows == 0, sum[h]);
            boxes.wait();
            if (!last) named_barrier_arrive(next_boxes_turn, 2 * 32);
        }
    }
    if constexpr (shape::pair > 1) {
        __syncwarp();
        cluster_sync(); // no CTA may end before the last copy and arrival of the other
    }
}

} // namespace gradient
} // namespace cuda
} // namespace impl
} // namespace mxdnn
