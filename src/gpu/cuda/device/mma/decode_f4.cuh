// SPDX-License-Identifier: Apache-2.0
// 4-bit floating-point weights: MXFP4 and NVFP4, in the layout n64_b4.
//
// A code lands as the bits s 000000ee m000000 of a bf16: e2m1 * 2^-126, a subnormal where ee is 0,
// which the multiplier honours. One bf16x2 product with 2^126 times the scale then gives the weight exactly.
// For MXFP4 that factor exists for scale bytes up to 128; blocks beyond (weights of 4 and more times the
// codes, and NaN) take two products, by 2^126 and by the scale. So do those of byte 0, because this makes the
// test one subtraction.
#pragma once

#include "common/layouts/n64_b4.hpp"
#include "gpu/cuda/device/mma/weight_format.cuh"

namespace mxdnn {
namespace impl {

// The codes of one word in the four registers, without scales: e2m1 * 2^-126.
__device__ __forceinline__ void land_f4(uint32_t (&a)[4], uint32_t w) {
    constexpr uint32_t mask = 0x81C081C0u, low = 0x00400040u;
    static_assert(n64_b4_bit(0, 3) == 15 && n64_b4_bit(1, 2) == 12 && n64_b4_bit(2, 0) == 0
                          && n64_b4_bit(3, 1) == 13 && n64_b4_bit(3, 0) == 4,
            "the layout these shifts are for");
    a[0] = w & mask;
    a[1] = rotate_right(w, 4) & mask;
    a[2] = (w << 6) & mask;
    a[3] = (rotate_right(w, 6) & (mask & ~low)) | ((w << 2) & low);
}

struct mxfp4_t {
    static constexpr int bits = 4, max_header = e8m0_scales_t::header_bytes;
    static constexpr bool one_step_tiles = true;
    static constexpr int terms = 1;
    static constexpr float sum_scale = 1.f;
    struct raw_t {
        uint32_t codes[4], scales;
    };
    __device__ static __forceinline__ place_t place(int thread, const tiling_t &) {
        return {e8m0_scales_t::place(thread), max_header + uint32_t(thread) * 16};
    }
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load(
            const reader_t &scales, const reader_t &codes, const tiling_t &) {
        const uint4 c = codes.read_16();
        return {{c.x, c.y, c.z, c.w}, scales.read_4()};
    }
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        return e8m0_scales_t::outside<1>(r.scales);
    }

    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        land_f4(a, r.codes[step]);
        e8m0_scales_t::apply<any, 126>(a, r.scales, step);
    }
};

// Scales are e4m3, one for 16 rows. Shifts and one addition turn normal scales into 2^118 times their value.
// So weights are too small by 2^8, and sums are multiplied by that in the end.
struct nvfp4_t {
    static constexpr int bits = 4, max_header = 256;
    static constexpr bool one_step_tiles = true;
    static constexpr int terms = 1;
    static constexpr float sum_scale = 256.f;
    struct raw_t {
        uint32_t codes[4], scales[2]; // of columns c and c + 8, 16 rows after 16 rows
    };
    __device__ static __forceinline__ place_t place(int thread, const tiling_t &) {
        return {uint32_t(thread) / 4 * 8, max_header + uint32_t(thread) * 16};
    }
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load(
            const reader_t &scales, const reader_t &codes, const tiling_t &) {
        const uint4 c = codes.read_16();
        const uint2 s = scales.read_8();
        return {{c.x, c.y, c.z, c.w}, {s.x, s.y}};
    }
    // Detects bytes that are subnormal, negative or NaN. One of the sums sets their top bit. A carry into the
    // next byte comes from such a byte.
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        uint32_t bits = 0;
#pragma unroll
        for (uint32_t s : r.scales) bits |= (s + 0x01010101u) | (s - 0x08080808u);
        return bits & 0x80808080u;
    }

    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        land_f4(a, r.codes[step]);
        const uint32_t word = r.scales[step / 2];
        if constexpr (any) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int place = step % 2 * 2 + i % 2;
                const __half scale =
                        __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(word >> place * 8 & 255), __NV_E4M3);
                const float f = __half2float(scale) / sum_scale;
                a[i] = mul_bf16x2(mul_bf16x2(a[i], power_of_two_bf16x2(126)), to_bf16x2(f, f));
            }
        } else {
            // s eeee mmm from bit 4 on is 2^-120 times the scale.
            const uint32_t f =
                    (__byte_perm(word, 0, step % 2 ? 0x4342 : 0x4140) << 4) + (120u + 118u) * 0x00800080u;
#pragma unroll
            for (int i = 0; i < 4; i++) a[i] = mul_bf16x2(a[i], half_of(f, i % 2));
        }
    }
};

} // namespace impl
} // namespace mxdnn
