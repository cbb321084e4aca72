// SPDX-License-Identifier: Apache-2.0
// int4 weights in the layout n64_b4: (code - zero point) * scale, with bf16 scales and u8 zero points, in
// blocks of 32, 64, 128 or 256 rows. A tile has as many rows as a block, 64 at least.
//
// A code becomes the integer 32 + code by landing in the mantissa of a bf16; what is to be subtracted comes
// off exactly. The product with the scale has up to 16 bits: it is two bf16, itself rounded and the rest,
// which the tensor cores multiply one after the other. The rest is exact, because an integer times the scale
// is a multiple of the scale's last bit.
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

    // The first term alone, for kernels that are not given these weights.
    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        uint32_t rest[4];
        decode<any>(a, rest, r, step);
    }
    template <bool any>
    __device__ static __forceinline__ void decode(
            uint32_t (&a)[4], uint32_t (&rest)[4], const raw_t &r, int step) {
        constexpr uint32_t landing = 0x42004200u; // 32: bit 2 of the mantissa counts 1
        constexpr uint32_t low3 = 0x001C001Cu, top = 0x00200020u, minus = 0x80008000u;
        // What XOR makes of an s4 code is 8 more than its value.
        constexpr uint32_t flip = zero_points ? 0 : top;
        const uint32_t w = r.codes[step];
        // Bits 2..0 and 3 of register i's codes, brought to bits 4..2 and 5 (see n64_b4.hpp).
        const uint32_t low[4] = {rotate_right(w, 4), rotate_right(w, 8), w << 2,
                (rotate_right(w, 10) & ~0x00040004u) | (w >> 2 & 0x00040004u)};
        const uint32_t high[4] = {
                rotate_right(w, 10), rotate_right(w, 14), rotate_right(w, 4), rotate_right(w, 16)};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = i % 2;
            uint32_t v = ((low[i] & low3) | landing | flip) ^ (high[i] & top);
            if constexpr (any) {
                const float zero =
                        zero_points ? float(r.zeros >> e8m0_scales_t::byte(step, column) * 8 & 255) : 8.f;
                v = add_bf16x2(v, landing | minus);
                v = add_bf16x2(v, to_bf16x2(-zero, -zero));
                const float scale = bf16_to_float(r.scales[step / 2], column);
                const float first = bf16_to_float(v, 0) * scale, second = bf16_to_float(v, 1) * scale;
                a[i] = __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x7632);
                rest[i] = to_bf16x2(rest_of(first), rest_of(second));
            } else {
                v = add_bf16x2(v, zero_points
                                          ? (byte_to_halves(r.zeros, e8m0_scales_t::byte(step, column)) << 2)
                                                    + (landing | minus)
                                          : 0xC220C220u); // -40
                const uint32_t scale = half_of(r.scales[step / 2], column);
                a[i] = mul_bf16x2(v, scale);
                rest[i] = cuda::bf16x2_t::fma(v, scale, a[i] ^ minus);
            }
        }
    }

private:
    __device__ static __forceinline__ float bf16_to_float(uint32_t pair, int half) {
        return __uint_as_float(half ? pair & 0xFFFF0000u : pair << 16);
    }
    // What bf16 leaves of a value that is cut off, not rounded.
    __device__ static __forceinline__ float rest_of(float v) {
        return isfinite(v) ? v - __uint_as_float(__float_as_uint(v) & 0xFFFF0000u) : 0.f;
    }
};

} // namespace impl
} // namespace mxdnn
