// SPDX-License-Identifier: Apache-2.0
// 8-bit weights in the layout n64_b8, with e8m0 scales: MXFP8 and MXINT8.
#pragma once

#include "common/layouts/n64_b8.hpp"
#include "gpu/cuda/device/mma/weight_format.cuh"

namespace mxdnn {
namespace impl {

// Words 2 i and 2 i + 1 have 16 rows: registers 0 and 1, 2 and 3, in the low and high byte of each half.
struct raw_8bit_t {
    uint32_t codes[8], scales;
    // Moves the codes of a register to the low bytes of its halves. Higher bits are not cleared.
    __device__ __forceinline__ uint32_t low_bytes(int step, int i) const {
        return i % 2 ? codes[step * 2 + i / 2] >> 8 : codes[step * 2 + i / 2];
    }
};

struct codes_8bit_t {
    static constexpr int bits = 8, max_header = e8m0_scales_t::header_bytes;
    static constexpr bool one_step_tiles = true;
    static constexpr int terms = 1;
    static constexpr float sum_scale = 1.f;
    static constexpr int half_step = 128 * 16; // bytes of 32 rows
    using raw_t = raw_8bit_t;
    __device__ static __forceinline__ place_t place(int thread, const tiling_t &) {
        return {e8m0_scales_t::place(thread), max_header + uint32_t(thread) * 16};
    }
    // The last tile ends after 32 rows if K does. Then there is no upper half.
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load(
            const reader_t &scales, const reader_t &codes, const tiling_t &, bool upper_half) {
        const uint4 c = codes.read_16();
        const uint4 d = upper_half ? codes.read_16(half_step) : make_uint4(0, 0, 0, 0);
        return {{c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w}, scales.read_4()};
    }
};

// The low or the high bytes of a word's halves, with copies of their top bits above them.
__device__ __forceinline__ uint32_t extended_bytes(uint32_t w, bool high) {
    uint32_t r;
    asm("prmt.b32 %0, %1, %1, %2;" : "=r"(r) : "r"(w), "r"(high ? 0xB391u : 0xA280u));
    return r;
}

// The bits of a code become a bf16 that is its value times a power of two. Inf and NaN would become numbers,
// so they are special cases.
template <int exponent_bits>
struct mxfp8_t : codes_8bit_t {
    static_assert(exponent_bits == 4 || exponent_bits == 5, "e4m3 or e5m2");
    static constexpr bool e4m3 = exponent_bits == 4;

    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        // Adding one to the largest exponent (e4m3: to the only NaN) inverts the sign bit. A carry into the
        // next byte comes from a special code.
        constexpr uint32_t one = e4m3 ? 0x01010101u : 0x04040404u;
        uint32_t bits = e8m0_scales_t::outside<1>(r.scales);
#pragma unroll
        for (uint32_t w : r.codes) bits |= (w + one) ^ w;
        return bits & 0x80808080u;
    }
    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        if constexpr (any) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t pair = __byte_perm(r.low_bytes(step, i), 0, 0x4420);
                const __half2 v = __half2(
                        __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(pair), e4m3 ? __NV_E4M3 : __NV_E5M2));
                const float scale = e8m0_scales_t::value(r.scales, step, i % 2);
                a[i] = to_bf16x2(__low2float(v) * scale, __high2float(v) * scale);
            }
        } else {
            // Exponent and mantissa are in bits 10..4 (e4m3) or 11..5 (e5m2) of each half.
            constexpr int at = e4m3 ? 4 : 5;
            constexpr uint32_t value_and_sign = (0x007F007Fu << at) | 0x80008000u;
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[i] = extended_bytes(r.codes[step * 2 + i / 2], i % 2) << at & value_and_sign;
            // The bias is 7 for e4m3, 15 for e5m2, and 127 for bf16.
            e8m0_scales_t::apply<false, e4m3 ? 120 : 112>(a, r.scales, step);
        }
    }
};

// (a & mask) ^ c in one instruction, as and_or().
__device__ __forceinline__ uint32_t and_xor(uint32_t a, uint32_t mask, uint32_t c) {
    uint32_t r;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(r) : "r"(a), "r"(mask), "r"(c));
    return r;
}

// MXINT8: a code is an integer, and 2^-6 of it is the element. With its top bit inverted it is larger by 128.
// As the bits of a bf16 this is as many times 2^-133. A product with 8 bits is exact.
struct mxint8_t : codes_8bit_t {
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        return e8m0_scales_t::outside<1>(r.scales);
    }
    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        constexpr uint32_t minus_128 = power_of_two_bf16x2(7 - 6) | 0x80008000u;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t landed = and_xor(r.low_bytes(step, i), 0x00FF00FFu, 0x00800080u);
            a[i] = cuda::bf16x2_t::fma(landed, power_of_two_bf16x2(133 - 6), minus_128);
        }
        e8m0_scales_t::apply<any, 0>(a, r.scales, step);
    }
};

} // namespace impl
} // namespace mxdnn
