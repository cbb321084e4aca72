// SPDX-License-Identifier: Apache-2.0
// int4 weights rounded to the type of the source, bf16 or f16, which is that of their scales and floating
// zeros, too: for gemm.cuh, whose sums are over all of K.
//
// A code less its zero point is exact. Its product with the scale, or that plus the zero, is rounded once.
// The scale is a multiple of the least number of its type; so is the product, so that it is off by half a
// unit of its last bit at most, also where it is subnormal.
//
// Where a weight might leave the range of the type, and where scale or zero are no numbers, weights are taken
// as f32 instead, one by one.
#pragma once

#include "gpu/cuda/device/mma/decode_int4_f16.cuh"
#include "gpu/cuda/device/mma/rounded.cuh"
#include "gpu/cuda/heuristics/packed_variants.hpp"

namespace mxdnn {
namespace impl {

template <int4_kind_t kind, cuda::packed::gemm_variants::int4_t types>
struct int4_rounded_t : int4_t<kind> {
    static constexpr bool f16 = types == cuda::packed::gemm_variants::f16,
                          f16_scales = types != cuda::packed::gemm_variants::bf16;
    static_assert(!int4_t<kind>::any_types && (kind != int4_kind_t::zeros || f16 == f16_scales),
            "scales of 16 bits, and zeros of the same type");
    static constexpr int terms = 1, max_header = int4_t<kind>::max_header;
    struct raw_t : int4_t<kind>::raw_t {
        uint32_t beyond; // of some columns of the panel
    };
    using weights_t = std::conditional_t<f16, int4_f16_weights_t, typename int4_t<kind>::bf16_weights_t>;

    // Where a thread reads in a step of a panel. Two blocks of 32 rows have scales side by side. Where all 64
    // rows are of one block, those of two threads are, and each takes its own twice.
    struct reads_t {
        uint32_t codes, scales, zeros, all;
        uint32_t first, second, points; // selectors of PRMT

        __device__ __forceinline__ reads_t(int thread, const tiling_t &t) {
            const uint32_t pair = uint32_t(thread) / 4, two = t.blocks == 2, end = 64 * 2 * t.blocks,
                           odd = two ? 0 : pair % 2;
            codes = t.header_bytes + uint32_t(thread) * 16;
            scales = (two ? pair : pair / 2) * 8;
            zeros = kind == int4_kind_t::zero_points ? end + scales / 2 : end + scales;
            all = uint32_t(thread) % 32 * 8 % end;
            first = odd ? 0x7654 : 0x3210;
            second = two || odd ? 0x7654 : 0x3210;
            points = two ? 0x3210 : odd ? 0x3232 : 0x1010;
            // Otherwise the compiler computes some of them again for every step.
            asm(""
                    : "+r"(codes), "+r"(scales), "+r"(zeros), "+r"(all), "+r"(first), "+r"(second),
                    "+r"(points));
        }
    };
    __device__ static __forceinline__ raw_t load(uint32_t panel, const reads_t &at, const tiling_t &t) {
        using reader_t = ptx::shared_reader_t;
        raw_t r;
        const uint4 c = reader_t{panel + at.codes}.read_16();
        r.codes[0] = c.x, r.codes[1] = c.y, r.codes[2] = c.z, r.codes[3] = c.w;
        r.types = t.int4;
        const auto pairs = [&](uint32_t(&to)[2], uint32_t place) {
            const uint2 v = reader_t{panel + place}.read_8();
            to[0] = __byte_perm(v.x, v.y, at.first), to[1] = __byte_perm(v.x, v.y, at.second);
        };
        const auto look_at = [&](uint32_t place, uint32_t least) {
            const uint2 v = reader_t{panel + place}.read_8();
            const uint32_t up = (0x8000u - least) * 0x00010001u;
            return ((v.x & 0x7FFF7FFFu) + up) | ((v.y & 0x7FFF7FFFu) + up);
        };
        pairs(r.scales, at.scales);
        r.beyond = look_at(at.all, least_scale);
        if constexpr (kind == int4_kind_t::zero_points) {
            r.zeros[0] = __byte_perm(reader_t{panel + at.zeros}.read_4(), 0, at.points);
        } else if constexpr (int4_t<kind>::may_have_zeros) {
            pairs(r.zeros, at.zeros);
            r.beyond |= look_at(at.all + 64 * 2 * t.blocks, least_zero);
        }
        return r;
    }
    __device__ static __forceinline__ uint32_t special(const raw_t &r) { return r.beyond & 0x80008000u; }

    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        static_assert(!any, "special weights are exact()");
        int4_t<kind>::template land<weights_t>(a, r, step);
        const uint32_t pair = r.scales[step / 2];
        if constexpr (f16 != f16_scales) { // the sum of two bf16, the second one much smaller
            const float x = value(pair, 0) * up, y = value(pair, 1) * up;
            const uint32_t high = to_bf16x2(x, y);
            const uint32_t low =
                    to_bf16x2(x - __uint_as_float(high << 16), y - __uint_as_float(high & 0xFFFF0000u));
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[i] = weights_t::fma(a[i], half_of(high, i % 2), weights_t::mul(a[i], half_of(low, i % 2)));
        } else {
            const uint32_t scale = weights_t::mul(pair, power_of_two(down));
#pragma unroll
            for (int i = 0; i < 4; i++)
                if constexpr (int4_t<kind>::may_have_zeros)
                    a[i] = weights_t::fma(a[i], half_of(scale, i % 2), half_of(r.zeros[step / 2], i % 2));
                else
                    a[i] = weights_t::mul(a[i], half_of(scale, i % 2));
        }
    }
    // Of columns c and c + 8 of the thread's 16. panel: its tile, with the codes of this step.
    __device__ static __forceinline__ float2 exact(
            const ptx::shared_reader_t &panel, const tiling_t &t, int thread, int k) {
        const int pair = thread / 4, block = t.blocks == 2 ? k / 32 : 0, param = pair * t.blocks + block;
        const uint32_t word = panel.read_4(t.header_bytes + (pair * 4 + k % 8 / 2) * 16 + k / 16 * 4)
                              >> (k % 16 / 8 * 8 + k % 2 * 16);
        const uint32_t scales = panel.read_4(param * 4);
        uint32_t zeros = 0;
        if constexpr (kind == int4_kind_t::zero_points)
            zeros = panel.read_2(64 * 2 * t.blocks + param * 2);
        else if constexpr (int4_t<kind>::may_have_zeros)
            zeros = panel.read_4(64 * 2 * t.blocks + param * 4);
        const auto weight = [&](int column) {
            const uint32_t code = word >> column * 4 & 15;
            float w = kind == int4_kind_t::s4 ? float(int(code ^ 8) - 8) : float(code);
            if constexpr (kind == int4_kind_t::zero_points)
                w -= float(zeros >> column * 8 & 255);
            else if (kind == int4_kind_t::zeros && !t.int4.minima)
                w -= 8.f;
            w = __fmul_rn(w, value(scales, column));
            return int4_t<kind>::may_have_zeros ? __fadd_rn(w, value(zeros, column)) : w;
        };
        return make_float2(weight(0), weight(1));
    }
    // A value of the source.
    __device__ static __forceinline__ float source(uint32_t bits) {
        return f16 ? __half2float(__ushort_as_half(uint16_t(bits))) : __uint_as_float(bits << 16);
    }

private:
    // A scale or a zero.
    __device__ static __forceinline__ float value(uint32_t pair, int half) {
        if constexpr (!f16_scales) return __uint_as_float(half ? pair & 0xFFFF0000u : pair << 16);
        const __half2 v = *reinterpret_cast<const __half2 *>(&pair);
        return half ? __high2float(v) : __low2float(v);
    }
    static constexpr int down = f16 ? int4_f16_weights_t::down : int4_t<kind>::unscaled_down;
    static constexpr uint32_t power_of_two(int e) {
        return f16 ? power_of_two_f16x2(e) : power_of_two_bf16x2(e);
    }
    static constexpr float up = 1 << down;
    // Scales from 2^6 (bf16: 2^114) on, which become factors beyond the type, and zeros from 2^14 (2^126) on,
    // which could make a sum that is beyond. Of f16 scales for bf16 only Inf and NaN.
    static constexpr uint32_t least_scale =
                                      f16 != f16_scales ? 0x7C00u : power_of_two(f16 ? 6 : 114) & 0xFFFF,
                              least_zero = power_of_two(f16 ? 14 : 126) & 0xFFFF;
};

template <int4_kind_t kind, cuda::packed::gemm_variants::int4_t types>
inline constexpr bool is_rounded<int4_rounded_t<kind, types>> = true;
template <int4_kind_t kind>
inline constexpr bool is_f16<int4_rounded_t<kind, cuda::packed::gemm_variants::f16>> = true;

} // namespace impl
} // namespace mxdnn
