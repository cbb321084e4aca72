// SPDX-License-Identifier: Apache-2.0
// What encodes bf16, 32 words of two vectors at a time: bytes with codes, in each lane eight of one vector,
// then eight of the other. of(b, i): parameters of rows, each word of a block of its own, from number i on.
// of_line(b, i, j): of a line, its first half of block i and the other of j, which is another one for NVFP4
// only. Each is told what blocks have as `shift` (or null), may change parameters once for all of them
// (prepare()), and may see elements that it does not fit (rare()): any_t does then.
#pragma once

#include "cpu/x64/reorder/body_quantise.hpp"
#include "cpu/x64/reorder/body_words_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Codes of a type with signs, at bit `place`: magnitudes, and the signs of x and y.
template <typename E>
MXDNN_INLINE __m512i with_signs(__m512i magnitudes, __m512i x, __m512i y, int place) {
    const int down = 8 - E::bits - place;
    __m512i signs = _mm512_packs_epi16(x, y);
    if (down) signs = _mm512_srli_epi16(signs, unsigned(down));
    return or_and(magnitudes, signs, _mm512_set1_epi8(char(E::sign_code << place)));
}

struct nothing_seen_t {};
// For an encoder that can encode all elements.
struct fits_all_t {
    using seen_t = nothing_seen_t;
    MXDNN_INLINE seen_t unseen() { return {}; }
    MXDNN_INLINE bool rare(const seen_t &) { return false; }
    MXDNN_INLINE void prepare(blocks_t &, int) {}
};

// bf16 to minifloats under powers of two, as mx_bf16_encoder_t, in words. b.shift is smaller by `less` than
// the shift there.
template <typename E, int less = 0>
struct added_words_t : fits_all_t {
    static constexpr int bits = E::bits, m = E::mantissa_bits;
    static constexpr const mx_shift_t *shift = &mx_bf16_encoder_t<E>::shift;
    __m512i least;
    MXDNN_INLINE added_words_t of(const blocks_t &b, int i) { return at_least(load_words_of(b.shift + i)); }
    MXDNN_INLINE added_words_t of_line(const blocks_t &b, int i, int) {
        return at_least(load_words_of_line(b.shift + i));
    }
    MXDNN_INLINE __m512i codes(
            seen_t &, const added_words_t &a, __m512i x, const added_words_t &b, __m512i y, int place) {
        const __m512i c = _mm512_packus_epi16(a.code(x), b.code(y));
        return with_signs<E>(_mm512_min_epu8(c, _mm512_set1_epi8(E::max_code)), x, y, place);
    }

private:
    MXDNN_INLINE added_words_t at_least(__m512i v) {
        added_words_t w;
        w.least = less ? _mm512_add_epi16(v, words(less)) : v;
        return w;
    }
    __m512i code(__m512i x) const {
        const __m512i e = _mm512_max_epu16(_mm512_and_si512(x, words(0x7f80)), least);
        const __m512i power = _mm512_add_epi16(e, words((23 - m) << 7));
        const __m512i upper = dwords(0xffff0000);
        const __m512i even =
                sum(_mm512_slli_epi32(_mm512_and_si512(x, words(0x7fff)), 16), _mm512_slli_epi32(power, 16));
        const __m512i odd = sum(_mm512_and_si512(x, dwords(0x7fff0000)), _mm512_and_si512(power, upper));
        return _mm512_add_epi16(join_low(even, odd), _mm512_srli_epi16(_mm512_sub_epi16(e, least), 7 - m));
    }
    MXDNN_INLINE __m512i sum(__m512i a, __m512i b) {
        return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
    }
};

// x minus the number that makes the exponent's bias that of the code, without the lowest `bits` bits of the
// mantissa. A tie has been moved to one side: plus one if a bit of `odd_bits` is set.
template <int bits>
MXDNN_INLINE __m512i cut_words(__m512i x, __m512i off, __m512i odd_bits) {
    const __m512i v = _mm512_subs_epu16(_mm512_and_si512(x, words(0x7fff)), off);
    const __mmask32 odd = _mm512_test_epi16_mask(x, odd_bits);
    return _mm512_srli_epi16(_mm512_mask_add_epi16(v, odd, v, words(1)), bits);
}

// To 8 bits: rounded_bf16_encoder_t in words.
template <typename E>
struct rounded_words_t {
    using r = rounding_t<E>;
    static constexpr int bits = E::bits, cut = r::cut, spare = r::spare;
    static constexpr const mx_shift_t *shift = &r::shift;
    using any_t = added_words_t<E, r::less>;
    using seen_t = __m512i; // the smallest codes minus one, with `spare`
    MXDNN_INLINE seen_t unseen() { return _mm512_set1_epi8(-1); }
    MXDNN_INLINE bool rare(const seen_t &seen) {
        return _mm512_cmplt_epu8_mask(seen, _mm512_set1_epi8(r::least - 1)) != 0;
    }
    MXDNN_INLINE void prepare(blocks_t &, int) {}

    __m512i off;
    MXDNN_INLINE rounded_words_t of(const blocks_t &b, int i) { return {load_words_of(b.shift + i)}; }
    MXDNN_INLINE rounded_words_t of_line(const blocks_t &b, int i, int) {
        return {load_words_of_line(b.shift + i)};
    }
    MXDNN_INLINE __m512i codes(seen_t &seen, const rounded_words_t &a, __m512i x, const rounded_words_t &b,
            __m512i y, int place) {
        const __m512i v = _mm512_packus_epi16(
                cut_words<cut>(x, a.off, words(1 << cut)), cut_words<cut>(y, b.off, words(1 << cut)));
        seen = _mm512_min_epu8(seen, _mm512_sub_epi8(v, _mm512_set1_epi8(1)));
        const __m512i c = _mm512_subs_epu8(v, _mm512_set1_epi8(spare));
        return with_signs<E>(_mm512_min_epu8(c, _mm512_set1_epi8(E::max_code)), x, y, place);
    }
};

// The exponent and two bits of the mantissa decide about e2m1, after a tie has been moved to one side: minus
// one if the even code is below, so that an exact tie falls there. Intervals of a quarter of an octave begin
// at 1/8 of the smallest normal value; a table has 16 of them, from the last but one of code 1 on. Below them
// the code is 1 or 0.
constexpr mx_shift_t e2m1_shift = {-3, 0, 1, 254};
struct e2m1_codes_t {
    static constexpr int first = 9;
    alignas(16) uint8_t code[2][16]; // at bit 0, at bit 4
    constexpr e2m1_codes_t() : code() {
        for (int i = 0; i < 16; i++) {
            const int interval = first + i; // by a value inside it
            code[0][i] = uint8_t(
                    f4_e2m1_t::encode((1.125f + float(interval % 4) / 4) * float(1 << (interval / 4)) / 8));
            code[1][i] = uint8_t(code[0][i] << 4);
        }
    }
};
constexpr e2m1_codes_t e2m1_codes;

// bf16 numbers as intervals begin: lower ones, and the bits of odd codes. `any`: elements may be beyond all
// intervals.
struct e2m1_cut_t {
    __m512i off, odd_bits;
};
template <bool any>
MXDNN_INLINE __m512i e2m1_codes_of(
        __m512i x, const e2m1_cut_t &cut_x, __m512i y, const e2m1_cut_t &cut_y, int place) {
    const __m512i v = _mm512_packus_epi16(
            cut_words<5>(x, cut_x.off, cut_x.odd_bits), cut_words<5>(y, cut_y.off, cut_y.odd_bits));
    __m512i i = _mm512_subs_epu8(v, _mm512_set1_epi8(e2m1_codes_t::first));
    if (any) i = _mm512_min_epu8(i, _mm512_set1_epi8(15));
    const __mmask64 nonzero =
            _mm512_test_epi8_mask(v, _mm512_set1_epi8(char(~3))); // a quarter of 1, and more
    const __m512i codes = _mm512_broadcast_i32x4(load128(e2m1_codes.code[place / 4]));
    return with_signs<f4_e2m1_t>(_mm512_maskz_shuffle_epi8(nonzero, codes, i), x, y, place);
}

// Computed scales leave every element below 8.
struct e2m1_words_t : fits_all_t {
    static constexpr int bits = 4;
    static constexpr const mx_shift_t *shift = &e2m1_shift;
    __m512i off;
    MXDNN_INLINE e2m1_words_t of(const blocks_t &b, int i) { return with(load_words_of(b.shift + i)); }
    MXDNN_INLINE e2m1_words_t of_line(const blocks_t &b, int i, int) {
        return with(load_words_of_line(b.shift + i));
    }
    MXDNN_INLINE __m512i codes(
            seen_t &, const e2m1_words_t &a, __m512i x, const e2m1_words_t &b, __m512i y, int place) {
        const __m512i odd_bits = words(1 << 6);
        return e2m1_codes_of<false>(x, {a.off, odd_bits}, y, {b.off, odd_bits}, place);
    }

private:
    MXDNN_INLINE e2m1_words_t with(__m512i v) {
        e2m1_words_t w;
        w.off = v;
        return w;
    }
};

// Elements that are multiplied by a factor.
struct factor_words_t : fits_all_t {
    static constexpr const mx_shift_t *shift = nullptr;
    halves_t factor;
};

struct mxint8_words_t : factor_words_t {
    static constexpr int bits = 8;
    MXDNN_INLINE mxint8_words_t of(const blocks_t &b, int i) { return with(load_halves_of(b.factor + i)); }
    MXDNN_INLINE mxint8_words_t of_line(const blocks_t &b, int i, int) {
        return with(load_halves_of_line(b.factor, i));
    }
    MXDNN_INLINE __m512i codes(
            seen_t &, const mxint8_words_t &a, __m512i x, const mxint8_words_t &b, __m512i y, int) {
        return _mm512_max_epi8(
                _mm512_packs_epi16(a.steps(x), b.steps(y)), _mm512_set1_epi8(char(-s8_t::highest)));
    }

private:
    MXDNN_INLINE mxint8_words_t with(const halves_t &f) {
        mxint8_words_t w;
        w.factor = f;
        return w;
    }
    // Rounded by the addition: at most 128 steps, in the low bits.
    __m512i steps(__m512i x) const {
        const __m512 grid = _mm512_set1_ps(0x1.8p23f * s8_t::step);
        const halves_t y = bf16_halves(x);
        return join_low(_mm512_castps_si512(_mm512_fmadd_ps(y.even, factor.even, grid)),
                _mm512_castps_si512(_mm512_fmadd_ps(y.odd, factor.odd, grid)));
    }
};

// As in minifloat_encoder_t.
struct nvfp4_words_t : factor_words_t {
    using E = f4_e2m1_t;
    using encoder_t = minifloat_encoder_t<E>;
    static constexpr int bits = 4, m = E::mantissa_bits;
    MXDNN_INLINE nvfp4_words_t of(const blocks_t &b, int i) { return with(load_halves_of(b.factor + i)); }
    MXDNN_INLINE nvfp4_words_t of_line(const blocks_t &b, int i, int j) {
        return with(load_halves_of_line(b.factor, i, j));
    }
    MXDNN_INLINE __m512i codes(
            seen_t &, const nvfp4_words_t &a, __m512i x, const nvfp4_words_t &b, __m512i y, int place) {
        __m512i c = _mm512_packus_epi16(a.code(x), b.code(y));
        c = _mm512_min_epu8(c, _mm512_set1_epi8(E::max_code));
        return with_signs<E>(place ? _mm512_slli_epi16(c, unsigned(place)) : c, x, y, place);
    }

private:
    MXDNN_INLINE nvfp4_words_t with(const halves_t &f) {
        nvfp4_words_t w;
        w.factor = f;
        return w;
    }
    __m512i code(__m512i x) const {
        const halves_t y = multiply(bf16_halves(_mm512_and_si512(x, words(0x7fff))), factor);
        const __m512i v = _mm512_srli_epi16(join_low(steps(y.even), steps(y.odd)), 7 - m);
        return _mm512_sub_epi16(v, words(encoder_t::base));
    }
    MXDNN_INLINE __m512i steps(__m512 y) {
        const __m512 exponent = _mm512_castsi512_ps(dwords(inf_bits));
        const __m512 e = _mm512_and_ps(_mm512_max_ps(y, _mm512_set1_ps(encoder_t::least_normal)), exponent);
        const __m512 sum = _mm512_fmadd_ps(e, _mm512_set1_ps(encoder_t::shift), y);
        return _mm512_madd_epi16(_mm512_castps_si512(sum), dwords((1 << 16) | (1 << (7 - m))));
    }
};

// NVFP4 without a global scale. x has 8 significant bits and is divided by a scale s of 4 bits. The quotient
// is a boundary between codes, or at least one step of x, divided by s, away from it. A factor larger by
// `up`, truncated to bf16, therefore keeps what is on a boundary there, and what is below below. What is
// above becomes at least the next bf16 number. Boundaries are 1, 1.25, 1.5 and 1.75 times a power of two; all
// of them hold for 0.00363 < up < 0.00397. Only 1 / 1.875 is rounded such that a value on 1.25 gets above it.
struct nvfp4_cut_words_t : factor_words_t {
    static constexpr int bits = 4;
    static constexpr float up = 1.0038f;
    __m512i odd_bits;
    MXDNN_INLINE void prepare(blocks_t &b, int n) {
        for_blocks(n, [&](int i) {
            b.factor[i] *= up;
            b.shift[i] = (b.scale[i] & 7) == 7 ? 3 << 5 : 1 << 6;
        });
    }
    MXDNN_INLINE nvfp4_cut_words_t of(const blocks_t &b, int i) {
        return with(load_halves_of(b.factor + i), load_words_of(b.shift + i));
    }
    MXDNN_INLINE nvfp4_cut_words_t of_line(const blocks_t &b, int i, int j) {
        return with(load_halves_of_line(b.factor, i, j),
                _mm512_mask_blend_epi32(
                        0xff00, load_words_of_line(b.shift + i), load_words_of_line(b.shift + j)));
    }
    MXDNN_INLINE __m512i codes(seen_t &, const nvfp4_cut_words_t &a, __m512i x, const nvfp4_cut_words_t &b,
            __m512i y, int place) {
        const __m512i off = words(((127 + e2m1_shift.offset) << 7) + e2m1_shift.added); // a scale of 1
        return e2m1_codes_of<true>(a.scaled(x), {off, a.odd_bits}, b.scaled(y), {off, b.odd_bits}, place);
    }

private:
    MXDNN_INLINE nvfp4_cut_words_t with(const halves_t &f, __m512i odd_bits) {
        nvfp4_cut_words_t w;
        w.factor = f;
        w.odd_bits = odd_bits;
        return w;
    }
    __m512i scaled(__m512i x) const {
        const halves_t y = multiply(bf16_halves(x), factor);
        return join_high(_mm512_castps_si512(y.even), _mm512_castps_si512(y.odd));
    }
};

// As encode_affine_by_reciprocal(). The second rounding, to integers, is also done by an addition.
template <typename E>
struct affine_words_t : factor_words_t {
    static constexpr int bits = E::bits;
    __m512i zero_point;
    MXDNN_INLINE affine_words_t of(const blocks_t &b, int i) {
        return with(load_halves_of(b.factor + i), load_words_of(b.zp + i));
    }
    MXDNN_INLINE affine_words_t of_line(const blocks_t &b, int i, int) {
        return with(load_halves_of_line(b.factor, i), load_words_of_line(b.zp + i));
    }
    MXDNN_INLINE __m512i codes(
            seen_t &, const affine_words_t &a, __m512i x, const affine_words_t &b, __m512i y, int place) {
        const __m512i v = _mm512_packs_epi16(a.steps(x), b.steps(y));
        __m512i c = _mm512_max_epi8(
                _mm512_min_epi8(v, _mm512_set1_epi8(char(E::highest))), _mm512_set1_epi8(char(E::lowest)));
        if (E::is_signed) c = _mm512_and_si512(c, _mm512_set1_epi8(char(E::code_mask)));
        return place ? _mm512_slli_epi16(c, unsigned(place)) : c;
    }

private:
    MXDNN_INLINE affine_words_t with(const halves_t &f, __m512i zp) {
        affine_words_t w;
        w.factor = f;
        w.zero_point = zp;
        return w;
    }
    __m512i steps(__m512i x) const {
        const halves_t y = bf16_halves(x);
        return _mm512_add_epi16(join_low(steps(y.even, factor.even), steps(y.odd, factor.odd)), zero_point);
    }
    MXDNN_INLINE __m512i steps(__m512 y, __m512 f) {
        constexpr float grid = 768.f, integers = 0x1.8p23f; // whose low 16 bits are zero
        return _mm512_castps_si512(
                _mm512_add_ps(_mm512_fmadd_ps(y, f, _mm512_set1_ps(grid)), _mm512_set1_ps(integers - grid)));
    }
};

// The encoder for anything that W cannot encode.
template <typename W>
struct instead_of {
    using type = W;
};
template <typename E>
struct instead_of<rounded_words_t<E>> {
    using type = typename rounded_words_t<E>::any_t;
};
template <typename W>
using any_of_t = typename instead_of<W>::type;

template <typename E>
struct mx_words_of_t {
    using type = added_words_t<E>;
};
template <>
struct mx_words_of_t<f4_e2m1_t> {
    using type = e2m1_words_t;
};
template <>
struct mx_words_of_t<f8_e4m3_t> {
    using type = rounded_words_t<f8_e4m3_t>;
};
template <>
struct mx_words_of_t<f8_e5m2_t> {
    using type = rounded_words_t<f8_e5m2_t>;
};
template <>
struct mx_words_of_t<s8_t> {
    using type = mxint8_words_t;
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
