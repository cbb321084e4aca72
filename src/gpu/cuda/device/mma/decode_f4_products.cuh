// SPDX-License-Identifier: Apache-2.0
// MXFP4 weights of the layout n64_f4 as FP8 in the registers of wgmma, 32 rows at a time: a block, which has
// one scale. f8_e5m2 is the high byte of an f16. So two codes of a word that are not neighbours are two f16,
// if all else is masked: e2m1 * 2^-14. A product by a power of two gives them their scale, exactly for e2m1 *
// 2^e with e from -15 to 1.
#pragma once

#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"

namespace mxdnn {
namespace impl {

// Factors of integer products, which have their own pipe, instead of shifts. The compiler does not know them,
// so it cannot turn them back.
static __constant__ uint32_t f4_products_shift_5 = 1 << 5, f4_products_shift_7 = 1 << 7,
                             f4_products_shift_8 = 1 << 8;

struct f4_by_products_t : mxfp4_t {
    static constexpr int highest = 1; // the largest factor is 2^15

    // The factors of columns c and c + 8, for e2m1 * 2^(highest + scale - largest). scale and largest are
    // bytes in halves.
    __device__ static __forceinline__ uint32_t factors(uint32_t scale, uint32_t largest) {
        return (scale - largest + uint32_t(15 + 14 + highest) * 0x00010001u) << 10;
    }
    // The registers of a block, from the words of its first and of its second 16 rows.
    __device__ static __forceinline__ void decode_fp8(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t factors) {
        const uint32_t c = half_of(factors, false), c8 = half_of(factors, true);
        decode_16(a[0], a[1], first, c, c8);
        decode_16(a[2], a[3], second, c, c8);
    }

private:
    // Of f16 in the halves of two words, the high bytes in turn.
    __device__ static __forceinline__ uint32_t merge(uint32_t even, uint32_t odd) {
        return __byte_perm(even, odd, 0x7351);
    }
    __device__ static __forceinline__ void decode_16(
            uint32_t &c, uint32_t &c8, uint32_t w, uint32_t factor, uint32_t factor_8) {
        using cuda::f16x2_t;
        constexpr uint32_t magnitude = 0x0E000E00u, signs = 0x80808080u;
        constexpr uint32_t code = magnitude | (signs & 0xFF00FF00u);
        c = merge(f16x2_t::mul((w * f4_products_shift_8) & code, factor), f16x2_t::mul(w & code, factor));
        c8 = merge(f16x2_t::mul((w * f4_products_shift_5) & magnitude, factor_8),
                f16x2_t::mul((w >> 3) & magnitude, factor_8));
        c8 = and_or(w * f4_products_shift_7, signs, c8);
    }
};

} // namespace impl
} // namespace mxdnn
