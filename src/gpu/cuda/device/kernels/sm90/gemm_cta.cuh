// SPDX-License-Identifier: Apache-2.0
// What the warps of a CTA of gemm do: producers of weights, of rows and of factors of scales, and
// consumers, who multiply and finish.
#pragma once

#include "gpu/cuda/device/kernels/sm90/gemm_exact.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_multiply_fp8.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_pairs.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_ring.cuh"
#include "gpu/cuda/device/kernels/sm90/gemm_steps.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/packed/finish.cuh"
#include "gpu/cuda/device/ptx/come.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/copy_words.cuh"
#include "gpu/cuda/device/ptx/store.cuh"
#include "gpu/cuda/interface/sm90_gemm_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template <typename format, int width>
struct gemm_cta_t {
    using k = gemm_t;
    using format_t = format;
    using shared_t = gemm_shared_t<format, width>;
    using ring_t = packed::ring_t<shared_t::stages>;

    const matmul_args_t &args;
    float *parts;
    int64_t parts_stride;
    uint8_t *shared;
    uint32_t full, empty, seen, stages; // shared addresses
    panels_t<shared_t::panels> panel_map;
    int stage_begin, stage_end;
    int tiles; // tiles of K; the stages of further terms of the source have the same weights as those of the
               // first
    int k_part, pair_rank; // among the CTAs that share K; among a pair
    bool tiles_of_dst;

    __device__ __forceinline__ int tile_of(int stage) const {
        while (stage >= tiles) stage -= tiles;
        return stage;
    }

    // Of so many stages.
    __device__ __forceinline__ int whole_tiles(int stages) const {
        return format::one_step_tiles ? stages : stages >> args.tiling.tile_steps_shift;
    }

    // Prefetches the first weights of an item to L2.
    __device__ void prefetch_weights(int lane, const row_block_t &block, int panel_group) const {
        if (lane >= panel_map.slots(panel_group) || stage_begin >= min(stage_end, tiles)) return;
        const int64_t panel_bytes = args.tiling.panel_bytes,
                      tile_bytes = shared_t::stage_tiles * args.tiling.tile_bytes,
                      from = tile_bytes * whole_tiles(stage_begin),
                      bytes = min(tile_bytes * whole_tiles(min(shared_t::stages, stage_end - stage_begin)),
                              panel_bytes - from);
        ptx::bulk_prefetch(packed_of(args, block.expert) + args.prefix
                                   + panel_map.panel(panel_group, lane) * panel_bytes + from,
                uint32_t(bytes));
    }

    // Copies the weights of an item, every other stage. `position` counts the stages of all items before it.
    // With lone consumers one warp copies all stages, and the source rows, too.
    __device__ void produce_weights(const void *map, int warp, int lane, int position,
            const row_block_t &block, int panel_group) const {
        using namespace ptx;
        if constexpr (!format::one_step_tiles)
            return produce_steps(*this, warp, lane, position, block, panel_group);
        const int panels = panel_map.slots(panel_group),
                  tile_bytes = shared_t::stage_tiles * args.tiling.tile_bytes;
        const int64_t panel_bytes = args.tiling.panel_bytes;
        // The last tile may end early.
        const int last_bytes = panel_bytes - int64_t(tiles - 1) * tile_bytes;
        const uint8_t *weights = packed_of(args, block.expert) + args.prefix
                                 + panel_map.panel(panel_group, lane) * panel_bytes;
        const uint32_t to = stages + shared_t::src_bytes + lane * shared_t::slot_bytes,
                       read = full + shared_t::read_offset;
        if constexpr (shared_t::lone && shared_t::may_come) wait_for_rows(lane, block);
        int s = stage_begin + (warp + position) % shared_t::weight_warps;
        ring_t ring(position + s - stage_begin);
        for (; s < stage_end; s += shared_t::weight_warps) {
            const int tile = tile_of(s);
            const uint32_t bar = full + 8 * ring.slot;
            barrier_wait(read + 8 * ring.slot, ring.round ^ 1);
            const int bytes = tile == tiles - 1 ? last_bytes : tile_bytes;
            const uint8_t *from = weights + int64_t(tile) * tile_bytes;
            if (lane == 0) barrier_arrive_expect(bar, panels * bytes);
            __syncwarp();
            if (lane < panels) bulk_copy(to + ring.slot * shared_t::stage_bytes, from, bytes, bar);
            if constexpr (shared_t::lone) {
                if (lane == 0) {
                    const int boxes = shared_t::box_rows == width
                                              ? 1
                                              : (block.rows + shared_t::box_rows - 1) / shared_t::box_rows;
                    barrier_arrive_expect(bar, boxes * shared_t::box_bytes);
                    for (int b = 0; b < boxes; b++)
                        tensor_copy(stages + ring.slot * shared_t::stage_bytes + b * shared_t::box_bytes, map,
                                s * shared_t::stage_rows,
                                block.first - args.row_begin + b * shared_t::box_rows, bar);
                }
            }
            for (int i = 0; i < shared_t::weight_warps; i++) ring.next();
        }
    }
    // Waits until the rows of a block are there. Called by the warp that copies them.
    __device__ __forceinline__ void wait_for_rows(int lane, const row_block_t &block) const {
        if (!args.makers) return;
        for (int r = lane; r < block.rows; r += 32)
            ptx::wait_for_row(args.row_factors + (block.first + r - args.row_begin));
        __syncwarp();
        ptx::fence_with_copies();
    }
    // The factor of a row that is there. The first-level cache may have what was there before.
    __device__ __forceinline__ float factor_of(int m) const {
        if (shared_t::may_come && args.makers) return ptx::load_flag(args.row_factors + (m - args.row_begin));
        return row_factor_of(args, m);
    }
    // Called by one thread. It may copy rows of other blocks, which are never used. sharers: CTAs that have
    // the block; each copies a part of it to all.
    template <int sharers>
    __device__ void produce_rows(const void *map, int position, const row_block_t &block) const {
        using namespace ptx;
        wait_for_earlier_kernels();
        constexpr int box_rows = shared_t::box_rows;
        const int boxes = (block.rows + box_rows - 1) / box_rows;
        ring_t ring(position);
        for (int s = stage_begin; s < stage_end; s++, ring.next()) {
            const uint32_t bar = full + 8 * ring.slot, to = stages + ring.slot * shared_t::stage_bytes;
            barrier_wait(empty + 8 * ring.slot, ring.round ^ 1);
            barrier_arrive_expect(bar, boxes * shared_t::box_bytes);
            for (int b = sharers > 1 ? pair_rank : 0; b < boxes; b += sharers) {
                const uint32_t box = to + b * shared_t::box_bytes;
                const int row = block.first - args.row_begin + b * box_rows;
                if constexpr (sharers > 1)
                    tensor_copy_to((1 << sharers) - 1, box, map, s * shared_t::stage_rows, row, bar);
                else
                    tensor_copy(box, map, s * shared_t::stage_rows, row, bar);
            }
        }
    }

    // FP8: computes the facts about scales that consumers need and, with the last stage, the factors of rows.
    // Called by a warp, of several that share the panels.
    template <int warps>
    __device__ void look_at_scales(
            int warp, int lane, int position, int set, const row_block_t &block, int panel_group) const {
        using namespace ptx;
        using unit = typename shared_t::fp8_unit_t;
        constexpr int count = shared_t::panels / warps;
        const int panels = panel_map.slots(panel_group);
        typename unit::memory_t memory;
        ring_t ring(position);
        for (int s = stage_begin; s < stage_end; s++, ring.next()) {
            barrier_wait(full + 8 * ring.slot, ring.round);
            uint32_t panel[count];
            for (int p = 0; p < count; p++)
                panel[p] = stages + ring.slot * shared_t::stage_bytes + shared_t::src_bytes
                           + (warp * count + p) * shared_t::slot_bytes;
            unit::template look_at_scales<count>(
                    [&](uint32_t panel) -> auto & { return facts_of(panel); }, panel, warp *count, panels,
                    lane, {has_second_tile(s), s == stage_begin, s == stage_end - 1}, memory);
            if (args.row_factors && s == stage_end - 1 && warp == 0)
#pragma unroll 4
                for (int r = lane; r < block.rows; r += 32)
                    store_shared(factors_at(set) + r * 4, factor_of(block.first + r));
            barrier_arrive(seen + 8 * ring.slot);
        }
    }
    // FP8 computes every item, so that the sets alternate.
    __device__ __forceinline__ int factor_set(int item) const {
        if (shared_t::short_items || shared_t::may_come) return item % shared_t::factor_sets;
        return item / (int(gridDim.x) / shared_t::pair) % shared_t::factor_sets;
    }
    __device__ __forceinline__ uint32_t factors_at(int set) const {
        return full + shared_t::factors_offset + set * width * 4;
    }
    __device__ auto &facts_of(uint32_t panel) const {
        return *reinterpret_cast<typename shared_t::fp8_unit_t::facts_t *>(
                shared + (panel - ptx::shared_address(shared)) + shared_t::packed_bytes);
    }
    __device__ bool has_second_tile(int s) const { return s * shared_t::stage_rows + k::tile_rows < args.K; }

    static constexpr int panels_each = shared_t::panels_each;
    // The sums of a thread's panels: columns c and c + 8 of its warp's 16, rows r and r + 1 of every 8.
    using sums_t = float[panels_each][width / 2];

    // Signals that a warp has read a stage. All lanes arrive, so that the weight reads of each are known to
    // be over. If two CTAs share rows, which wgmma reads, one lane tells each of them, because more arrivals
    // would cost time. told: a base of the barriers that the lane arrives at, relative to `full`.
    __device__ __forceinline__ uint32_t told(uint32_t full) const {
        const uint32_t empty = full + shared_t::empty_offset;
        return shared_t::pair > 1 ? ptx::cluster_address(empty, threadIdx.x % shared_t::pair) : empty;
    }
    __device__ __forceinline__ void tell_read(int slot, uint32_t full, uint32_t told) const {
        using namespace ptx;
        barrier_arrive(full + shared_t::read_offset + 8 * slot);
        if constexpr (shared_t::pair > 1) {
            __syncwarp();
            if (threadIdx.x % 32 < shared_t::pair) cluster_barrier_arrive_relaxed(told + 8 * slot);
        }
    }

    // The part of a consumer in a block of at most `rows` rows. While its products run, other consumers
    // decode. Ends before a stage with weights that cannot be rounded; returns that stage, or the end.
    // panels: the number of panels that exist.
    template <int rows>
    __device__ __forceinline__ int multiply(
            ring_t &ring, sums_t &sum, int stage_begin, [[maybe_unused]] int panels) const {
        using namespace ptx;
        if (stage_begin == stage_end) return stage_end;
        const int consumer = threadIdx.x / k::group - 1, thread = threadIdx.x % k::group;
        const place_t place = format::place(thread, args.tiling);
        const uint32_t own = stages + shared_t::src_bytes + consumer * panels_each * shared_t::slot_bytes,
                       first_b = __shfl_sync(~0u, wgmma::b_descriptor(stages), 0);
        uint32_t scales_at = own + place.scales, codes_at = own + place.codes;
        uint32_t full = this->full;
        asm(""
                : "+r"(scales_at), "+r"(codes_at),
                "+r"(full)); // otherwise the compiler computes them again for every stage
        const uint32_t told = this->told(full);
        // A step of 64 rows with codes for 32 only.
        const int rest = args.K % k::tile_rows,
                  short_step = rest && rest <= k::tile_rows / 2 ? args.K / k::tile_rows : -1;
        constexpr int slots = shared_t::stages;
        const auto next = [](int slot) { return slot == slots - 1 ? 0 : slot + 1; };

        typename format::raw_t raw[panels_each];
        int round = ring.round; // round of the stage that is read next
        [[maybe_unused]] const auto reads = [&] {
            if constexpr (is_rounded<format>)
                return typename format::reads_t(thread, args.tiling);
            else
                return 0;
        }();
        const auto read = [&](int s, int slot) {
#pragma unroll
            for (int p = 0; p < panels_each; p++) {
                const uint32_t at = slot * shared_t::stage_bytes + p * shared_t::slot_bytes;
                const shared_reader_t scales{scales_at + at}, codes{codes_at + at};
                if constexpr (is_rounded<format>)
                    raw[p] = format::load(own + at, reads, args.tiling);
                else if constexpr (format::bits == 8)
                    raw[p] = format::load(scales, codes, args.tiling, tile_of(s) != short_step);
                else
                    raw[p] = format::load(scales, codes, args.tiling);
            }
            if (slot == slots - 1) round ^= 1;
        };
        // Counted in units of a stage: its panels, or halves of its only panel. The first unit is decoded
        // ahead.
        constexpr bool ahead = shared_t::decodes_ahead;
        static_assert(!ahead || panels_each == 1, "halves");
        constexpr int units = ahead ? 2 : panels_each, steps = k::tile_rows / 16 * panels_each / units;
        uint32_t a[units][steps][4];
        const auto decode = [&](int unit) {
            const int p = ahead ? 0 : unit, step = ahead ? unit * steps : 0;
#pragma unroll
            for (int i = 0; i < steps; i++) format::template decode<false>(a[unit][i], raw[p], step + i);
            if constexpr (is_rounded<format>)
                return;
            else if (__builtin_expect(__any_sync(~0u, format::special(raw[p]) != 0), 0)) {
#pragma unroll
                for (int i = 0; i < steps; i++) format::template decode<true>(a[unit][i], raw[p], step + i);
            }
        };
        // More rows than one wgmma takes are divided into two parts.
        constexpr int first_rows = width <= 256 ? rows : width / 2;
        const auto start = [&](int unit, uint32_t b) {
            const int p = ahead ? 0 : unit;
            if (ahead) b += unit * steps * wgmma::b_step;
            wgmma::fence();
#pragma unroll
            for (int i = 0; i < steps; i++)
                if constexpr (is_f16<format>)
                    wgmma::mma_f16<first_rows>(sum[p], a[unit][i], b + i * wgmma::b_step);
                else
                    wgmma::mma<first_rows>(sum[p], a[unit][i], b + i * wgmma::b_step);
            if constexpr (first_rows < rows) {
#pragma unroll
                for (int i = 0; i < steps; i++)
                    wgmma::mma<rows - first_rows>(sum[p] + first_rows / 2, a[unit][i],
                            b + first_rows * (k::src_row_bytes / 16) + i * wgmma::b_step);
            }
            wgmma::commit();
        };
        // Multiplies a stage, `left` stages before the end, which has been read. Reads the next stage, if
        // there is one.
        const auto stage = [&](auto in_slot, int left) {
            const int slot = in_slot, then = next(slot);
#pragma unroll
            for (int unit = 0; unit < units; unit++) {
                if (unit > 0 || !ahead) decode(unit);
                start(unit,
                        first_b + slot * (shared_t::stage_bytes / 16)); // there is no carry into other fields
            }
            if constexpr (ahead) {
                wgmma::wait<1>();
                wgmma::keep(a[0]);
            }
            const bool more = left > 1;
            if (more) {
                barrier_wait(full + 8 * then, round);
                read(stage_end - left + 1, then);
                if constexpr (ahead) decode(0);
            }
            wgmma::wait<0>();
#pragma unroll
            for (int unit = 0; unit < units; unit++) wgmma::keep(a[unit]);
            tell_read(slot, full, told);
            return more;
        };
        int slot = ring.slot, left = stage_end - stage_begin;
        if constexpr (!is_rounded<format>) {
            ring.round ^= (slot + left) / slots & 1;
            ring.slot = (slot + left) % slots;
        }
        barrier_wait(full + 8 * slot, round);
        read(stage_begin, slot);
        if constexpr (ahead) decode(0);
        if constexpr (is_rounded<format>) {
            // All warps of a consumer see the same.
            const auto special = [&] {
                uint32_t bits = 0;
                for (int p = 0; p < panels_each; p++)
                    if (p < panels) bits |= format::special(raw[p]);
                return __any_sync(~0u, bits != 0);
            };
            while (left > 0 && !special()) stage(slot, left--), slot = next(slot);
            const int past = ring.slot + stage_end - left - stage_begin;
            ring.round ^= past / slots & 1;
            ring.slot = past % slots;
        } else if constexpr (shared_t::unrolls) {
            in_slots<slots>(stage, slot, left);
        } else {
            for (; stage(slot, left); left--) slot = next(slot);
        }
        return is_rounded<format> ? stage_end - left : stage_end;
    }

    __device__ __forceinline__ void finish(sums_t &sum, const row_block_t &block, int panel_group) const {
        using namespace ptx;
        const int consumer = threadIdx.x / k::group - 1, thread = threadIdx.x % k::group;
        const int column = thread / 32 * 16 + thread % 32 / 4, row = thread % 4 * 2;
        if (!shared_t::may_come && parts) {
            const int64_t stride = parts_stride;
            float *to =
                    parts + (int64_t(k_part) * args.M + block.first - args.row_begin + row) * stride + column;
#pragma unroll
            for (int p = 0; p < panels_each; p++) {
                const int slot = consumer * panels_each + p;
                if (slot >= panel_map.slots(panel_group)) break;
                float *at = to + panel_map.panel(panel_group, slot) * k::panel_columns;
#pragma unroll
                for (int i = 0; i < width / 2; i += 4, at += 8 * stride) {
                    if (row + i * 2 < block.rows) at[0] = sum[p][i], at[8] = sum[p][i + 2];
                    if (row + i * 2 + 1 < block.rows)
                        at[stride] = sum[p][i + 1], at[stride + 8] = sum[p][i + 3];
                }
            }
            return;
        }
        if (tiles_of_dst) {
#pragma unroll
            for (int p = 0; p < panels_each; p++) {
                const int first = panel_map.panel(panel_group, consumer * panels_each + p) * k::panel_columns;
                if constexpr (shared_t::fp8) {
                    if (args.activation == activation_t::gated_pairs) {
                        store_pairs(*this, sum[p], block, consumer, first);
                        continue;
                    }
                }
                store_tiles(sum[p], block, consumer, first);
            }
            return;
        }
        const int team = consumer / shared_t::team_groups,
                  member = int(threadIdx.x - k::group) % shared_t::team;
        float *out = reinterpret_cast<float *>(shared + (stages - shared_address(shared))
                                               + shared_t::stages * shared_t::stage_bytes
                                               + team * shared_t::out_bytes);
        const int own = consumer % shared_t::team_groups * k::panel_columns + column;
        const int quads = panel_map.quads() / shared_t::teams, quad = member % quads;
        const columns_t columns(args, block.expert, panel_map.column(panel_group, team * quads + quad),
                format::sum_scale, false);
        const int up = panel_map.up ? k::panel_columns : 0; // from the sum of a gate to the sum that it gates
        // One loop with little code. Only code that names registers is repeated for every part.
#pragma unroll 1
        for (int r0 = 0; r0 < block.rows; r0 += k::rows_out) {
#pragma unroll
            for (int part = 0; part < width; part += k::rows_out) {
                if (r0 != part) continue;
#pragma unroll
                for (int p = 0; p < panels_each; p++)
#pragma unroll
                    for (int i = 0; i < k::rows_out / 2; i++)
                        if (part / 2 + i < width / 2)
                            out[(i / 4 * 8 + row + i % 2) * shared_t::out_pitch + p * k::panel_columns + own
                                    + i % 4 / 2 * 8] = sum[p][(part / 2 + i) % (width / 2)];
            }
            named_barrier(k::team_barrier + team, shared_t::team);
            constexpr int at_once = 2; // rows_out is a multiple of this many steps
            // Three panels have more members for one of gates than a step has rows.
            const int r_step = shared_t::lone ? min(shared_t::team / quads, k::rows_out / at_once)
                                              : shared_t::team / quads,
                      end = min(k::rows_out, block.rows - r0);
            for (int r = member / quads; r < end; r += at_once * r_step) {
                if (shared_t::lone && member / quads >= r_step) break;
                const float *at = out + r * shared_t::out_pitch + panel_map.slot_column(quad);
                columns.template store<at_once>(args, block.first + r0 + r, r_step, block.first + r0 + end,
                        at, at + up, r_step * shared_t::out_pitch);
            }
            named_barrier(k::team_barrier + team, shared_t::team);
        }
    }

    // The buffer for results of a consumer that are stored as whole rows.
    __device__ __forceinline__ uint32_t tile_of_results(int consumer) const {
        return stages + shared_t::stages * shared_t::stage_bytes + consumer * shared_t::tile_bytes;
    }

    // Stores the sums of a panel, 64 rows at a time, through shared memory to whole rows of dst.
    __device__ __forceinline__ void store_tiles(
            float (&sum)[width / 2], const row_block_t &block, int consumer, int first_column) const {
        using namespace ptx;
        const int thread = threadIdx.x % k::group, warp = thread / 32, lane = thread % 32;
        const uint32_t tile = tile_of_results(consumer);
        const bool plain = format::sum_scale == 1.f && !args.expert_alpha && !args.prefix && !args.src_global
                           && args.bias_type == value_type_t::none;
        if (!plain) {
            const int column = first_column + warp * 16 + lane / 4;
            const sum_scale_t scale(args, block.expert, format::sum_scale);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float bias = args.bias_type != value_type_t::none && column + 8 * i < args.N
                                           ? load_value(args.bias, args.bias_type,
                                                   block.expert * args.bias_stride + column + 8 * i)
                                           : 0.f;
#pragma unroll
                for (int r = 0; r < width / 2; r += 4)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        float &v = sum[r + 2 * i + j];
                        v = v * scale.sum * scale.expert + bias;
                    }
            }
        }
        // Lane l of stmatrix has the address of row l % 8 of matrix l / 8: columns 0 and 8, then rows 8 on.
        const uint32_t put =
                tile + (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ lane % 8) * 16;
        const int row = thread / 8, chunk = thread % 8;
        const shared_reader_t take{tile + row * 128 + (chunk ^ row % 8) * 16};
        auto *to = static_cast<__nv_bfloat16 *>(args.dst) + int64_t(block.first + row) * args.dst_stride
                   + first_column + chunk * 8 - args.dst_first;
        const bool valid = first_column + chunk * 8 < min(args.N, args.panel_end * k::panel_columns);
#pragma unroll
        for (int first = 0; first < width; first += 64) {
            if (first >= block.rows) break;
            named_barrier(k::group_barrier + consumer, k::group); // the previous tile has been read
#pragma unroll
            for (int r = first; r < first + 64 && r < width; r += 16) {
                uint32_t m[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float *v = sum + r / 2 + i * 2;
                    m[i] = to_bf16x2(v[0], v[1]);
                }
                store_matrix_4_transposed(put + (r - first) * 128, m);
            }
            named_barrier(k::group_barrier + consumer, k::group);
            // All are read before the first is stored, which hides their latency.
            constexpr int each = k::group / 8, most = 64 / each;
            uint4 v[most];
#pragma unroll
            for (int i = 0; i < most; i++)
                if (first + i * each < width) v[i] = take.read_16(i * each * 128);
#pragma unroll
            for (int i = 0; i < most; i++)
                if (first + i * each < width)
                    store_16(to + int64_t(first + i * each) * args.dst_stride, v[i],
                            valid && first + i * each + row < block.rows);
        }
    }

    // A consumer without a panel does this: multiplying unused data would take power from the others.
    __device__ __forceinline__ void rest(ring_t &ring) const {
        for (int s = stage_begin; s < stage_end; s++, ring.next()) {
            ptx::barrier_wait(full + 8 * ring.slot, ring.round);
            tell_read(ring.slot, full, told(full));
        }
    }

    // The widths of blocks.
    template <int rows>
    __device__ __forceinline__ int multiply_as_wide(
            ring_t &ring, sums_t &sum, int block_rows, int stage_begin, int panels) const {
        constexpr int less = shared_t::narrower(rows);
        if constexpr (less > 0) {
            if (block_rows <= less) return multiply_as_wide<less>(ring, sum, block_rows, stage_begin, panels);
        }
        if constexpr (shared_t::fp8) {
            multiply_fp8<rows>(*this, ring, sum);
            return stage_end;
        } else {
            return multiply<rows>(ring, sum, stage_begin, panels);
        }
    }
    // The same, with weights that cannot be rounded.
    __device__ __forceinline__ void multiply_all(
            ring_t &ring, sums_t &sum, int block_rows, int panels) const {
        if constexpr (!is_rounded<format>) {
            multiply_as_wide<width>(ring, sum, block_rows, stage_begin, panels);
            return;
        } else {
            for (int s = stage_begin;; s++, ring.next()) {
                s = multiply_as_wide<width>(ring, sum, block_rows, s, panels);
                if (s == stage_end) return;
                const uint32_t source = stages + ring.slot * shared_t::stage_bytes,
                               own = (threadIdx.x / k::group - 1) * panels_each * shared_t::slot_bytes;
#pragma unroll
                for (int p = 0; p < panels_each; p++)
                    add_exact<format>(sum[p], source + shared_t::src_bytes + own + p * shared_t::slot_bytes,
                            source, args.tiling, args.K - tile_of(s) * k::tile_rows);
                tell_read(ring.slot, full, told(full));
            }
        }
    }
    __device__ __forceinline__ void consume(
            ring_t &ring, int item, const row_block_t &block, int panel_group) const {
        using namespace ptx;
        // Factors of rows arrive while products run.
        if (args.row_factors && !shared_t::searches) {
            wait_for_earlier_kernels();
            const int consumer = threadIdx.x / k::group - 1;
            named_barrier(
                    k::group_barrier + consumer, k::group); // those of the previous block are no longer used
            for (int r = threadIdx.x % k::group; r < block.rows; r += k::group) {
                if constexpr (shared_t::by_blocks) {
                    store_shared(factors_at(consumer) + r * 4, row_factor_of(args, block.first + r));
                } else {
                    const int row = source_row_of(args, block.first + r);
                    const uint32_t to = factors_at(consumer) + r * 4;
                    if (row < 0)
                        store_shared(to, 1.f);
                    else
                        copy_4(to, args.row_factors + row);
                }
            }
        }
        sums_t sum;
#pragma unroll
        for (int p = 0; p < panels_each; p++)
#pragma unroll
            for (int i = 0; i < width / 2; i++) sum[p][i] = 0.f;
        // From lane 0, so that the compiler knows that all lanes of a warp take the same branch.
        const int consumer = __shfl_sync(~0u, int(threadIdx.x) / k::group - 1, 0);
        if (shared_t::short_items && consumer >= panel_map.slots(panel_group))
            rest(ring);
        else
            multiply_all(ring, sum, block.rows, panel_map.slots(panel_group) - consumer * panels_each);
        if (args.row_factors && stage_begin < stage_end) {
            int thread = threadIdx.x;
            asm volatile(""
                         : "+r"(thread)); // prevents registers with derived values from being kept meanwhile
            const int consumer = thread / k::group - 1;
            // Where warps search scales they came with the last stage. Those of other types than FP8 are
            // nearly all 1.
            bool scaled = true;
            if constexpr (shared_t::by_blocks) {
                named_barrier(k::group_barrier + consumer, k::group);
            } else if constexpr (!shared_t::fp8) {
                copies_wait();
                bool own_scaled = false;
                for (int r = thread % k::group; r < block.rows; r += k::group)
                    own_scaled |=
                            __uint_as_float(shared_reader_t{factors_at(consumer) + r * 4}.read_4()) != 1.f;
                scaled = named_barrier_any(k::group_barrier + consumer, k::group, own_scaled);
            }
            const uint32_t own =
                    factors_at(shared_t::searches ? factor_set(item) : consumer) + thread % 4 * 2 * 4;
            if (scaled)
#pragma unroll
                for (int r = 0; r < width; r += 8) {
                    const uint2 f = shared_reader_t{own}.read_8(r * 4);
#pragma unroll
                    for (int i = 0; i < 4; i++)
#pragma unroll
                        for (int p = 0; p < panels_each; p++)
                            sum[p][r / 2 + i] *= __uint_as_float(i % 2 ? f.y : f.x);
                }
        }
        if constexpr (!shared_t::may_come) wait_for_earlier_kernels();
        finish(sum, block, panel_group);
    }
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
