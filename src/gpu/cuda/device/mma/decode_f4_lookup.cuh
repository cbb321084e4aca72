// SPDX-License-Identifier: Apache-2.0
// MXFP4 weights of the layout n64_f4 as FP8 in the registers of wgmma, 32 rows at a time: a block, which has
// one scale. A block has eight magnitudes. So a byte permutation looks four codes up in the two registers of
// a table that has the scale already. f8_e4m3 has e2m1 * 2^e exactly for e from -8 to 6; f8_e5m2 has e2m1,
// and Inf for what its scale makes larger than f32 holds.
#pragma once

#include "gpu/cuda/device/mma/decode_f4.cuh"
#include "gpu/cuda/interface/fp8_weights_args.hpp"

namespace mxdnn {
namespace impl {

// A factor of integer products, which have their own pipe, instead of a shift. The compiler does not know it,
// so it cannot turn them back.
static __constant__ uint32_t shift_left_4 = 1 << 4;

struct f4_lookup_t {
    // The table of e2m1 * 2^e in f8_e4m3, `below` the largest e.
    static constexpr int tables = cuda::packed::fp8_highest - cuda::packed::fp8_lowest + 1;
    __device__ static uint2 table_e4m3(int below) {
        uint2 t = {0, 0};
        for (int code = 0; code < 8; code++) {
            // In units of 2^-9, the smallest number.
            const int value = code < 2 ? code : (2 + code % 2) << (code / 2 - 1); // of halves
            const uint32_t units = uint32_t(value) << (cuda::packed::fp8_highest - below + 8);
            const int top = units ? 31 - __clz(int(units)) : 0;
            const uint32_t byte = units < 8 ? units : uint32_t(top - 2) << 3 | (units >> (top - 3) & 7);
            (code < 4 ? t.x : t.y) |= byte << code % 4 * 8;
        }
        return t;
    }
    // That of f8_e5m2 for a scale.
    __device__ static __forceinline__ uint2 table_e5m2(uint32_t scale) {
        return {0x3E3C3800u, // 0, 0.5, 1, 1.5; then 2, 3, 4, 6
                scale < 253    ? 0x46444240u
                : scale == 253 ? 0x7C7C4240u
                               : 0x7C7C7C7Cu};
    }

    // Bits of b where the mask is 1, added to those of a.
    __device__ static __forceinline__ uint32_t with(uint32_t a, uint32_t b, uint32_t mask) {
        uint32_t r;
        asm("lop3.b32 %0, %1, %2, %3, 0xF8;" : "=r"(r) : "r"(a), "r"(b), "r"(mask));
        return r;
    }
    // Four bytes of a table by the low nibbles of a word, which are below 8. (__byte_perm() would mask them.)
    __device__ static __forceinline__ uint32_t look_up(uint32_t low, uint32_t high, uint32_t nibbles) {
        uint32_t r;
        asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(nibbles));
        return r;
    }
    // Registers 2 i and 2 i + 1, from the word of 16 rows, by the tables of columns c and c + 8.
    template <int i>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], uint32_t word, uint2 c, uint2 c8) {
        constexpr uint32_t sign = 0x80808080u;
        uint32_t magnitudes;
        // Not by an operator, or the compiler would mask both halves apart.
        asm("and.b32 %0, %1, 0x77777777;" : "=r"(magnitudes) : "r"(word));
        a[2 * i] = with(look_up(c.x, c.y, magnitudes), word, sign);
        a[2 * i + 1] = with(look_up(c8.x, c8.y, magnitudes >> 16), word * shift_left_4, sign);
    }
    __device__ static __forceinline__ void decode(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint2 c, uint2 c8) {
        decode<0>(a, first, c, c8);
        decode<1>(a, second, c, c8);
    }
};

// MXFP4 weights in n64_f4.
struct f4_as_fp8_t : mxfp4_t {};

} // namespace impl
} // namespace mxdnn
