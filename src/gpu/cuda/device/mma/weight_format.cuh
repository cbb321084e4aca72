// SPDX-License-Identifier: Apache-2.0
// What the Hopper kernels know of a weight format: how a step of 64 rows x 64 columns of a packed panel (the
// layouts n64_*) becomes bf16 fragments of the A operand. A format is a type with
//
//     raw_t                 one thread's codes, scales and zero points for a step
//     bits, max_header      of a code; bytes of scales and zero points before the codes of a tile, at most
//     sum_scale             what sums are multiplied by in the end
//     place(thread, tiling) where the thread's part of a tile lies
//     load(scales, codes, tiling)  reads it, with readers (ptx/copy.cuh) of those places
//     one_step_tiles        whether a tile always has 64 rows
//     terms                 how many bf16 a weight is the sum of
//     special(raw)          a bit mask that is 0 where the fast decoder gets everything right
//     decode<any>(a, raw, step)    registers a of 16 rows, for any input or for what is not special
//
// Weights meet their scales here, in bf16: exactly, but for FP8 codes that a scale below 2^-117 makes smaller
// than the least bf16, 2^-133. Those of int4 do not (has_unscaled).
#pragma once

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "gpu/cuda/device/ptx/copy.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {

using cuda::packed::tiling_t;

// Bytes from the start of a tile to the scales of a thread, and to its codes in the first step.
struct place_t {
    uint32_t scales, codes;
};

__device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
    uint32_t r;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
#else
    return cuda::bf16x2_t::mul(a, b);
#endif
}
// One half of a word in both halves, for a product, where it costs no instruction.
__device__ __forceinline__ uint32_t half_of(uint32_t v, bool high) {
    uint32_t both;
    if (high)
        asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %1;\n\tmov.b32 %0, {h, h};\n\t}" : "=r"(both) : "r"(v));
    else
        asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %1;\n\tmov.b32 %0, {l, l};\n\t}" : "=r"(both) : "r"(v));
    return both;
}
// (a & mask) | c in one instruction. Written with operators, two constants become two.
__device__ __forceinline__ uint32_t and_or(uint32_t a, uint32_t mask, uint32_t c) {
    uint32_t r;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(a), "r"(mask), "r"(c));
    return r;
}
__device__ __forceinline__ uint32_t rotate_right(uint32_t v, int by) { return __funnelshift_r(v, v, by); }

// 2^(byte - 127) in f32; 255 is NaN.
__device__ __forceinline__ float e8m0_to_float(uint32_t byte) {
    return __uint_as_float(byte == 0 ? 0x00400000u : byte == 255 ? 0x7FC00000u : byte << 23);
}

// Turns codes in bf16 position into weights: multiplied by 2^add, exactly, and by the scale.
constexpr uint32_t power_of_two_bf16x2(int e) { return uint32_t(e + 127) << 7 | uint32_t(e + 127) << 23; }
constexpr uint32_t power_of_two_f16x2(int e) { return uint32_t(e + 15) << 10 | uint32_t(e + 15) << 26; }

// Scales of formats with e8m0: for columns c and c + 8 of the blocks of rows 0..31 and 32..63, a byte each.
struct e8m0_scales_t {
    static constexpr int header_bytes = 128;
    __device__ static __forceinline__ uint32_t place(int thread) { return uint32_t(thread) / 4 * 4; }
    // The byte that belongs to the 16 rows `step` and to a column.
    __device__ static constexpr int byte(int step, int column) { return step / 2 * 2 + column; }
    // A bit mask that is 0 if all bytes are from `least` to `least` + 127. The subtraction borrows from the
    // next byte only if a byte is below `least`, and then the byte's own bit shows it.
    template <int least>
    __device__ static __forceinline__ uint32_t outside(uint32_t scales) {
        return (scales - uint32_t(least) * 0x01010101u) & 0x80808080u;
    }
    // 2^(byte - 127 + add), which must be a normal bf16: for column c in the low half, for c + 8 in the high
    // one.
    template <int add>
    __device__ static __forceinline__ uint32_t factors(uint32_t scales, int step) {
        return (__byte_perm(scales, 0, step / 2 ? 0x4342 : 0x4140) << 7) + uint32_t(add) * 0x00800080u;
    }
    // The same for one column without `add`, in both halves, for every byte.
    __device__ static __forceinline__ uint32_t any_factor(uint32_t scales, int step, int column) {
        const uint32_t b = scales >> byte(step, column) * 8 & 255;
        return (b == 0 ? 0x0040u : b == 255 ? 0x7FC0u : b << 7) * 0x00010001u;
    }
    __device__ static __forceinline__ float value(uint32_t scales, int step, int column) {
        return e8m0_to_float(scales >> byte(step, column) * 8 & 255);
    }
    // Multiplies the fragment by 2^add and by its scales: columns c in registers 0 and 2, c + 8 in 1 and 3.
    template <bool any, int add>
    __device__ static __forceinline__ void apply(uint32_t (&a)[4], uint32_t scales, int step) {
        if constexpr (any) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[i] = mul_bf16x2(
                        mul_bf16x2(a[i], power_of_two_bf16x2(add)), any_factor(scales, step, i % 2));
        } else {
            const uint32_t f = factors<add>(scales, step);
#pragma unroll
            for (int i = 0; i < 4; i++) a[i] = mul_bf16x2(a[i], half_of(f, i % 2));
        }
    }
};

// Whether scales are applied to sums over 32 rows, for weights that are not bf16 after scaling. Instead of
// decode(), such a format has decode_unscaled(a, raw, step) for ordinary weights, decode_any(a, raw, step,
// rows left) for all, in several terms, and what unscaled_factors_t uses (unscaled_sums.cuh).
template <typename format>
inline constexpr bool has_unscaled = false;

// Whether such weights are f16, like the source. Weights whose scales are applied early are decoded by
// format::of_bf16 instead; for them the source is the sum of two bf16 numbers (f16_terms.cuh).
template <typename format>
inline constexpr bool is_f16 = false;

// Whether grouped_gemv multiplies special weights for f16 by a call, which leaves registers to the others: 5
// to 20 % less time on an H200. With zero points, and with types that are read, it takes up to 16 % more.
template <typename format>
inline constexpr bool calls_any = false;

} // namespace impl
} // namespace mxdnn
