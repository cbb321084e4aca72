// SPDX-License-Identifier: Apache-2.0
// MXFP4 weights of the layout n64_f4 as FP8 in the registers of wgmma, without their scales: five
// instructions for eight codes.
//
// A code lands as the bits s 000ee m0 of an f8_e5m2: e2m1 * 2^-14, a subnormal where ee is 0, which the
// tensor cores honour. The sums of a block of 32 rows meet its scale in f32. So blocks of a column may have
// any scales.
#pragma once

#include "gpu/cuda/device/mma/decode_f4.cuh"

namespace mxdnn {
namespace impl {

// A factor instead of a shift: integer products have their own pipe. The compiler does not know it, so it
// cannot turn it back.
static __constant__ uint32_t f4_shift_7 = 1 << 7;

struct f4_e5m2_t : mxfp4_t {
    static constexpr int down = 14; // weights are too small by 2^down

    // The four registers of a block, from the words of its first and of its second 16 rows.
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], uint32_t first, uint32_t second) {
        land(a[0], a[1], first);
        land(a[2], a[3], second);
    }
    // What sums of a block are multiplied by: those of columns c and c + 8. They exist for bytes up to 240.
    __device__ static __forceinline__ float2 factors(uint32_t scales, int block) {
        const uint32_t pair = e8m0_scales_t::factors<down>(scales, block * 2);
        return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000u));
    }
    // 0 where they exist for all bytes: a bit of each byte that has the top bit, and 113 or more below it.
    __device__ static __forceinline__ uint32_t special(uint32_t scales) {
        return ((scales & 0x7F7F7F7Fu) + (255 - 240) * 0x01010101u) & scales & 0x80808080u;
    }
    // The same for any byte, of sums that have been multiplied by 2^down.
    __device__ static __forceinline__ float2 any_factors(uint32_t scales, int block) {
        return make_float2(
                e8m0_scales_t::value(scales, block * 2, 0), e8m0_scales_t::value(scales, block * 2, 1));
    }
    // Makes Inf of the weights of a block that its scale makes larger than f32 holds: with byte 253 those of
    // 4 and more times the scale, with byte 254 of 2 and more.
    __device__ static __forceinline__ void overflow(uint32_t (&a)[4], uint32_t scales, int block) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t scale = scales >> (block * 16 + i % 2 * 8) & 0xFF;
            const uint32_t large = (scale == 254 ? a[i] : scale == 253 ? a[i] & a[i] << 1 : 0) & 0x08080808u;
            const uint32_t bytes = (large >> 3) * 0xFFu;
            a[i] = (a[i] & ~(bytes & 0x7F7F7F7Fu)) | (bytes & 0x7C7C7C7Cu);
        }
    }

private:
    __device__ static __forceinline__ void land(uint32_t &c, uint32_t &c8, uint32_t w) {
        constexpr uint32_t sign = 0x80808080u, magnitude = 0x0E0E0E0Eu;
        c = w & (sign | magnitude);
        c8 = ((w >> 3) & magnitude) | ((w * f4_shift_7) & sign);
    }
};

} // namespace impl
} // namespace mxdnn
