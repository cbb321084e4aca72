// SPDX-License-Identifier: Apache-2.0
// MXFP4 weights as FP8 in the registers of wgmma, 32 rows at a time: a block, which has one scale.
//
// f8_e4m3 has e2m1 * 2^e exactly for e from -8 to 6. A code lands in a bf16 as in decode_f4.cuh, without its
// sign: e2m1 * 2^-126. A product by a power of two gives a bf16 below 2^-111, whose exponent has four bits;
// with three of the mantissa they are the code of f8_e4m3 that is 2^120 times as large, subnormal ones
// included.
//
// f8_e5m2 has e2m1, and Inf for what its scale makes larger than f32 holds.
#pragma once

#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/interface/fp8_weights_args.hpp"

namespace mxdnn {
namespace impl {

// Multiplications by these replace shifts to the left. They use the pipe of integer products, which has
// little work here, instead of that of shifts, which has much. The compiler does not know the factors, so it
// cannot turn them back into shifts.
static __constant__ uint32_t shift_2 = 1 << 2, shift_4 = 1 << 4, shift_6 = 1 << 6;

struct mxfp4_as_fp8_t : mxfp4_t {
    // The factor of codes for e2m1 * 2^(fp8_highest + scale - largest): of column c in the low half, of c + 8
    // in the high one. scale and largest are bytes in halves.
    __device__ static __forceinline__ uint32_t factors(uint32_t scale, uint32_t largest) {
        constexpr uint32_t highest = 127 + 126 - 120 + cuda::packed::fp8_highest;
        return (scale - largest + highest * 0x00010001u) << 7;
    }

    // Bits of b where the mask is 1, bits of a elsewhere.
    __device__ static __forceinline__ uint32_t select(uint32_t a, uint32_t b, uint32_t mask) {
        uint32_t r;
        asm("lop3.b32 %0, %1, %2, %3, 0xD8;" : "=r"(r) : "r"(a), "r"(b), "r"(mask));
        return r;
    }

    // The registers of column c (0) or c + 8 (1) of a block. A word has its first and second 16 rows. Bytes
    // of a register are rows 2q + 16, 2q, 2q + 17 and 2q + 1 for lane q of four; in registers 2 and 3, eight
    // rows further. encode(x, y): the magnitudes of the codes that are in the high bytes of the halves of x,
    // and in the low ones of y.
    template <int column, typename encode_t>
    __device__ static __forceinline__ void decode_column(
            uint32_t (&a)[4], uint32_t first, uint32_t second, const encode_t &encode) {
        constexpr uint32_t mask = 0x01C001C0u, low = 0x00400040u, sign = 0x80808080u;
        // The signs of column c are in bytes 1 and 3 of a word, those of c + 8 in bytes 2 and 0.
        const uint32_t signs = __byte_perm(first, second, column ? 0x0426 : 0x3715);
        if constexpr (column == 0) {
            a[0] = select(encode(first & mask, second & mask), signs, sign);
            a[2] = select(encode((first * shift_6) & mask, (second * shift_6) & mask), signs * shift_6, sign);
        } else {
            a[1] = select(encode((first >> 4) & mask, (second >> 4) & mask), signs * shift_4, sign);
            a[3] = select(encode(((first >> 6) & (mask & ~low)) | ((first * shift_2) & low),
                                  ((second >> 6) & (mask & ~low)) | ((second * shift_2) & low)),
                    signs * shift_2, sign);
        }
    }

    __device__ static __forceinline__ void decode_fp8(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t factors) {
        decode_column<0>(a, first, second, encode_e4m3_t{half_of(factors, false)});
        decode_column<1>(a, first, second, encode_e4m3_t{half_of(factors, true)});
    }
    struct encode_e4m3_t {
        uint32_t factor;
        __device__ __forceinline__ uint32_t operator()(uint32_t x, uint32_t y) const {
            return mul_bf16x2(x, factor) * shift_4 + (mul_bf16x2(y, factor) >> 4);
        }
    };

    // scale has the scales of columns c and c + 8 in its halves.
    __device__ static __forceinline__ void decode_e5m2(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t scale) {
        decode_column<0>(a, first, second, encode_e5m2_t{scale & 0xFFFFu});
        decode_column<1>(a, first, second, encode_e5m2_t{scale >> 16});
    }
    struct encode_e5m2_t {
        uint32_t scale;
        __device__ __forceinline__ uint32_t operator()(uint32_t x, uint32_t y) const {
            const uint32_t small = 0x3E3C3800u, // 0, 0.5, 1, 1.5; then 2, 3, 4, 6
                    large = scale < 253    ? 0x46444240u
                            : scale == 253 ? 0x7C7C4240u
                                           : 0x7C7C7C7Cu;
            return __byte_perm(small, large,
                    (y >> 6 & 7) | (x >> 6 & 7) << 4 | (y >> 22 & 7) << 8 | (x >> 22 & 7) << 12);
        }
    };
};

} // namespace impl
} // namespace mxdnn
