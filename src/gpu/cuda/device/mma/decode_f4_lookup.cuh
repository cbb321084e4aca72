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

// Factors of integer products, which have their own pipe, instead of shifts. The compiler does not know them,
// so it cannot turn them back.
static __constant__ uint32_t f4_lookup_shift_3 = 1 << 3, f4_lookup_shift_7 = 1 << 7;

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
    // Registers of one column, from its magnitudes: row i of the first 16 rows in the low nibble of byte i,
    // of the second 16 rows in the high one.
    __device__ static __forceinline__ void look_up_both(
            uint32_t &first, uint32_t &second, uint32_t magnitudes, uint2 table) {
        const uint32_t low = look_up(table.x, table.y, magnitudes),
                       high = look_up(table.x, table.y, magnitudes >> 16);
        first = __byte_perm(low, high, 0x6420), second = __byte_perm(low, high, 0x7531);
    }
    // The registers of a block, from the words of its first and of its second 16 rows, by the tables of
    // columns c and c + 8.
    __device__ static __forceinline__ void decode(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint2 c, uint2 c8) {
        constexpr uint32_t sign = 0x80808080u, low = 0x07070707u, high = 0x70707070u;
        look_up_both(a[0], a[2], ((first >> 1) & low) | ((second * f4_lookup_shift_3) & high), c);
        look_up_both(a[1], a[3], ((first >> 4) & low) | (second & high), c8);
        a[0] = with(a[0], first, sign), a[1] = with(a[1], first * f4_lookup_shift_7, sign);
        a[2] = with(a[2], second, sign), a[3] = with(a[3], second * f4_lookup_shift_7, sign);
    }
    // As f8_e5m2, under scales that sums meet: those of the columns, in halves.
    __device__ static __forceinline__ void decode_e5m2(
            uint32_t (&a)[4], uint32_t first, uint32_t second, uint32_t scales) {
        decode(a, first, second, table_e5m2(scales & 0xFFFFu), table_e5m2(scales >> 16));
    }
};

// MXFP4 weights in n64_f4 that tables decode.
struct f4_by_tables_t : mxfp4_t {};

} // namespace impl
} // namespace mxdnn
