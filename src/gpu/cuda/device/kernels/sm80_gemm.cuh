// SPDX-License-Identifier: Apache-2.0
// The matmul of the Hopper kernels' formats, lists and epilogues with instructions that every device from
// sm_80 on has: mma.sync, ldmatrix and asynchronous copies of 16 bytes.
//
// A CTA takes a panel of 64 columns, or a gate's and that of what it gates one after the other, and a block
// of up to 8 * row_tiles rows of the source. Its four teams of four warps divide K, a tile of 64 rows each in
// turn; a warp has 16 columns. Weights go from global memory, where they lie in the order of fragments, to
// registers, some tiles before they are decoded. The source comes through a ring of stages in shared memory,
// a tile for each team. The teams' sums add up in shared memory, in fixed order.
#pragma once

#include "gpu/cuda/device/mma/mma_sync.cuh"
#include "gpu/cuda/device/mma/unscaled_sums.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

struct sm80_gemm_t {
    static constexpr int teams = 4, team_warps = 4, team = team_warps * 32, threads = teams * team;
    static constexpr int tile_rows = 64, stage_rows = teams * tile_rows;
    // A row of the source in a tile. It is 16 bytes longer than its values, so that the eight rows of an
    // ldmatrix are in different banks. For the same reason sums have four columns more than two panels.
    static constexpr int src_pitch = tile_rows * 2 + 16, sum_pitch = 2 * panel_columns + 4;
    static constexpr int shared_bytes = 99 * 1024; // every device has this much
};

template <typename format_, int row_tiles_>
struct sm80_gemm_variant_t {
    using format = format_;
    using k = sm80_gemm_t;
    static constexpr int row_tiles = row_tiles_, rows = 8 * row_tiles;
    // The number of weight tiles that are in flight for a warp. With few rows there is little other work.
    static constexpr int ahead = row_tiles == 1 ? 2 : 1;
    static constexpr int list_bytes = (int(sizeof(work_list_t)) + 15) / 16 * 16;
    static constexpr int sum_bytes = rows * k::sum_pitch * 4, stage_bytes = k::teams * rows * k::src_pitch;
    static constexpr int fit = (k::shared_bytes - list_bytes - sum_bytes) / stage_bytes,
                         stages = fit < 4 ? fit : 4;
    static constexpr int bytes = list_bytes + sum_bytes + stages * stage_bytes;
    static_assert(stages >= 2, "one is filled while another is read");
};

template <typename variant>
__global__ void __launch_bounds__(sm80_gemm_t::threads, 1)
        sm80_gemm(const __grid_constant__ matmul_args_t args) {
    using namespace ptx;
    using k = sm80_gemm_t;
    using format = typename variant::format;
    using raw_t = typename format::raw_t;
    constexpr int rows = variant::rows, row_tiles = variant::row_tiles, stages = variant::stages;
    extern __shared__ __align__(128) uint8_t shared[];
    work_list_t &list = *reinterpret_cast<work_list_t *>(shared);
    float *const sums = reinterpret_cast<float *>(shared + variant::list_bytes);
    const uint32_t ring = shared_address(shared) + variant::list_bytes + variant::sum_bytes;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, team = warp / k::team_warps,
              quarter = warp % k::team_warps;

    const panels_t<2> panel_map(args);
    const int slots = panel_map.slots_of(1), units = panel_map.units();
    const auto wanted = [&](int unit) {
        bool any = !args.wanted;
        for (int slot = 0; !any && slot < slots; slot++)
            any = args.wanted[panel_map.panel_from(unit, slot)] != 0;
        return any;
    };
    bool any = false;
    for (int unit = int(threadIdx.x); unit < units && !any; unit += k::threads) any = wanted(unit);
    if (!__syncthreads_or(any)) return;
    const int terms = args.src_terms;
    list.build(args, rows / terms);
    const int tiles_all = (args.K + k::tile_rows - 1) / k::tile_rows,
              stages_all = (tiles_all + k::teams - 1) / k::teams;
    const int items = list.shares(args) * units;

    // The weights of a tile that belong to this thread.
    const tiling_t &t = args.tiling;
    const int shift = format::one_step_tiles ? 0 : t.tile_steps_shift;
    const place_t place = format::place(int(threadIdx.x) % k::team, t);
    constexpr int step_bytes = k::tile_rows * panel_columns * format::bits / 8;
    // A tile with codes for 32 rows only.
    const int rest = args.K % k::tile_rows,
              short_tile = rest && rest <= k::tile_rows / 2 ? args.K / k::tile_rows : -1;
    const auto load = [&](const uint8_t *panel, int tile) {
        const uint8_t *from = panel + int64_t(tile >> shift) * t.tile_bytes;
        const stream_reader_t scales{from + place.scales},
                codes{from + place.codes + (tile & ((1 << shift) - 1)) * step_bytes};
        if constexpr (format::bits == 8)
            return format::load(scales, codes, t, tile != short_tile);
        else
            return format::load(scales, codes, t);
    };

    // A warp copies the 256 columns of a row in a stage, 16 bytes per lane.
    constexpr int warps = k::threads / 32, copies = (rows + warps - 1) / warps;
    const uint32_t copy_to = ring + lane / 8 * (rows * k::src_pitch) + lane % 8 * 16;
    const uint32_t source_at = ring + (team * rows + lane % 8) * k::src_pitch + lane / 8 * 16;

    for (int item = blockIdx.x; item < items; item += gridDim.x) {
        const int unit = item % units;
        if (!wanted(unit)) continue;
        const row_block_t block = list.block(args, item / units, 1);
        const int block_rows = block.rows * terms;
        const uint8_t *source[copies];
        uint32_t there = 0;
#pragma unroll
        for (int j = 0; j < copies; j++) {
            const int r = warp + j * warps, of = r / terms,
                      row = r < block_rows ? source_row_of(args, block.first + of) : -1;
            if (row >= 0) there |= 1u << j;
            source[j] = static_cast<const uint8_t *>(args.src)
                        + (max(row, 0) * args.src_stride + (r - of * terms) * (args.src_stride / terms)
                                  + lane * 8)
                                  * 2;
        }
        const auto start_source = [&](int s) {
            const bool inside = s * k::stage_rows + lane * 8 < args.K;
#pragma unroll
            for (int j = 0; j < copies; j++) {
                const int r = warp + j * warps;
                if (r >= (block_rows + 7) / 8 * 8) break; // only rows that are multiplied
                const bool valid = inside && (there >> j & 1);
                copy_16(copy_to + s % stages * variant::stage_bytes + r * k::src_pitch,
                        source[j] + (valid ? s * (k::stage_rows * 2) : 0), valid);
            }
        };
        const auto panel_of = [&](int slot) {
            return packed_of(args, block.expert) + args.prefix
                   + panel_map.panel_from(unit, slot) * int64_t(t.panel_bytes);
        };
        for (int slot = 0; slot < slots; slot++) {
            const uint8_t *panel = panel_of(slot);
            raw_t next[variant::ahead];
#pragma unroll
            for (int i = 0; i < variant::ahead; i++)
                if (i * k::teams + team < tiles_all) next[i] = load(panel, i * k::teams + team);
            for (int s = 0; s < stages - 1; s++) {
                if (s < stages_all) start_source(s);
                copies_commit();
            }
            float sum[row_tiles][4] = {};
            for (int s = 0; s < stages_all; s++) {
                copies_wait_but<stages - 2>();
                __syncthreads(); // this stage has arrived, and the previous one has been read
                if (s + stages - 1 < stages_all) start_source(s + stages - 1);
                copies_commit();
                const int tile = s * k::teams + team;
                if (tile >= tiles_all) continue;
                const raw_t raw = next[0];
#pragma unroll
                for (int i = 1; i < variant::ahead; i++) next[i - 1] = next[i];
                if (tile + variant::ahead * k::teams < tiles_all)
                    next[variant::ahead - 1] = load(panel, tile + variant::ahead * k::teams);
                const uint32_t from = source_at + s % stages * variant::stage_bytes;
                const auto has = [&](int r) { return row_tiles == 1 || r * 8 < block_rows; };
                const auto multiply = [&](auto any) {
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        if constexpr (has_unscaled<format>) {
                            add_unscaled<format, decltype(any)::value, row_tiles>(
                                    sum, raw, half, args.K - tile * k::tile_rows,
                                    [&](int r, uint32_t(&b)[4]) {
                                        load_matrix_4(b, from + r * 8 * k::src_pitch + half * 64);
                                    },
                                    has);
                        } else {
                            uint32_t b[row_tiles][4];
#pragma unroll
                            for (int r = 0; r < row_tiles; r++)
                                if (has(r)) load_matrix_4(b[r], from + r * 8 * k::src_pitch + half * 64);
#pragma unroll
                            for (int i = 0; i < 2; i++) {
                                uint32_t a[4];
                                format::template decode<decltype(any)::value>(a, raw, half * 2 + i);
#pragma unroll
                                for (int r = 0; r < row_tiles; r++)
                                    if (has(r)) mma_bf16(sum[r], a, b[r][i * 2], b[r][i * 2 + 1]);
                            }
                        }
                    }
                };
                if (__any_sync(~0u, format::special(raw) != 0))
                    multiply(std::true_type());
                else
                    multiply(std::false_type());
            }
            // Lanes have columns lane / 4 and lane / 4 + 8 of the 16 of their warp, and two rows of every
            // eight.
            float *own = sums + lane % 4 * 2 * k::sum_pitch + slot * panel_columns + quarter * 16 + lane / 4;
            for (int turn = 0; turn < k::teams; turn++) {
                if (team == turn) {
#pragma unroll
                    for (int r = 0; r < row_tiles; r++)
#pragma unroll
                        for (int i = 0; i < 4; i++) {
                            float &to = own[(r * 8 + i % 2) * k::sum_pitch + i / 2 * 8];
                            to = turn == 0 ? sum[r][i] : to + sum[r][i];
                        }
                }
                __syncthreads();
            }
        }
        constexpr int quads = panel_columns / 4, rows_at_once = k::threads / quads;
        const int quad = int(threadIdx.x) % quads;
        const columns_t columns(args, block.expert, panel_map.column_from(unit, quad), format::sum_scale);
        for (int row = int(threadIdx.x) / quads; row < block.rows; row += rows_at_once) {
            const auto sum_at = [&](int column) {
                const float *at = sums + row * terms * k::sum_pitch + column;
                float4 v = *reinterpret_cast<const float4 *>(at);
                for (int term = 1; term < terms; term++) {
                    const float4 o = *reinterpret_cast<const float4 *>(at + term * k::sum_pitch);
                    v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
                }
                return v;
            };
            const float4 v = sum_at(quad * 4), up = slots == 2 ? sum_at(panel_columns + quad * 4) : v;
            const int m = block.first + row;
            columns.template store<1>(args, m, 1, m + 1, &v.x, &up.x, 0);
        }
        __syncthreads(); // the sums have been read
    }
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
