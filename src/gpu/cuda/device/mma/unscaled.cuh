// SPDX-License-Identifier: Apache-2.0
// Weights without their scales, for kernels whose sums meet the scales instead: unscaled_t<format> has
//
//     exists                whether the format's codes are such weights whatever their bits
//     decode(a, raw, step)  registers a of 16 rows: what the codes stand for, less the zero point, times a
//                           power of two. It makes them small enough that sums of 32 of their products with
//                           any source are within f32
//     special(raw)          a bit mask that is 0 where all factors are right
//     factors(raw, step)    what sums over those 16 rows are multiplied by to be those of format::decode's
//                           weights, of columns c and c + 8
//     equal_factors         of 32 rows
// Those of int4 have factors of their own (unscaled_sums.cuh).
#pragma once

#include "gpu/cuda/device/mma/weight_formats.cuh"

namespace mxdnn {
namespace impl {

template <typename format>
struct unscaled_t {
    static constexpr bool exists = false;
};

// e2m1 * 2^-down.
template <int down>
__device__ __forceinline__ void land_unscaled_f4(uint32_t (&a)[4], uint32_t w) {
    land_f4(a, w);
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = mul_bf16x2(a[i], power_of_two_bf16x2(126 - down));
}

// With e8m0 scales: weights are too small by 2^down.
template <int down_>
struct unscaled_e8m0_t {
    static constexpr bool exists = true, equal_factors = true;
    static constexpr int down = down_;
    // Detects bytes of 129 and more, and 0, which is not a power of two times 2^23 of an f32.
    template <typename raw_t>
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        return e8m0_scales_t::outside<1>(r.scales);
    }
    template <typename raw_t>
    __device__ static __forceinline__ float2 factors(const raw_t &r, int step) {
        const auto factor = [&](int column) {
            const uint32_t byte = r.scales >> e8m0_scales_t::byte(step, column) * 8 & 255;
            return __uint_as_float((byte + down) << 23);
        };
        return make_float2(factor(0), factor(1));
    }
};

template <>
struct unscaled_t<mxfp4_t> : unscaled_e8m0_t<9> {
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const mxfp4_t::raw_t &r, int step) {
        land_unscaled_f4<down>(a, r.codes[step]);
    }
};

// Every scale has a factor, also NaN, subnormal and negative ones.
template <>
struct unscaled_t<nvfp4_t> {
    static constexpr bool exists = true, equal_factors = false;
    static constexpr int down = 8; // as in format::sum_scale
    static_assert(nvfp4_t::sum_scale == 1 << down, "factors are the scales");
    __device__ static __forceinline__ void decode(uint32_t (&a)[4], const nvfp4_t::raw_t &r, int step) {
        land_unscaled_f4<down>(a, r.codes[step]);
    }
    __device__ static __forceinline__ uint32_t special(const nvfp4_t::raw_t &) { return 0; }
    __device__ static __forceinline__ float2 factors(const nvfp4_t::raw_t &r, int step) {
        const uint32_t pair = r.scales[step / 2] >> step % 2 * 16;
        const __half2 v = __half2(__nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(pair), __NV_E4M3));
        return __half22float2(v);
    }
};

template <typename format>
struct unscaled_int4_t {
    static constexpr bool exists = true;
    __device__ static __forceinline__ void decode(
            uint32_t (&a)[4], const typename format::raw_t &r, int step) {
        format::decode_unscaled(a, r, step);
    }
    __device__ static __forceinline__ uint32_t special(const typename format::raw_t &r) {
        return format::special(r);
    }
};

template <int4_kind_t kind>
struct unscaled_t<int4_t<kind>> : unscaled_int4_t<int4_t<kind>> {};

} // namespace impl
} // namespace mxdnn
