// SPDX-License-Identifier: Apache-2.0
// Conversion between f32 and any binary floating-point type of at most 16 bits, on integers alone: what
// the traits of a small float derive from. A new such type is its parameters, an id and a name.
#pragma once

#include "common/formats/float_bits.hpp"
#include "common/formats/roles.hpp"

namespace mxdnn {
namespace impl {

// What the codes of the largest exponent field mean.
enum class specials_t {
    none, // they are numbers
    nan,  // numbers, but all mantissa bits set is NaN ("fn" types)
    ieee  // mantissa 0 is Inf, others are NaN
};

// The result of converting NaN, Inf and magnitudes that round beyond the largest value.
enum class overflow_t {
    saturate, // the largest value; NaN gives the code 0x7F..., or the largest value if there is no NaN
    infinity  // Inf; NaN keeps its sign and upper payload bits and becomes quiet
};

template <int exponent_bits_, int mantissa_bits_, int bias_, specials_t specials_, overflow_t overflow_>
struct minifloat_codec_t {
    static_assert(exponent_bits_ >= 2 && exponent_bits_ <= 8 && mantissa_bits_ >= 1 && mantissa_bits_ <= 10);
    static_assert(bias_ <= 127, "values below f32's least subnormal are not supported");
    static_assert(overflow_ == overflow_t::saturate || specials_ == specials_t::ieee);

    static constexpr int bits = 1 + exponent_bits_ + mantissa_bits_;
    static constexpr int exponent_bits = exponent_bits_;
    static constexpr int mantissa_bits = mantissa_bits_;
    static constexpr int bias = bias_;
    static constexpr int emin = 1 - bias_; // exponent of the smallest normal value
    static constexpr specials_t specials = specials_;

    static constexpr uint32_t sign_code = 1u << (bits - 1);
    static constexpr uint32_t top_field = (1u << exponent_bits_) - 1; // largest exponent field
    static constexpr uint32_t inf_code = top_field << mantissa_bits_; // only for specials_t::ieee
    static constexpr uint32_t max_code = specials_ == specials_t::none  ? sign_code - 1
                                         : specials_ == specials_t::nan ? sign_code - 2
                                                                        : inf_code - 1;
    static constexpr uint32_t nan_code = specials_ == specials_t::none ? max_code
                                         : overflow_ == overflow_t::saturate
                                                 ? sign_code - 1
                                                 : inf_code | (1u << (mantissa_bits_ - 1));

    // Bits above the code are ignored.
    MXDNN_HD static constexpr float decode(uint32_t code) {
        const uint32_t sign = (code & sign_code) ? f32_sign_mask : 0;
        const uint32_t field = (code >> mantissa_bits) & top_field;
        uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
        if (specials == specials_t::nan && (code & (sign_code - 1)) == sign_code - 1)
            return float_of(sign | f32_nan_bits);
        if (specials == specials_t::ieee && field == top_field)
            return float_of(
                    sign | f32_inf_bits | (mantissa ? 0x400000u : 0u) | mantissa << (23 - mantissa_bits));

        const uint32_t hidden = 1u << mantissa_bits;
        int exponent = emin;
        if (field != 0) {
            exponent = int(field) - bias;
            mantissa |= hidden;
        } else if (mantissa == 0) {
            return float_of(sign);
        }
        while (!(mantissa & hidden) && exponent > -126) {
            mantissa <<= 1;
            exponent--;
        }
        const uint32_t f32_field = (mantissa & hidden) ? uint32_t(exponent + 127) : 0;
        return float_of(sign | f32_field << 23 | (mantissa & (hidden - 1)) << (23 - mantissa_bits));
    }

    // Rounds to nearest even. With `saturating`, a type that has Inf saturates as others do. NaN is still
    // converted as the type says.
    MXDNN_HD static constexpr uint32_t convert(float x, bool saturating) {
        const uint32_t magnitude = magnitude_bits(x);
        const uint32_t sign = (bits_of(x) & f32_sign_mask) ? sign_code : 0;
        if (magnitude > f32_inf_bits) {
            if (overflow_ == overflow_t::saturate) return nan_code;
            return sign | nan_code | ((magnitude & 0x7fffff) >> (23 - mantissa_bits));
        }
        const uint32_t beyond = saturating ? max_code : inf_code;
        if (magnitude == f32_inf_bits) return sign | beyond;

        // The value is significand * 2^(exponent - 23). Neighbouring codes differ by 2^(rounded_at -
        // mantissa_bits).
        const uint32_t field = magnitude >> 23;
        const uint32_t significand = (magnitude & 0x7fffff) | (field ? 0x800000u : 0u);
        const int exponent = int(field ? field : 1) - 127;
        const int rounded_at = exponent > emin ? exponent : emin;
        const int shift = 23 - mantissa_bits + (rounded_at - exponent);
        if (shift > 24) return sign; // less than half of the smallest value
        const uint32_t rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
        uint32_t steps = significand >> shift;
        if (rest > half || (rest == half && (steps & 1))) steps++;
        // A carry out of the mantissa increments the exponent field, which is right.
        const uint32_t code = (uint32_t(rounded_at - emin) << mantissa_bits) + steps;
        return sign | (code > max_code ? beyond : code);
    }
};

template <int exponent_bits_, int mantissa_bits_, int bias_, specials_t specials_,
        overflow_t overflow_ = overflow_t::saturate>
struct minifloat_t : minifloat_codec_t<exponent_bits_, mantissa_bits_, bias_, specials_, overflow_> {
    using codec_t = minifloat_codec_t<exponent_bits_, mantissa_bits_, bias_, specials_, overflow_>;
    static constexpr bool is_float = true;
    static constexpr bool is_signed = true;
    static constexpr float max = codec_t::decode(codec_t::max_code);
    static constexpr float min_normal = exp2_f32(codec_t::emin);
    static constexpr float min_subnormal = exp2_f32(codec_t::emin - codec_t::mantissa_bits);
    static constexpr int emax = int(codec_t::max_code >> codec_t::mantissa_bits) - codec_t::bias;

    MXDNN_HD static constexpr uint32_t encode(float x) {
        return codec_t::convert(x, overflow_ == overflow_t::saturate);
    }
    // For scales: values beyond the largest, also Inf, become the largest.
    MXDNN_HD static constexpr uint32_t encode_saturating(float x) { return codec_t::convert(x, true); }
};

} // namespace impl
} // namespace mxdnn
