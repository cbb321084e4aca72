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

// A power of two that becomes 0, or less than all values become: half of the least value, or what is beyond
// all values of E where the largest one becomes one of the largest codes.
template <typename E, typename D>
int least_exponent() {
    const int half = D::is_float ? exponent_of(magnitude_value<D>(1)) - 1 : -7,
              range = exponent_of(float(E::max)) - exponent_of(magnitude_value<E>(1));
    return std::max(half, D::emax - 2 - range);
}

} // namespace

bool recode_bytes_t::takes(const block_format_t &from, const block_format_t &to, bool with_vbmi) {
    const auto bits = [](const block_format_t &f) { return data_type_info(f.elem)->bits; };
    if (to.has_global || from.has_global) return false;
    if (from.elem == mxdnn_s4)
        return !with_vbmi && from.zp == zero_point_kind_t::none && from.scale_dt == mxdnn_bf16
               && from.block % int(mx_block) == 0 && from.block <= recode_t::most_block
               && (to.family == quant_family_t::mx
                       || (to.scale_dt == mxdnn_f8_e4m3 && to.elem == mxdnn_f4_e2m1));
    if (to.elem == mxdnn_s4) {
        const bool fits = to.zp == zero_point_kind_t::none && to.scale_bytes == 2
                          && to.block % int(mx_block) == 0 && to.block <= recode_t::most_block;
        return fits
               && (from.elem == mxdnn_f4_e2m1 ? !with_vbmi
                                              : from.family == quant_family_t::mx && bits(from) >= 6);
    }
    if (from.elem == mxdnn_f4_e2m1)
        return from.scale_dt == mxdnn_e8m0
                       ? to.elem == from.elem && to.scale_dt == mxdnn_f8_e4m3
                       : to.family == quant_family_t::mx && (!with_vbmi || to.elem == from.elem);
    if (from.family != quant_family_t::mx || bits(from) < 6) return false;
    if (to.elem == mxdnn_f4_e2m1) return to.scale_dt == mxdnn_e8m0 || to.scale_dt == mxdnn_f8_e4m3;
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
        for (int i = 0; i < 16; i++) halves.added[i] = uint8_t(order[i] - i);
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
            less[at] = uint8_t(octave * (apart + least_exponent<E, D>() + int(e8m0_one)) - base);
            entries[at][of_mx] = less[at];
        } else {
            // The highest bit becomes bit 7, or bit 6 where the new scale is twice as large.
            less[at] = uint8_t(1 - D::emax - apart);
            entries[at][of_mx] = uint8_t(1 << less[at]);
        }
        entries[at][steps] = scale[at];
    }
    for (uint32_t i = 1; i < 2 * magnitudes; i++) {
        float x = float(i) / 64;
        if constexpr (E::is_float)
            x = std::ldexp(
                    1.f + float(int(i) % octave) / float(octave), int(i) / octave + least_exponent<E, D>());
        code[0][i] = uint8_t(mx_quantize<D>(x, E::is_float ? e8m0_one : e8m0_one + 1 - uint32_t(D::emax)));
    }
    if constexpr (D::is_float)
        halves.most_code = uint8_t(D::max_code);
    else
        halves.most_code = uint8_t(D::highest);
    fill_halves(!E::is_float);
}

void recode_bytes_t::fill_halves(bool of_integers) {
    for (int h = 0; h < 16; h++) {
        const uint8_t *const codes = code[0] + 16 * h;
        const bool is_step = of_integers && h >= 4 && codes[15] - codes[0] <= 1;
        halves.first[h] = uint8_t(codes[0] + of_integers);
        halves.bound[h] = 16;
        for (int l = 15; l > 0 && is_step && codes[l] > codes[0]; l--) halves.bound[h] = uint8_t(l);
        // Of integers those of the last h with as many bits.
        const int part = of_integers ? (h > 0) + (h > 1) + (h > 3) : h;
        for (int l = 0; l < 16 && part < 4 && h < 8; l++)
            halves.more[part][l] = uint8_t(is_step ? 0 : codes[l] - codes[0]);
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
}

// A number of amax is that of an exponent that is 1 larger, and has 32nds of a power of two: products of both
// mantissas.
template <typename D>
void recode_bytes_t::fill_entries_of_e4m3() {
    constexpr int first = 1, numbers = 32;
    const auto value = [](int i) { return f4_e2m1_t::decode(uint32_t(i % 8)) * (1.f + float(i / 8) / 8); };
    for (int i = 0; i < 64; i++)
        if (i % 8 > 0)
            amax[i] = uint8_t(int(std::ldexp(value(i), 5 - exponent_of(value(i))))
                              + numbers * (exponent_of(value(i)) + first - 1));
    // From some number of a power of two on, the scale is twice as large.
    const auto scale_of = [&](int n) {
        return int(e8m0_from_amax<D>(magnitude_bits(float(numbers + n) / numbers), to.rounding));
    };
    while (amax_added < numbers && scale_of(numbers - 1 - amax_added) > scale_of(0)) amax_added++;
    amax_offset = scale_of(0) - first - f8_e4m3_t::bias;
    least_apart = amax_offset;
    for (int apart = 0; apart < octaves; apart++)
        for (int i = 0; i < 64; i++) {
            const int to_scale = amax_offset + apart; // of the exponent 0
            entries[8 * apart + i / 8][i % 8] =
                    uint8_t(mx_quantize<D>(std::ldexp(value(i), -f8_e4m3_t::bias), uint32_t(to_scale)));
        }
}

void recode_bytes_t::fill_quotients() {
    for (int n = 0; n <= 2 * most_parts; n++)
        for (int m = 0; m < 8; m++) {
            const float quotient =
                    f4_e2m1_t::decode(uint32_t(m)) * (float(n + n % 2) / 2 + (n % 2 ? 0 : 0.5f)) / parts;
            quotients[n][m] = uint8_t(std::min(std::nearbyint(quotient), 8.f));
        }
}

void recode_bytes_t::fill_of_int4() {
    const auto fill = [&](auto &&scale_of, auto &&code_of) {
        const auto fill_codes = [&](uint8_t *codes, float old_scale, uint32_t new_scale) {
            for (int m = 1; m <= 8; m++) codes[m - 1] = uint8_t(code_of(float(m) * old_scale, new_scale));
        };
        for (int i = 0; i < mantissas; i++)
            for (int largest = 1; largest <= 8; largest++) {
                const float x = 1.f + float(i) / mantissas;
                scale_of_int4[largest][i] = uint8_t(scale_of(magnitude_bits(float(largest) * x)));
                fill_codes(codes_of_int4[largest * mantissas + i], x, scale_of_int4[largest][i]);
            }
        for (int i = 0; i < octaves_of_int4 * mantissas && least > 0; i++)
            fill_codes(codes_of_int4[9 * mantissas + i], bf16_t::decode(uint32_t(first_scale_of_int4 + i)),
                    uint32_t(least));
    };
    if (to.scale_dt == mxdnn_f8_e4m3) {
        unit = least = 1 << f8_e4m3_t::mantissa_bits;
        greatest = int(f8_e4m3_t::max_code);
        return fill([](uint32_t amax) { return nvfp4_scale(amax); },
                [](float x, uint32_t scale) { return nvfp4_quantize(x, scale); });
    }
    greatest = 254;
    visit_type(mx_element_types(), to.elem, [&](auto d) {
        using D = decltype(d);
        fill([&](uint32_t amax) { return e8m0_from_amax<D>(amax, to.rounding); },
                [](float x, uint32_t scale) { return mx_quantize<D>(x, scale); });
    });
}

// All codes, since there are few.
void recode_bytes_t::fill_nibbles() {
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
    if (from.elem == mxdnn_s4) fill_of_int4();
    if (from.elem == mxdnn_f4_e2m1) {
        number<f4_e2m1_t>();
        if (to.elem == mxdnn_s4) {
            fill_quotients();
        } else if (from.scale_dt == mxdnn_f8_e4m3) {
            fill_of_e4m3();
            visit_type(mx_element_types(), to.elem, [&](auto d) { fill_entries_of_e4m3<decltype(d)>(); });
        } else {
            fill_nibbles();
        }
    }
    visit_type(mx_element_types(), from.elem, [&](auto e) {
        using E = decltype(e);
        if constexpr (E::bits >= 6) {
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
