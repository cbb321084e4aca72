// SPDX-License-Identifier: Apache-2.0
// int4 weights in the layout n64_b4: (code - zero point) * scale, with bf16 scales and u8 zero points, in
// blocks of 32, 64, 128 or 256 rows. A tile has as many rows as a block, 64 at least.
//
// A code becomes the integer 32 or 128 + code by landing in the mantissa of a bf16; what is to be subtracted
// comes off exactly. The product with the scale has up to 16 bits: it is two bf16, itself rounded and the
// rest, which the tensor cores multiply one after the other. The rest is exact, because an integer times the
// scale is a multiple of the scale's last bit.
#pragma once

#include "common/layouts/n64_b4.hpp"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"

namespace mxdnn {
namespace impl {

// s4 without zero points, or u4 with them.
template <bool zero_points>
struct int4_t {
    static constexpr int bits = 4, max_header = 2 * 64 * (zero_points ? 3 : 2);
    static constexpr bool one_step_tiles = false;
    static constexpr int terms = 2;
    static constexpr float sum_scale = 1.f;
    struct raw_t {
        // Of rows 0..31 and 32..63: scales of columns c and c + 8, and their zero points, a byte each.
        uint32_t codes[4], scales[2], zeros;
    };
    __device__ static __forceinline__ place_t place(int thread, const tiling_t &t) {
        return {uint32_t(thread) / 4 * 4 * t.blocks, t.header_bytes + uint32_t(thread) * 16};
    }
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load(
            const reader_t &scales, const reader_t &codes, const tiling_t &t) {
        const uint4 c = codes.read_16();
        raw_t r = {{c.x, c.y, c.z, c.w}, {}, 0};
        const int zeros = (64 * 2 - int(threadIdx.x) % 128 / 4 * 2) * t.blocks; // from the scales on
        if (t.blocks == 2) {
            const uint2 s = scales.read_8();
            r.scales[0] = s.x, r.scales[1] = s.y;
            if (zero_points) r.zeros = scales.read_4(zeros);
        } else {
            r.scales[0] = r.scales[1] = scales.read_4();
            if (zero_points) r.zeros = scales.read_2(zeros) * 0x00010001u;
        }
        return r;
    }
    // Zero points that do not land as codes do, and scales from 2^64 on, some of whose
    // products are beyond bf16.
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        uint32_t bits = r.zeros & 0xE0E0E0E0u;
#pragma unroll
        for (uint32_t s : r.scales) bits |= ((s & 0x7FFF7FFFu) + 0x20802080u) & 0x80008000u;
        return bits;
    }

    template <bool any>
    __device__ static __forceinline__ void decode(
            uint32_t (&a)[4], uint32_t (&rest)[4], const raw_t &r, int step) {
        uint32_t v[4];
        land<0, any>(v, r, step);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = i % 2;
            if constexpr (any) {
                const float zero =
                        zero_points ? float(r.zeros >> e8m0_scales_t::byte(step, column) * 8 & 255) : 8.f;
                v[i] = add_bf16x2(v[i], to_bf16x2(-zero, -zero));
                const float scale = factor(r, step, column);
                const float first = bf16_to_float(v[i], 0) * scale, second = bf16_to_float(v[i], 1) * scale;
                a[i] = __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x7632);
                rest[i] = to_bf16x2(rest_of(first), rest_of(second));
            } else {
                const uint32_t scale = half_of(r.scales[step / 2], column);
                a[i] = mul_bf16x2(v[i], scale);
                rest[i] = cuda::bf16x2_t::fma(v[i], scale, a[i] ^ 0x80008000u);
            }
        }
    }

    // Of blocks that are not special: weights without their scale, which are exact in one bf16. They are 2^9
    // too small, so that their sums with any source are within f32.
    __device__ static __forceinline__ void decode_unscaled(uint32_t (&a)[4], const raw_t &r, int step) {
        land<unscaled_down, false>(a, r, step);
    }
    __device__ static __forceinline__ float unscaled_factor(const raw_t &r, int step, int column) {
        return factor(r, step, column) * float(1 << unscaled_down);
    }

private:
    static constexpr int unscaled_down = 9;

    // 2^-down times the codes less their zero points or, where any of these are dealt with, s4 codes and 8
    // more, u4 codes as they are.
    template <int down, bool any>
    __device__ static __forceinline__ void land(uint32_t (&v)[4], const raw_t &r, int step) {
        // Where register i's codes land: the bit of the mantissa that counts 1. Few rotations bring bits 2..0
        // and bit 3 of all registers there (see n64_b4.hpp).
        constexpr int at[4] = {2, 0, 2, 2};
        constexpr uint32_t each = 0x00010001u, minus = 0x80008000u;
        const uint32_t w = r.codes[step];
        const uint32_t by_4 = rotate_right(w, 4), by_10 = rotate_right(w, 10), by_16 = rotate_right(w, 16);
        const uint32_t low[4] = {by_4, by_10, w << 2, (by_10 & ~(each << at[3])) | (w >> 2 & each << at[3])};
        const uint32_t high[4] = {by_10, by_16, by_4, by_16};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t one = each << at[i], top = 8 * one;
            const uint32_t landing = power_of_two_bf16x2(7 - at[i] - down);
            // What XOR makes of an s4 code is 8 more than its value.
            v[i] = and_or(low[i], 7 * one, zero_points ? landing : landing | top) ^ (high[i] & top);
            const uint32_t zero = any ? 0
                                  : zero_points
                                          ? byte_to_halves(r.zeros, e8m0_scales_t::byte(step, i % 2)) << at[i]
                                          : top;
            v[i] = add_bf16x2(v[i], zero + (landing | minus));
        }
    }
    __device__ static __forceinline__ float factor(const raw_t &r, int step, int column) {
        return bf16_to_float(r.scales[step / 2], column);
    }
    __device__ static __forceinline__ float bf16_to_float(uint32_t pair, int half) {
        return __uint_as_float(half ? pair & 0xFFFF0000u : pair << 16);
    }
    // What bf16 leaves of a value that is cut off, not rounded.
    __device__ static __forceinline__ float rest_of(float v) {
        return isfinite(v) ? v - __uint_as_float(__float_as_uint(v) & 0xFFFF0000u) : 0.f;
    }
};

template <bool zero_points>
inline constexpr bool has_unscaled<int4_t<zero_points>> = true;

} // namespace impl
} // namespace mxdnn
