// SPDX-License-Identifier: Apache-2.0
// gemm at the rate of FP8 whose sums stay in the tensor cores over all of K: for the accumulation mode `any`.
// kept_sums.hpp has the rule of their units. A warp of the producer looks at the scales of a panel, remembers
// its units, and tells the consumer.
#pragma once

#include <cstddef>

#include "gpu/cuda/device/kernels/sm90/fp8_units.cuh"
#include "gpu/cuda/interface/kept_sums.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

// MXFP4 weights in n64_f4 whose sums are kept.
struct f4_kept_t : f4_by_products_t {};

struct fp8_kept_facts_t {
    uint4 factors[32];  // for each word: the factors of the codes of the four blocks, as pairs
    float2 units[32];   // with the last stage: what the sums are multiplied by in the end
    float2 changes[32]; // unless the stage goes on: what they are multiplied by before it
    kept_mode_t mode;
    uint32_t unused[3];
};

// Blocks that are multiplied one by one have parts of few rows, because ptxas would serialise products
// (C7511) with more.
struct fp8_kept_unit_t : fp8_unit_t<fp8_f4_products_t, 16> {
    using facts_t = fp8_kept_facts_t;
    static_assert(
            offsetof(facts_t, factors) == offsetof(fp8_products_facts_t, factors), "as read() has them");
    static_assert(kept_limits_t().first_top == 127 + highest && kept_limits_t().range == 15 + highest,
            "what f8_e5m2 has of e2m1");

    struct memory_t {
        kept_columns_t columns;
        bool one_by_one;
    };
    template <int count, typename facts_of_t>
    __device__ static __forceinline__ void look_at_scales(const facts_of_t &facts_of,
            const uint32_t (&panel)[count], int first, int panels, int lane, const fp8_stage_t &stage,
            memory_t &memory) {
        static_assert(count == 1, "a panel of each warp");
        facts_t &to = facts_of(panel[0]);
        kept_columns_t &columns = memory.columns;
        if (stage.is_first) columns.begin(), memory.one_by_one = false;
        kept_mode_t mode = kept_goes_on;
        if (first < panels && !memory.one_by_one) {
            const fp8_block_scales_t s(panel[0], lane, stage.has_second_tile);
            kept_blocks_t b;
#pragma unroll
            for (int j = 0; j < blocks; j++) b.scales[j] = s.scales[j];
            b.find_ends();
            if (__any_sync(~0u, !columns.fits(b))) {
                uint32_t zeros[blocks];
                find_zeros(zeros, panel[0], lane, stage.has_second_tile);
                b.find_ends_without(zeros);
                const uint32_t old = columns.top;
                const bool taken = columns.take_units(b, stage.is_first);
                memory.one_by_one = __any_sync(~0u, !taken);
                if (memory.one_by_one) columns.begin();
                const bool any_changes = __any_sync(~0u, columns.top != old);
                mode = memory.one_by_one                ? kept_one_by_one
                       : any_changes && !stage.is_first ? kept_new_units
                                                        : kept_goes_on;
                to.changes[lane] = changes(old, columns.top);
#pragma unroll
                for (int j = 0; j < blocks; j++)
                    b.scales[j] = halves_t::select(zeros[j], columns.top, b.scales[j]);
            }
            const auto factors = [&](int j) { return f4_by_products_t::factors(b.scales[j], columns.top); };
            to.factors[lane] = make_uint4(factors(0), factors(1), factors(2), factors(3));
            if (stage.is_last)
                to.units[lane] = changes(columns.top, halves_t::both(kept_limits_t().first_top));
        }
        if (lane == 0) to.mode = mode;
    }

    __device__ static __forceinline__ kept_mode_t mode(uint32_t facts) {
        return kept_mode_t(ptx::shared_reader_t{facts + uint32_t(offsetof(facts_t, mode))}.read_4());
    }
    __device__ static __forceinline__ float2 units(uint32_t facts, int thread) {
        return read_factors(facts + uint32_t(offsetof(facts_t, units)), thread);
    }
    __device__ static __forceinline__ float2 changes(uint32_t facts, int thread) {
        return read_factors(facts + uint32_t(offsetof(facts_t, changes)), thread);
    }
    template <int count>
    __device__ static __forceinline__ void scale(float *sum, float2 f) {
#pragma unroll
        for (int i = 0; i < count; i++) {
            asm volatile("" : "+f"(sum[i])); // not before the wait
            sum[i] *= i % 4 < 2 ? f.x : f.y;
        }
    }
    // Decodes a unit and adds its products to the sums. turn: that of the consumer.
    template <int rows, typename turn_t>
    __device__ static __forceinline__ void multiply_all(
            float *sum, uint32_t facts, uint32_t panel, uint32_t b, int thread, const turn_t &turn) {
        unit_t a;
        decode_all(a, read(facts, 0, panel, thread));
        if constexpr (turn_t::exists) wgmma::keep(a); // decoded before
        turn.begin();
        wgmma::fence();
#pragma unroll
        for (int j = 0; j < blocks; j++) wgmma::mma_e5m2<rows>(sum, a[j], b + j * wgmma::b_step, true);
        wgmma::commit();
        turn.end();
        wgmma::wait<0>();
        wgmma::keep(a);
    }

private:
    // Masks of the blocks of the columns of a lane without other weights than zeros. A second tile that does
    // not exist has the scales of the first.
    __device__ static __forceinline__ void find_zeros(
            uint32_t (&zeros)[blocks], uint32_t panel, int lane, bool second) {
#pragma unroll
        for (int tile = 0; tile < tiles; tile++) {
            const ptx::shared_reader_t words{
                    panel + (second ? tile * tile_bytes : 0) + mxfp4_t::max_header + lane * 64};
            uint32_t even = 0, odd = 0;
#pragma unroll 1 // registers of the producer are few
            for (int i = 0; i < 4; i++) {
                const uint4 w = words.read_16(i * 16);
                even |= w.x | w.y, odd |= w.z | w.w;
            }
            zeros[2 * tile] = kept_zeros(even), zeros[2 * tile + 1] = kept_zeros(odd);
        }
    }
    __device__ static __forceinline__ float2 changes(uint32_t from, uint32_t to) {
        return make_float2(
                __uint_as_float(kept_change(from, to, false)), __uint_as_float(kept_change(from, to, true)));
    }
    __device__ static __forceinline__ float2 read_factors(uint32_t at, int thread) {
        const uint2 v = ptx::shared_reader_t{at + thread / 4 * 8}.read_8();
        return make_float2(__uint_as_float(v.x), __uint_as_float(v.y));
    }
};

template <int width>
struct fp8_units_of<f4_kept_t, width> {
    using type = fp8_kept_unit_t;
};

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
