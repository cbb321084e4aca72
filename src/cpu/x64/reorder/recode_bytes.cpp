// SPDX-License-Identifier: Apache-2.0
// The tables, by the scalar reference: with values whose scales and products are normal numbers.
#include "cpu/x64/reorder/recode_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/formats/quantize_block.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

constexpr uint32_t e8m0_one = 127;

template <typename E>
float magnitude_value(uint32_t magnitude) {
    return std::fabs(E::decode(magnitude));
}
int exponent_of(float x) { return std::ilogb(x); }

// Eight for each power of two: which quarter a value is in, and whether it is its first one. Bounds between
// codes, and between scales, are such values.
int eighths_of(float x) {
    const uint32_t mantissa = bits_of(x) & 0x7fffff;
    return exponent_of(x) * 8 + int(mantissa >> 21) * 2 + ((mantissa & 0x1fffff) != 0);
}
float of_eighths(int n) {
    const int in_octave = n & 7;
    return std::ldexp(1.f + float(in_octave) / 8, (n - in_octave) / 8);
}

// Half of the least value, which becomes 0, as a power of two.
template <typename D>
constexpr int least_exponent() {
    if constexpr (D::is_float)
        return -D::bias - D::mantissa_bits;
    else
        return -7;
}

} // namespace

bool recode_bytes_t::takes(const block_format_t &from, const block_format_t &to, bool with_vbmi) {
    const auto bits = [](const block_format_t &f) { return data_type_info(f.elem)->bits; };
    if (to.has_global || from.has_global) return false;
    if (!with_vbmi && to.elem != mxdnn_f4_e2m1) return false;
    if (from.elem == mxdnn_f4_e2m1)
        return to.elem == from.elem
               && ((from.scale_dt == mxdnn_e8m0 && to.scale_dt == mxdnn_f8_e4m3)
                       || (from.scale_dt == mxdnn_f8_e4m3 && to.scale_dt == mxdnn_e8m0));
    if (from.family != quant_family_t::mx) return false;
    if (bits(from) != 8) return false;
    if (to.elem == mxdnn_f4_e2m1) return to.scale_dt == mxdnn_e8m0 || to.scale_dt == mxdnn_f8_e4m3;
    if (to.elem == mxdnn_s4)
        return to.zp == zero_point_kind_t::none && to.scale_bytes == 2 && to.block % int(mx_block) == 0
               && to.block <= recode_t::most_block;
    // The numbers of values of f8_e5m2 would need more than 8 bits.
    return to.family == quant_family_t::mx && !(from.elem == mxdnn_f8_e4m3 && to.elem == mxdnn_f8_e5m2);
}

template <typename E>
void recode_bytes_t::number() {
    if constexpr (E::is_float) {
        most = uint8_t(E::max_code);
        octave = 1 << E::mantissa_bits;
        bits_below = 23 - E::mantissa_bits;
        constexpr int greatest_number = 254; // so that all have 8 bits, and one is beyond them
        base = int(bits_of(float(E::max)) >> bits_below) - greatest_number;
        for (uint32_t m = 1; m <= most; m++)
            order[m] = uint8_t(int(bits_of(magnitude_value<E>(m)) >> bits_below) - base);
    } else {
        most = uint8_t(E::highest + 1); // of the least code
    }
}

template <typename E>
void recode_bytes_t::fill_steps() {
    using elem_t = f4_e2m1_t;
    constexpr uint8_t never = 255;
    constexpr int fp8_unit = 1 << f8_e4m3_t::mantissa_bits, added = 94; // so that scales are bytes
    const bool is_mx = to.scale_dt == mxdnn_e8m0;
    unit = is_mx ? 1 : fp8_unit;
    offset = -unit * int(e8m0_one) - (is_mx ? 0 : added);
    least = is_mx ? 0 : fp8_unit;
    greatest = is_mx ? 254 : int(f8_e4m3_t::max_code);
    std::memset(step, never, sizeof(step));
    std::memset(step_of_least, never, sizeof(step_of_least));
    const auto reaches = [&](float x, uint32_t code, int i) {
        return (is_mx ? mx_quantize<elem_t>(x, code) : nvfp4_quantize(x, code)) >= uint32_t(i + 1);
    };
    uint32_t first[steps] = {}; // for larger blocks, they are no smaller
    for (uint32_t largest = 1; largest <= most; largest++) {
        const int exponent = is_mx ? 0 : exponent_of(magnitude_value<E>(largest));
        const auto value = [&](uint32_t m) { return std::ldexp(magnitude_value<E>(m), -exponent); };
        const uint32_t amax = magnitude_bits(value(largest)), at = largest % magnitudes,
                       code = is_mx ? e8m0_from_amax<elem_t>(amax, to.rounding) : nvfp4_scale(amax);
        scale[at] = uint8_t(is_mx ? int(code) : int(code) + unit * exponent + added);
        for (int i = 0; i < steps; i++) {
            while (first[i] <= largest && !reaches(value(first[i]), code, i)) first[i]++;
            if (first[i] <= largest) step[i][at] = uint8_t(first[i]);
        }
    }
    for (int s = 0; s < scales && !is_mx; s++)
        for (int i = 0; i < steps; i++)
            for (uint32_t m = most; m > 0; m--) {
                if (!reaches(std::ldexp(magnitude_value<E>(m), s - scales_below), uint32_t(least), i)) break;
                step_of_least[i][s] = uint8_t(m);
            }
    // No bound lies between the two largest magnitudes of integers.
    const auto reached = [](uint8_t step) { return uint8_t(std::min<int>(step, magnitudes) - 1); };
    for (int i = 0; i < steps; i++) {
        for (int m = 0; m < magnitudes; m++) entries[m][i] = reached(step[i][m]);
        for (int s = 0; s < scales; s++) entries[magnitudes + s][i] = reached(step_of_least[i][s]);
    }
    for (int m = 0; m < magnitudes; m++) entries[m][steps] = scale[m];
}

template <typename E, typename D>
void recode_bytes_t::fill_codes() {
    offset = -int(e8m0_one);
    greatest = 254;
    for (uint32_t largest = 1; largest <= most; largest++) {
        const uint32_t at = largest % magnitudes,
                       new_scale =
                               e8m0_from_amax<D>(magnitude_bits(magnitude_value<E>(largest)), to.rounding);
        const int apart = int(new_scale) - int(e8m0_one);
        scale[at] = uint8_t(new_scale);
        if constexpr (E::is_float) {
            less[at] = uint8_t(octave * (apart + least_exponent<D>() - 1 + int(e8m0_one)) - base);
        } else {
            less[at] = uint8_t(7 - exponent_of(float(largest))); // the highest bit becomes bit 7
            is_twice[at] = uint8_t(apart + less[at] != 1 - D::emax ? 0xff : 0);
            any_twice |= is_twice[at] != 0;
        }
    }
    for (uint32_t i = 1; i < 2 * magnitudes; i++)
        for (uint32_t twice = 0; twice < 2; twice++) {
            float x = float(i) / 64;
            uint32_t under = e8m0_one + 1 - uint32_t(D::emax) + twice;
            if constexpr (E::is_float) {
                // Number `octave` is the least power of two that does not always become 0.
                const int m = int(i) % octave, e = int(i) / octave - 1 + least_exponent<D>();
                x = int(i) < octave ? 0.f : std::ldexp(1.f + float(m) / float(octave), e);
                under = e8m0_one;
            }
            code[twice][i] = uint8_t(mx_quantize<D>(x, under));
        }
}

// By the mantissa of the old scale and the magnitude.
void recode_bytes_t::fill_of_e4m3() {
    using elem_t = f4_e2m1_t;
    constexpr int first = 6, first_code = 3; // added to exponents
    for (int i = 0; i < 64; i++) {
        const int mantissa = i / 8;
        if (i % 8 > 0)
            order[i] = uint8_t(
                    eighths_of(elem_t::decode(uint32_t(i % 8)) * (1.f + float(mantissa) / 8)) + 8 * first);
    }
    for (int i = 0; i < 8; i++)
        scale[i] = uint8_t(e8m0_from_amax<elem_t>(magnitude_bits(of_eighths(i)), to.rounding));
    offset = -first - f8_e4m3_t::bias;
    base = 8 * (first - first_code + f8_e4m3_t::bias - int(e8m0_one));
    for (int i = 8; i < 64; i++) code[0][i] = uint8_t(elem_t::encode(of_eighths(i - 8 * first_code)));
    for (int apart = 0; apart < octaves; apart++)
        for (int i = 0; i < 64; i++)
            entries[8 * apart + i / 8][i % 8] = code[0][std::max(order[i] - 8 * apart, 0)];
}

// All codes, since there are few.
void recode_bytes_t::fill_nibbles() {
    number<f4_e2m1_t>();
    fill_steps<f4_e2m1_t>();
    for (int largest = 0; largest <= most; largest++)
        for (int m = 0; m <= most; m++)
            for (int i = 0; i < steps; i++) code[0][8 * largest + m] += uint8_t(m >= step[i][largest]);
    for (int s = 0; s < nibble_scales; s++)
        for (int m = 0; m <= most; m++)
            for (int i = 0; i < steps; i++)
                code[1][8 * s + m] += uint8_t(m >= step_of_least[i][s + first_nibble_scale]);
}

recode_bytes_t::recode_bytes_t(const block_format_t &f, const block_format_t &t) : from(f), to(t) {
    if (from.scale_dt == mxdnn_f8_e4m3)
        fill_of_e4m3();
    else if (from.elem == mxdnn_f4_e2m1)
        fill_nibbles();
    visit_type(mx_element_types(), from.elem, [&](auto e) {
        using E = decltype(e);
        if constexpr (E::bits == 8) {
            number<E>();
            if (to.elem == mxdnn_f4_e2m1) return fill_steps<E>();
            visit_type(mx_element_types(), to.elem, [&](auto d) {
                using D = decltype(d);
                if constexpr (D::bits != 4) fill_codes<E, D>();
            });
        }
    });
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
