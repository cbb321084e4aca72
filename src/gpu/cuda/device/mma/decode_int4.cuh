// SPDX-License-Identifier: Apache-2.0
// int4 weights in the layout n64_i4: (code - zero point) * scale, (code - 8) * scale + zero, or code * scale
// + minimum, in blocks of 32, 64, 128 or 256 rows. A tile has as many rows as a block, 64 at least.
//
// A code lands as the low bits of a bf16, which are it times a power of two; one multiplication and addition
// gives it less its zero point, exactly. Such integers are what is multiplied (unscaled_sums.cuh): sums of 32
// rows meet their scale in f32, whatever its type. Floating zeros multiply the sums of the source alone.
//
// Where the scale is so large that weights, or what the sums would be multiplied by, are beyond f32, and
// where it or the zero is no number, weights meet them before they are multiplied, as f32; they are the sum
// of three bf16 then. All three have the weight's sign, and none is 0 where it is not, so that an infinity
// times it is that infinity.
#pragma once

#include "common/layouts/n64_i4.hpp"
#include "gpu/cuda/device/mma/decode_8bit.cuh"
#include "gpu/cuda/device/mma/weight_format.cuh"
#include "gpu/cuda/device/ptx/half2.cuh"

namespace mxdnn {
namespace impl {

template <int4_kind_t kind>
struct int4_t {
    static constexpr bool any_types = kind == int4_kind_t::any,
                          may_have_zeros = any_types || kind == int4_kind_t::zeros;
    static constexpr int bits = 4, max_header = 2 * 64
                                                * (any_types                               ? 8
                                                        : kind == int4_kind_t::zeros       ? 4
                                                        : kind == int4_kind_t::zero_points ? 3
                                                                                           : 2);
    static constexpr bool one_step_tiles = false;
    static constexpr int terms = 3;
    static constexpr float sum_scale = 1.f;
    struct raw_t {
        // For rows 0..31 and 32..63: scales of columns c and c + 8, side by side, and their zeros.
        uint32_t codes[4], scales[any_types ? 4 : 2], zeros[any_types ? 4 : may_have_zeros ? 2 : 1];
        cuda::packed::int4_types_t types;

        __device__ bool has_zero_points() const {
            return any_types ? types.zero_points : kind == int4_kind_t::zero_points;
        }
        __device__ bool is_signed() const { return any_types ? types.is_signed : kind == int4_kind_t::s4; }
        __device__ bool has_zeros() const {
            return any_types ? types.zeros != value_type_t::none : may_have_zeros;
        }
    };
    __device__ static __forceinline__ place_t place(int thread, const tiling_t &t) {
        const uint32_t pair = uint32_t(thread) / 4;
        return {pair * 2 * bytes_of(t.int4.scales) * t.blocks, t.header_bytes + uint32_t(thread) * 16};
    }
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load(
            const reader_t &scales, const reader_t &codes, const tiling_t &t) {
        raw_t r{};
        const uint4 c = codes.read_16();
        r.codes[0] = c.x, r.codes[1] = c.y, r.codes[2] = c.z, r.codes[3] = c.w;
        r.types = t.int4;
        // If both halves of the rows share a block, they read the same scales twice.
        const int second = t.blocks == 2;
        load_pairs(r.scales, scales, t.int4.scales, 0, second);
        // Relative to the scales of a thread.
        const auto zeros_at = [&](int bytes) {
            const int pair = int(threadIdx.x) % 128 / 4, scale_bytes = bytes_of(t.int4.scales);
            return (64 * scale_bytes + pair * 2 * (bytes - scale_bytes)) * t.blocks;
        };
        if (r.has_zero_points()) {
            const int at = zeros_at(1);
            r.zeros[0] = scales.read_2(at) | scales.read_2(at + 2 * second) << 16;
        } else if constexpr (may_have_zeros) {
            if (r.has_zeros())
                load_pairs(r.zeros, scales, t.int4.zeros, zeros_at(bytes_of(t.int4.zeros)), second);
        }
        return r;
    }
    // The same where all rows of a step are of one block; and the next step of the block. No floating zeros.
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load_long(
            const reader_t &scales, const reader_t &codes, const tiling_t &t) {
        raw_t r = load_next(raw_t{}, codes);
        r.types = t.int4;
        r.scales[0] = r.scales[1] = scales.read_4();
        if (r.has_zero_points()) {
            const int pair = int(threadIdx.x) % 128 / 4;
            r.zeros[0] = scales.read_2(64 * 2 - pair * 2) * 0x10001u;
        }
        return r;
    }
    template <typename reader_t>
    __device__ static __forceinline__ raw_t load_next(raw_t r, const reader_t &codes) {
        const uint4 c = codes.read_16();
        r.codes[0] = c.x, r.codes[1] = c.y, r.codes[2] = c.z, r.codes[3] = c.w;
        return r;
    }
    // Scales and floating zeros that cannot become factors.
    __device__ static __forceinline__ uint32_t special(const raw_t &r) {
        uint32_t bits = beyond(r.scales, r.types.scales);
        if constexpr (may_have_zeros)
            if (r.has_zeros()) bits |= beyond(r.zeros, r.types.zeros);
        return bits;
    }

    // Weights without their scale, which are exact in one bf16. They are too small by 2^13, so that their
    // sums with any source are within f32.
    __device__ static __forceinline__ void decode_unscaled(uint32_t (&a)[4], const raw_t &r, int step) {
        land<bf16_weights_t>(a, r, step);
    }
    // One in every place, too small by the same factor.
    __device__ static constexpr uint32_t unscaled_ones() { return bf16_weights_t::power_of_two(0); }
    // The factor of sums of their products, for column c or c + 8.
    __device__ static __forceinline__ float unscaled_factor(const raw_t &r, int step, int column) {
        return scale(r, step, column) * unscaled_up;
    }
    // The factor of sums of products with those ones.
    __device__ static __forceinline__ float unscaled_zero(const raw_t &r, int step, int column) {
        return zero(r, step, column) * unscaled_up;
    }

    // Whether scale and zero are applied to the weights of a column before they are multiplied.
    __device__ static __forceinline__ bool meets_early(const raw_t &r, int step, int column) {
        return is_beyond(scale(r, step, column)) || is_beyond(zero(r, step, column));
    }
    // Weights of such columns, and without scales those of other columns, as three terms. left: the number of
    // rows from the tile's first row on. Further rows are 0, because Inf times the zeros of the source would
    // not be.
    __device__ static __forceinline__ void decode_any(
            uint32_t (&a)[terms][4], const raw_t &r, int step, int left) {
        uint32_t v[4];
        decode_unscaled(v, r, step);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool early = meets_early(r, step, i % 2);
            float rest[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                rest[h] = bf16_to_float(v[i], h);
                if (step * 16 + i / 2 * 8 + int(threadIdx.x) % 4 * 2 + h >= left)
                    rest[h] = 0.f;
                else if (early) {
                    rest[h] = __fmul_rn(rest[h] * unscaled_up, scale(r, step, i % 2));
                    if (r.has_zeros()) rest[h] = __fadd_rn(rest[h], zero(r, step, i % 2));
                }
            }
            // The first term is truncated after one of the last bits of f32, the second one after one of 16
            // bits, of which the rest has as many: so there is a rest.
            uint32_t first[2];
#pragma unroll
            for (int h = 0; h < 2; h++) first[h] = cut(rest[h], 1), rest[h] = rest_of(rest[h], first[h]);
            a[0][i] = __byte_perm(first[0], first[1], 0x7632);
#pragma unroll
            for (int h = 0; h < 2; h++) first[h] = cut(rest[h], 0x100), rest[h] = rest_of(rest[h], first[h]);
            a[1][i] = __byte_perm(first[0], first[1], 0x7632);
            a[2][i] = to_bf16x2(rest[0], rest[1]);
        }
    }

protected:
    using value_type_t = cuda::packed::value_type_t;
    static constexpr int unscaled_down = 13;
    struct bf16_weights_t : cuda::bf16x2_t {
        static constexpr int least = -133; // exponent of bit 0 alone
        __device__ static __forceinline__ uint32_t mul(uint32_t a, uint32_t b) { return mul_bf16x2(a, b); }
        // Too small by the same factor as weights.
        __device__ static constexpr uint32_t power_of_two(int e) {
            return power_of_two_bf16x2(e - unscaled_down);
        }
    };
    // Weights of such a type, without their scale.
    template <typename weights_t>
    __device__ static __forceinline__ void land(uint32_t (&a)[4], const raw_t &r, int step) {
        // The bits below bit 8 are an integer times a power of two. One mask gives registers 0 and 2, another
        // one, 4 bits higher, registers 1 and 3. With its top bit inverted an s4 is larger by 8.
        constexpr uint32_t sign = 0x80008000u;
        const uint32_t from[2] = {r.codes[step], r.codes[step] >> 8};
        const uint32_t flip = r.is_signed() ? 0x00080008u : 0;
        const bool from_middle = r.is_signed() || (r.has_zeros() && !r.types.minima);
        uint32_t off = from_middle ? weights_t::power_of_two(3) | sign : sign;
        if (r.has_zero_points())
            off = weights_t::mul(__byte_perm(r.zeros[0], 0, step / 2 ? 0x4342 : 0x4140),
                    weights_t::power_of_two(-weights_t::least) | sign);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = i % 2 * 4;
            const uint32_t landed = and_xor(from[i / 2], 0x000F000Fu << at, flip << at);
            a[i] = weights_t::fma(
                    landed, weights_t::power_of_two(-weights_t::least - at), half_of(off, i % 2));
        }
    }

    static constexpr float unscaled_up = 1 << unscaled_down;
    // From this exponent on, 2^115, products of f32 and bf16 may leave the range of f32. For f16 these are
    // only Inf and NaN.
    static constexpr uint32_t least_beyond = 127 + 128 - unscaled_down, least_beyond_f16 = 31;

    __device__ static __forceinline__ int bytes_of(value_type_t type) {
        return any_types && type == value_type_t::f32 ? 4 : 2;
    }
    template <typename reader_t, size_t n>
    __device__ static __forceinline__ void load_pairs(
            uint32_t (&to)[n], const reader_t &from, value_type_t type, int at, int second) {
        if constexpr (any_types)
            if (type == value_type_t::f32) {
                const uint2 x = from.read_8(at), y = from.read_8(at + 8 * second);
                to[0] = x.x, to[1] = x.y, to[2] = y.x, to[3] = y.y;
                return;
            }
        to[0] = from.read_4(at), to[1] = from.read_4(at + 4 * second);
    }
    // For 16 rows and a column of a thread.
    template <size_t n>
    __device__ static __forceinline__ float value(
            const uint32_t (&pairs)[n], value_type_t type, int step, int column) {
        const int block = step / 2;
        if constexpr (any_types)
            if (type == value_type_t::f32) return __uint_as_float(pairs[block * 2 + column]);
        if (type == value_type_t::bf16) return bf16_to_float(pairs[block], column);
        const __half2 v = *reinterpret_cast<const __half2 *>(&pairs[block]);
        return column ? __high2float(v) : __low2float(v);
    }
    __device__ static __forceinline__ float scale(const raw_t &r, int step, int column) {
        return value(r.scales, r.types.scales, step, column);
    }
    __device__ static __forceinline__ float zero(const raw_t &r, int step, int column) {
        if constexpr (may_have_zeros)
            if (r.has_zeros()) return value(r.zeros, r.types.zeros, step, column);
        return 0.f;
    }
    // A bit mask that is 0 if no value is beyond the limit.
    template <size_t n>
    __device__ static __forceinline__ uint32_t beyond(const uint32_t (&pairs)[n], value_type_t type) {
        uint32_t bits = 0;
        if constexpr (any_types)
            if (type == value_type_t::f32) {
#pragma unroll
                for (uint32_t v : pairs) bits |= (v & 0x7FFFFFFFu) + (0x80000000u - (least_beyond << 23));
                return bits & 0x80000000u;
            }
        const uint32_t up =
                (0x8000u - (type == value_type_t::bf16 ? least_beyond << 7 : least_beyond_f16 << 10))
                * 0x00010001u;
#pragma unroll
        for (int i = 0; i < 2; i++) bits |= (pairs[i] & 0x7FFF7FFFu) + up;
        return bits & 0x80008000u;
    }
    __device__ static __forceinline__ bool is_beyond(float v) {
        return !(fabsf(v) < __uint_as_float(least_beyond << 23));
    }
    __device__ static __forceinline__ float bf16_to_float(uint32_t pair, int half) {
        return __uint_as_float(half ? pair & 0xFFFF0000u : pair << 16);
    }
    // The bits of the first term of a weight that has further terms, minus this many units of f32.
    __device__ static __forceinline__ uint32_t cut(float v, uint32_t units) {
        const uint32_t bits = __float_as_uint(v);
        return (v == 0.f || !isfinite(v) ? bits : bits - units) & 0xFFFF0000u;
    }
    // Inf and NaN themselves.
    __device__ static __forceinline__ float rest_of(float v, uint32_t first) {
        return isfinite(v) ? v - __uint_as_float(first) : v;
    }
};

template <int4_kind_t kind>
inline constexpr bool has_unscaled<int4_t<kind>> = true;

} // namespace impl
} // namespace mxdnn
