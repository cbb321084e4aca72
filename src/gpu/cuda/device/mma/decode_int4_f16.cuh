// SPDX-License-Identifier: Apache-2.0
// int4 weights for a source of f16: as f16, which holds codes less their zero points as exactly as bf16 does.
// Scales and floating zeros are f16, too, but of int4_kind_t::any. Weights that have no factor are Inf or NaN
// then, or have one of another type; they are multiplied as bf16 (unscaled_sums.cuh).
#pragma once

#include "gpu/cuda/device/mma/unscaled.cuh"

namespace mxdnn {
namespace impl {

// The type of weights without their scale: 2^-9 of integers.
struct int4_f16_weights_t : cuda::f16x2_t {
    static constexpr int least = -24, down = 9; // the exponent of bit 0 alone
    __device__ static constexpr uint32_t power_of_two(int e) { return power_of_two_f16x2(e - down); }
};

template <int4_kind_t kind>
struct int4_f16_t : int4_t<kind> {
    using of_bf16 = int4_t<kind>;
    using raw_t = typename of_bf16::raw_t;
    // Products with f16 are far from the limits of f32. So sums of those with f16 scales may be too small by
    // the same factor as the weights.
    using f16_weights_t = int4_f16_weights_t;
    static constexpr int down = f16_weights_t::down;
    static constexpr float sum_scale = of_bf16::any_types ? 1.f : 1 << down;

    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        if constexpr (of_bf16::any_types) {
            return of_bf16::special(r);
        } else { // the largest exponent carries
            uint32_t bits = 0;
            const auto look_at = [&](uint32_t s) { bits |= (s & 0x7FFF7FFFu) + 0x04000400u; };
#pragma unroll
            for (int i = 0; i < 2; i++) {
                look_at(r.scales[i]);
                if constexpr (of_bf16::may_have_zeros) look_at(r.zeros[i]);
            }
            return bits & 0x80008000u;
        }
    }
    __device__ static __forceinline__ void decode_unscaled(uint32_t (&a)[4], const raw_t &r, int step) {
        of_bf16::template land<f16_weights_t>(a, r, step);
    }
    __device__ static constexpr uint32_t unscaled_ones() { return f16_weights_t::power_of_two(0); }
    __device__ static __forceinline__ float unscaled_factor(const raw_t &r, int step, int column) {
        if constexpr (of_bf16::any_types)
            return of_bf16::scale(r, step, column) * float(1 << down);
        else
            return value(r.scales[step / 2], column);
    }
    __device__ static __forceinline__ float unscaled_zero(const raw_t &r, int step, int column) {
        if constexpr (of_bf16::any_types)
            return of_bf16::zero(r, step, column) * float(1 << down);
        else if constexpr (of_bf16::may_have_zeros)
            return value(r.zeros[step / 2], column);
        else
            return 0.f;
    }

private:
    __device__ static __forceinline__ float value(uint32_t pair, int column) {
        const __half2 v = *reinterpret_cast<const __half2 *>(&pair);
        return column ? __high2float(v) : __low2float(v);
    }
};

template <int4_kind_t kind>
inline constexpr bool has_unscaled<int4_f16_t<kind>> = true;
template <int4_kind_t kind>
inline constexpr bool is_f16<int4_f16_t<kind>> = true;
template <int4_kind_t kind>
inline constexpr bool calls_any<int4_f16_t<kind>> = kind == int4_kind_t::s4 || kind == int4_kind_t::zeros;

template <int4_kind_t kind>
struct unscaled_t<int4_f16_t<kind>> : unscaled_int4_t<int4_f16_t<kind>> {};

// The form of the weights of a format if the source is f16. Only int4 has such sources.
template <typename format>
struct with_f16_source_t {
    using type = format;
};
template <int4_kind_t kind>
struct with_f16_source_t<int4_t<kind>> {
    using type = int4_f16_t<kind>;
};

} // namespace impl
} // namespace mxdnn
