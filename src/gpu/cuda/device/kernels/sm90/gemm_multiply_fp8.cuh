// SPDX-License-Identifier: Apache-2.0
// What a consumer of gemm does with the stages of an item at the rate of FP8.
#pragma once

#include <type_traits>

#include "gpu/cuda/device/kernels/sm90/gemm_shared.cuh"
#include "gpu/cuda/device/mma/wgmma.cuh"
#include "gpu/cuda/device/ptx/ahead.cuh"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template <typename format, int width>
struct gemm_cta_t;

// A consumer's first panel in the first stage.
template <typename format, int width>
__device__ __forceinline__ uint32_t first_panel_of(const gemm_cta_t<format, width> &cta) {
    using shared_t = gemm_shared_t<format, width>;
    const int consumer = threadIdx.x / gemm_t::group - 1;
    return cta.stages + shared_t::src_bytes + consumer * shared_t::panels_each * shared_t::slot_bytes;
}

// From codes with the scales of their blocks, which warps of the producer have looked at.
template <int rows, typename format, int width>
__device__ __forceinline__ void multiply_units(const gemm_cta_t<format, width> &cta,
        typename gemm_cta_t<format, width>::ring_t &ring, typename gemm_cta_t<format, width>::sums_t &sum) {
    using namespace ptx;
    using k = gemm_t;
    using shared_t = gemm_shared_t<format, width>;
    using unit = typename shared_t::fp8_unit_t;
    const int thread = threadIdx.x % k::group;
    // From lane 0 it is in a register that the producer does not use. Its own would be kept in memory where
    // its registers are few, and ptxas would serialise products (C7511).
    const uint32_t own = first_panel_of(cta),
                   full = shared_t::widest_three ? __shfl_sync(~0u, cta.full, 0) : cta.full,
                   tables = full + shared_t::tables_offset;
    typename unit::part_t part;
    unit::begin(part);
#pragma unroll 1
    for (int s = cta.stage_begin; s < cta.stage_end; s++, ring.next()) {
        barrier_wait(cta.seen + 8 * ring.slot, ring.round);
        // From lane 0, so that the compiler knows it is the same in all lanes. Otherwise every wgmma
        // moves its descriptor.
        const uint32_t b =
                __shfl_sync(~0u, wgmma::b_descriptor(cta.stages + ring.slot * shared_t::stage_bytes), 0);
#pragma unroll
        for (int p = 0; p < shared_t::panels_each; p++) {
            const uint32_t panel = own + ring.slot * shared_t::stage_bytes + p * shared_t::slot_bytes;
            const uint32_t facts = panel + shared_t::packed_bytes;
            if (__builtin_expect(unit::facts_t::is_one_by_one(facts), 0)) {
                unit::template multiply_one_by_one<rows>(
                        sum[p], part, panel, b, thread, cta.has_second_tile(s));
            } else {
                typename unit::unit_t a;
                unit::template decode_and_multiply_all<rows>(
                        sum[p], part, a, facts, tables, panel, b, thread);
                wgmma::keep(a);
            }
        }
        unit::template keep_apart<rows>();
        cta.tell_read(ring.slot, cta.full, cta.told(cta.full));
        unit::template keep_apart<rows>();
    }
    unit::template keep_apart<rows>();
}

// Consumers that start their products in turn, once in each stage: one decodes while another multiplies.
// `last` ends the turn of nobody in the beginning, and consumer 0 takes the one that is left in the end.
template <bool exists_, int consumers>
struct turn_t {
    static constexpr bool exists = exists_;
    static constexpr int last = consumers - 1;
    int consumer;
    __device__ __forceinline__ void begin() const {
        if constexpr (exists) ptx::named_barrier(gemm_t::turn_barrier + consumer, 2 * gemm_t::group);
    }
    __device__ __forceinline__ void end() const {
        if constexpr (exists)
            ptx::named_barrier_arrive(
                    gemm_t::turn_barrier + (consumer == last ? 0 : consumer + 1), 2 * gemm_t::group);
    }
};
template <typename format, int width>
using turn_of = turn_t<gemm_shared_t<format, width>::turns, gemm_shared_t<format, width>::consumer_groups>;

// The same with sums that stay in the tensor cores.
template <int rows, typename format, int width>
__device__ __forceinline__ void multiply_kept(const gemm_cta_t<format, width> &cta,
        typename gemm_cta_t<format, width>::ring_t &ring, typename gemm_cta_t<format, width>::sums_t &sum) {
    using namespace ptx;
    using k = gemm_t;
    using shared_t = gemm_shared_t<format, width>;
    using unit = typename shared_t::fp8_unit_t;
    static_assert(shared_t::panels_each == 1, "a unit is a stage");
    const int thread = threadIdx.x % k::group;
    // From lane 0, as above.
    const uint32_t own = first_panel_of(cta), full = __shfl_sync(~0u, cta.full, 0), told = cta.told(full),
                   seen = full + (cta.seen - cta.full);
    const auto panel = [&] { return own + ring.slot * shared_t::stage_bytes; };
    const auto b = [&] {
        return __shfl_sync(~0u, wgmma::b_descriptor(cta.stages + ring.slot * shared_t::stage_bytes), 0);
    };
    turn_of<format, width> turn{0};
    if constexpr (shared_t::turns) turn.consumer = __shfl_sync(~0u, int(threadIdx.x) / k::group - 1, 0);
    float2 units = make_float2(1.f, 1.f);
    int s = cta.stage_begin;
#pragma unroll 1
    for (; s < cta.stage_end; s++, ring.next()) {
        barrier_wait(seen + 8 * ring.slot, ring.round);
        const uint32_t source = b(), facts = panel() + shared_t::packed_bytes;
        const kept_mode_t mode = unit::mode(facts);
        if (__builtin_expect(mode != kept_goes_on, 0)) {
            unit::template scale<rows / 2>(sum[0], unit::changes(facts, thread));
            if (mode == kept_one_by_one) break;
        }
        if (s == cta.stage_end - 1) units = unit::units(facts, thread);
        unit::template multiply_all<rows>(sum[0], facts, panel(), source, thread, turn);
        cta.tell_read(ring.slot, full, told);
    }
    // In a loop of its own, because ptxas would serialise products (C7511).
#pragma unroll 1
    for (; s < cta.stage_end; s++, ring.next()) {
        barrier_wait(seen + 8 * ring.slot, ring.round);
        typename unit::part_t part;
        unit::begin(part);
        turn.begin();
        turn.end();
        unit::template multiply_one_by_one<rows>(sum[0], part, panel(), b(), thread, cta.has_second_tile(s));
        cta.tell_read(ring.slot, full, told);
    }
    unit::template scale<rows / 2>(sum[0], units);
}

// From codes without scales: the sums of each block of K meet them. A block is decoded while the one before
// is multiplied.
template <int rows, typename format, int width>
__device__ __forceinline__ void multiply_blocks(const gemm_cta_t<format, width> &cta,
        typename gemm_cta_t<format, width>::ring_t &ring, typename gemm_cta_t<format, width>::sums_t &sum) {
    using namespace ptx;
    using k = gemm_t;
    using shared_t = gemm_shared_t<format, width>;
    static_assert(shared_t::panels_each == 1, "a unit is a stage");
    const int thread = threadIdx.x % k::group;
    const place_t place = format::place(thread, cta.args.tiling);
    const uint32_t own = first_panel_of(cta), first_b = __shfl_sync(~0u, wgmma::b_descriptor(cta.stages), 0);
    uint32_t scales_at = own + place.scales, codes_at = own + place.codes, all_at = own + thread % 32 * 4;
    uint32_t full = cta.full;
    // As in gemm_cta_t::multiply().
    asm("" : "+r"(scales_at), "+r"(codes_at), "+r"(all_at), "+r"(full));
    const uint32_t told = cta.told(full);
    constexpr int tile_bytes = shared_t::packed_bytes / shared_t::stage_tiles, blocks = 4;
    float part[2][rows / 2];
    uint32_t a[2][4];
#pragma unroll 1
    for (int s = cta.stage_begin; s < cta.stage_end; s++, ring.next()) {
        barrier_wait(full + 8 * ring.slot, ring.round);
        const uint32_t at = ring.slot * shared_t::stage_bytes,
                       b = __shfl_sync(~0u, first_b + ring.slot * (shared_t::stage_bytes / 16), 0);
        const shared_reader_t codes_here{codes_at + at}, scales_here{scales_at + at}, all_here{all_at + at};
        // Without a second tile the source is 0, and codes left there are numbers. Scales might be NaN.
        const bool second = cta.has_second_tile(s);
        const uint32_t all[2] = {all_here.read_4(), second ? all_here.read_4(tile_bytes) : 0},
                       scales[2] = {scales_here.read_4(), second ? scales_here.read_4(tile_bytes) : 0};
        const uint4 codes[2] = {codes_here.read_16(), codes_here.read_16(tile_bytes)};
        // Starts the products of block j, whose sums are in part[j % 2] later.
        const auto start = [&](int j, auto any) {
            const uint4 &c = codes[j / 2];
            if (j % 2 == 0)
                format::decode(a[0], c.x, c.y);
            else
                format::decode(a[1], c.z, c.w);
            if (any) format::overflow(a[j % 2], scales[j / 2], j % 2);
            wgmma::fence();
            wgmma::mma_e5m2<rows>(part[j % 2], a[j % 2], b + j * wgmma::b_step, false);
            wgmma::commit();
        };
        // The stage, with any scales, block by block, or with those whose factors exist.
        const auto stage = [&](auto any) {
            start(0, any);
#pragma unroll
            for (int j = 0; j < blocks; j++) {
                const bool ahead = !any && j + 1 < blocks;
                if (ahead) start(j + 1, any);
                if (ahead)
                    wgmma::wait<1>();
                else
                    wgmma::wait<0>();
                float(&v)[rows / 2] = part[j % 2];
                asm volatile("" : "+r"(a[j % 2][0]), "+r"(a[j % 2][1]), "+r"(a[j % 2][2]), "+r"(a[j % 2][3]));
                const float2 f = any ? format::any_factors(scales[j / 2], j % 2)
                                     : format::factors(scales[j / 2], j % 2);
#pragma unroll
                for (int i = 0; i < rows / 2; i++) {
                    asm volatile("" : "+f"(v[i])); // not before the wait
                    sum[0][i] = fmaf(
                            any ? v[i] * float(1 << format::down) : v[i], i % 4 < 2 ? f.x : f.y, sum[0][i]);
                }
                if (any && j + 1 < blocks) start(j + 1, any);
            }
        };
        // Scales of all columns, so that all warps of the consumer do the same.
        if (__builtin_expect(__any_sync(~0u, (format::special(all[0]) | format::special(all[1])) != 0), 0))
            stage(std::true_type());
        else
            stage(std::false_type());
        cta.tell_read(ring.slot, full, told);
    }
}

template <int rows, typename format, int width>
__device__ __forceinline__ void multiply_fp8(const gemm_cta_t<format, width> &cta,
        typename gemm_cta_t<format, width>::ring_t &ring, typename gemm_cta_t<format, width>::sums_t &sum) {
    using shared_t = gemm_shared_t<format, width>;
    if constexpr (shared_t::by_blocks)
        multiply_blocks<rows>(cta, ring, sum);
    else if constexpr (shared_t::kept)
        multiply_kept<rows>(cta, ring, sum);
    else
        multiply_units<rows>(cta, ring, sum);
}

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
