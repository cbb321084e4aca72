// SPDX-License-Identifier: Apache-2.0
// MXFP4 tiles of the layout n64_b4 to bf16 fragments of the A operand.
//
// A code lands as the bits s 000000ee m000000 of a bf16: e2m1 * 2^-126, a subnormal where ee is 0,
// which the multiplier honours. One bf16x2 product with 2^(byte - 1) = 2^126 * 2^(byte - 127) then
// gives the weight exactly. That factor exists for scale bytes up to 128; blocks beyond (weights
// of 2 and more times the largest code, and NaN) take two products, by 2^126 and by the scale.
#pragma once

#include "common/layouts/n64_b4.hpp"
#include "gpu/cuda/device/ptx/copy.cuh"

namespace mxdnn {
namespace impl {

__device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
    uint32_t r;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

// The codes of one word in the four registers, unscaled: e2m1 * 2^-126.
__device__ __forceinline__ void land_f4(uint32_t (&a)[4], uint32_t w) {
    constexpr uint32_t mask = 0x81C081C0u, low = 0x00400040u;
    static_assert(n64_b4_bit(0, 3) == 15 && n64_b4_bit(1, 2) == 12 && n64_b4_bit(2, 0) == 0
                          && n64_b4_bit(3, 1) == 13 && n64_b4_bit(3, 0) == 4,
            "the layout these shifts are for");
    a[0] = w & mask;
    a[1] = __funnelshift_r(w, w, 4) & mask;
    a[2] = (w << 6) & mask;
    a[3] = (__funnelshift_r(w, w, 6) & (mask & ~low)) | ((w << 2) & low);
}

// e8m0 as bf16, twice: 0 is the subnormal 2^-127, 255 NaN.
__device__ __forceinline__ uint32_t e8m0_to_bf16x2(uint32_t byte) {
    const uint32_t one = byte == 0 ? 0x0040u : byte == 255 ? 0x7FC0u : byte << 7;
    return one * 0x00010001u;
}

struct mxfp4_t {
    static constexpr int tile_rows = 64;
    static constexpr int header_bytes = 128, tile_bytes = header_bytes + 2048;

    // Codes and scales of one thread for one tile: the blocks of rows 0..31 and 32..63, columns
    // c and c + 8 of each, a byte apiece.
    struct raw_t {
        uint32_t codes[4];
        uint32_t scales;
    };
    __device__ static __forceinline__ raw_t load(uint32_t tile, int thread) {
        const uint4 codes = ptx::load_shared_16(tile + header_bytes + thread * 16);
        return {{codes.x, codes.y, codes.z, codes.w}, ptx::load_shared_4(tile + thread / 4 * 4)};
    }
    // Whether one product is enough for all four blocks; a bit test, so that many can be joined.
    static constexpr uint32_t large_scales = 0x80808080u;
    __device__ static __forceinline__ uint32_t large(const raw_t &r) { return r.scales & large_scales; }

    // The fragment of 16 rows, `step` 0..3. `any` takes every scale byte, else only small ones.
    template <bool any>
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const raw_t &r, int step) {
        land_f4(a, r.codes[step]);
#pragma unroll
        for (int column = 0; column < 2; column++) {
            const uint32_t byte = r.scales >> (step / 2 * 16 + column * 8) & 255;
            if constexpr (any) {
                const uint32_t f = e8m0_to_bf16x2(byte);
                a[column] = mul_bf16x2(mul_bf16x2(a[column], 0x7E807E80u), f); // 2^126
                a[column + 2] = mul_bf16x2(mul_bf16x2(a[column + 2], 0x7E807E80u), f);
            } else {
                const uint32_t f = byte * 0x00800080u + 0x3F003F00u; // 2^(byte - 1)
                a[column] = mul_bf16x2(a[column], f);
                a[column + 2] = mul_bf16x2(a[column + 2], f);
            }
        }
    }
};

} // namespace impl
} // namespace mxdnn
