// SPDX-License-Identifier: Apache-2.0
// MXFP6 weights in the layout n64_b6: codes land as bits of a bf16 that are the element times a power of two,
// then meet that power and their scale in one product (see decode_f4.cuh).
#pragma once

#include "common/layouts/n64_b6.hpp"
#include "gpu/cuda/device/mma/weight_format.cuh"

namespace mxdnn {
namespace impl {

template <int exponent_bits>
struct mxfp6_t {
    static_assert(exponent_bits == 2 || exponent_bits == 3, "e2m3 or e3m2");
    static constexpr int bits = 6, max_header = e8m0_scales_t::header_bytes;
    static constexpr bool one_step_tiles = true;
    static constexpr int terms = 1;
    static constexpr float sum_scale = 1.f;
    static constexpr int low_plane = 128 * 16; // bytes of the low plane of a step
    struct raw_t {
        uint32_t low[4], top[2], scales;
    };
    __device__ static __forceinline__ place_t place(int thread, const tiling_t &) {
        return {e8m0_scales_t::place(thread), max_header + uint32_t(thread) * 16};
    }
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load(
            const reader_t &scales, const reader_t &codes, const tiling_t &) {
        const uint4 c = codes.read_16();
        const uint2 t = codes.read_8(low_plane - int(threadIdx.x) % 128 * 8);
        return {{c.x, c.y, c.z, c.w}, {t.x, t.y}, scales.read_4()};
    }
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        return e8m0_scales_t::outside<1>(r.scales);
    }

    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        const uint32_t w = r.low[step], t = r.top[step / 2];
        if constexpr (exponent_bits == 2) {
            // The low four bits go to the upper half of the low byte, the fifth bit and the sign to the ends
            // of the high byte. Shifts and masks process all bytes of a word. Then each register takes four
            // bytes: low ones of its codes, high ones from the same rotation for both steps of the plane's
            // word.
            constexpr uint32_t high_nibbles = 0xF0F0F0F0u, ends = 0x81818181u;
            const uint32_t upper = w & high_nibbles, lower = w << 4 & high_nibbles;
            constexpr bool odd_byte[4] = {false, false, true, true}; // of the halves of the low plane
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t high = rotate_right(t, 2 * i) & ends;
                const uint32_t low_selector = odd_byte[i] ? 0x0301 : 0x0200;
                const uint32_t high_selector = step % 2 ? 0x4060 : 0x7050;
                a[i] = __byte_perm(i % 3 ? lower : upper, high, low_selector | high_selector);
            }
        } else {
            // The low four bits go to bit 5 and above, the fifth bit above them, the sign to the top.
            constexpr uint32_t low_mask = 0x01E001E0u, fifth = 0x02000200u, sign = 0x80008000u;
            constexpr int first[4] = {4, 0, 8, 12}; // position of a register's bits in the low plane
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int up = 5 - first[i];
                const uint32_t low = up >= 0 ? w << up : w >> -up;
                const uint32_t top =
                        rotate_right(t, 2 * (step % 2 * 4 + i)); // sign at bit 15, fifth at bit 8
                a[i] = and_or(low, low_mask, and_or(top, sign, top << 1 & fifth));
            }
        }
        // The bias is 1 for e2m3, 3 for e3m2, and 127 for bf16.
        e8m0_scales_t::apply<any, exponent_bits == 2 ? 126 : 124>(a, r.scales, step);
    }
};

} // namespace impl
} // namespace mxdnn
