// SPDX-License-Identifier: Apache-2.0
// int4 weights whose scales, and floating zeros, are known to be bf16: becoming a factor takes them fewer
// instructions than those whose type is looked at (decode_int4.cuh).
#pragma once

#include "gpu/cuda/device/mma/unscaled.cuh"

namespace mxdnn {
namespace impl {

template <int4_kind_t kind>
struct int4_bf16_t : int4_t<kind> {
    using raw_t = typename int4_t<kind>::raw_t;
    static_assert(!int4_t<kind>::any_types, "scales of 16 bits");

    // Detects scales and zeros that become 2^128 or larger when multiplied by 2^13, by which unscaled weights
    // are too small: this adds 13 to their exponents, and one more turns the largest one into 256.
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        uint32_t bits = 0;
        const auto look_at = [&](uint32_t s) { bits |= (s & 0x7FFF7FFFu) + (up - power_of_two_bf16x2(-1)); };
#pragma unroll
        for (int i = 0; i < 2; i++) {
            look_at(r.scales[i]);
            if constexpr (int4_t<kind>::may_have_zeros) look_at(r.zeros[i]);
        }
        return bits & 0x80008000u;
    }
    __device__ static __forceinline__ float unscaled_factor(const raw_t &r, int step, int column) {
        return factor(r.scales[step / 2], column);
    }
    __device__ static __forceinline__ float unscaled_zero(const raw_t &r, int step, int column) {
        if constexpr (int4_t<kind>::may_have_zeros)
            return factor(r.zeros[step / 2], column);
        else
            return 0.f;
    }

private:
    // One divided by what one has become.
    static constexpr uint32_t up = power_of_two_bf16x2(127) - int4_t<kind>::unscaled_ones();

    __device__ static __forceinline__ float factor(uint32_t pair, int column) {
        const uint32_t factors = mul_bf16x2(pair, up);
        return __uint_as_float(column ? factors & 0xFFFF0000u : factors << 16);
    }
};

template <int4_kind_t kind>
inline constexpr bool has_unscaled<int4_bf16_t<kind>> = true;

template <int4_kind_t kind>
struct unscaled_t<int4_bf16_t<kind>> : unscaled_int4_t<int4_bf16_t<kind>> {};

} // namespace impl
} // namespace mxdnn
