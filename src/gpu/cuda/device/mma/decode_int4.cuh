// SPDX-License-Identifier: Apache-2.0
// int4 weights in the layout n64_i4: (code - zero point) * scale, with bf16 scales and u8 zero points, in
// blocks of 32, 64, 128 or 256 rows. A tile has as many rows as a block, 64 at least.
//
// A code lands as the low bits of a bf16, which are it times a power of two; one multiplication and addition
// gives it less its zero point, exactly. The product of that with the scale has up to 16 bits: it is two
// bf16, which the tensor cores multiply one after the other. Both have its sign, and neither is 0 where it is
// not, so that an infinity times it is that infinity. The one weight that is no such sum is 2^-133.
//
// Up to 127, n, times the scale: the first term is the rounded product of n and the next smaller bf16. Take a
// scale's unit for 1; then it is at most 255, the product has b bits at most, n is more than 2^(b - 9), and
// rounding to 8 bits adds or takes 2^(b - 9) at most: n and that, an integer from 1 to 191, is the rest.
// (Where the scale is a power of two, the next smaller bf16 is half a unit below, and the same holds for
// halves.)
#pragma once

#include "common/layouts/n64_i4.hpp"
#include "gpu/cuda/device/mma/decode_8bit.cuh"
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
        // Where both halves of the rows share a block they read the same twice.
        const int second = t.blocks == 2;
        raw_t r = {{c.x, c.y, c.z, c.w}, {scales.read_4(), scales.read_4(4 * second)}, 0};
        if constexpr (zero_points) {
            const int zeros = (64 * 2 - int(threadIdx.x) % 128 / 4 * 2) * t.blocks; // from the scales on
            r.zeros = scales.read_2(zeros) | scales.read_2(zeros + 2 * second) << 16;
        }
        return r;
    }
    // Scales below 2^-62 and from 2^66 on: the terms of others are all within bf16. And zero points that make
    // more of a code than 127.
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        // Exponents at the top of each half, less the least one. What a half borrows from the other comes
        // from a special one.
        uint32_t bits = 0;
#pragma unroll
        for (uint32_t s : r.scales) bits |= 2 * s - (127 - 62) * 0x01000100u;
        bits &= 0x80008000u;
        return zero_points ? bits | (r.zeros & 0x80808080u) : bits;
    }

    template <bool any>
    __device__ static __forceinline__ void decode(
            uint32_t (&a)[4], uint32_t (&rest)[4], const raw_t &r, int step) {
        uint32_t v[4];
        decode_unscaled(v, r, step);
        // The scale and the next smaller bf16: a 256th less, rounded.
        constexpr uint32_t up = power_of_two_bf16x2(unscaled_down);
        const uint32_t scales = mul_bf16x2(r.scales[step / 2], up),
                       smaller = mul_bf16x2(r.scales[step / 2], up - 0x00010001u);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = i % 2;
            if constexpr (any) {
                const float scale = factor(r, step, column);
                const float low = bf16_to_float(v[i], 0) * unscaled_up * scale,
                            high = bf16_to_float(v[i], 1) * unscaled_up * scale;
                a[i] = __byte_perm(first_of(low), first_of(high), 0x7632);
                rest[i] = to_bf16x2(rest_of(low), rest_of(high));
            } else {
                a[i] = mul_bf16x2(v[i], half_of(smaller, column));
                rest[i] = cuda::bf16x2_t::fma(v[i], half_of(scales, column), a[i] ^ 0x80008000u);
            }
        }
    }

    // Weights without their scale, which are exact in one bf16. They are 2^9 too small, so that their sums
    // with any source are within f32.
    __device__ static __forceinline__ void decode_unscaled(uint32_t (&a)[4], const raw_t &r, int step) {
        // Bits below bit 8 are an integer times 2^-133: one mask lands registers 0 and 2, another, 4 higher,
        // registers 1 and 3. With its top bit turned around an s4 is 8 more.
        constexpr uint32_t sign = 0x80008000u, minus_eight = power_of_two_bf16x2(3 - unscaled_down) | sign;
        const uint32_t from[2] = {r.codes[step], r.codes[step] >> 8};
        const uint32_t zeros = zero_points ? mul_bf16x2(__byte_perm(r.zeros, 0, step / 2 ? 0x4342 : 0x4140),
                                       power_of_two_bf16x2(133 - unscaled_down) | sign)
                                           : 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = i % 2 * 4;
            const uint32_t landed =
                    and_xor(from[i / 2], 0x000F000Fu << at, zero_points ? 0 : 0x00080008u << at);
            a[i] = cuda::bf16x2_t::fma(landed, power_of_two_bf16x2(133 - at - unscaled_down),
                    zero_points ? half_of(zeros, i % 2) : minus_eight);
        }
    }
    __device__ static __forceinline__ float unscaled_factor(const raw_t &r, int step, int column) {
        return bf16_to_float(mul_bf16x2(r.scales[step / 2], power_of_two_bf16x2(unscaled_down)), column);
    }

private:
    static constexpr int unscaled_down = 9;
    static constexpr float unscaled_up = 1 << unscaled_down;

    __device__ static __forceinline__ float factor(const raw_t &r, int step, int column) {
        return bf16_to_float(r.scales[step / 2], column);
    }
    __device__ static __forceinline__ float bf16_to_float(uint32_t pair, int half) {
        return __uint_as_float(half ? pair & 0xFFFF0000u : pair << 16);
    }
    // The bits of a weight of 16 bits' first term: cut off, after one of its last units, so that there is a
    // rest. That has as many bits as are cut, or is one bit above them.
    __device__ static __forceinline__ uint32_t first_of(float v) {
        const uint32_t bits = __float_as_uint(v);
        return (v == 0.f || !isfinite(v) ? bits : bits - 0x100) & 0xFFFF0000u;
    }
    // Of infinities and NaN itself.
    __device__ static __forceinline__ float rest_of(float v) {
        return isfinite(v) ? v - __uint_as_float(first_of(v)) : v;
    }
};

template <bool zero_points>
inline constexpr bool has_unscaled<int4_t<zero_points>> = true;

} // namespace impl
} // namespace mxdnn
