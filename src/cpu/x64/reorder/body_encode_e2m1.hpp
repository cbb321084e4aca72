// SPDX-License-Identifier: Apache-2.0
// bf16 to e2m1 by comparing. The seven bounds between codes, times a scale of at most four significant bits,
// are bf16 numbers, and bf16 numbers have the order of their bits. Counted from an eighth of the scale on,
// each 64 of them, half an octave, have at most one bound, and the same one under every scale. So tables have
// the code with which each such interval begins, and the last position in it that has this code.
#pragma once

#include "cpu/x64/reorder/body_encode.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

struct alignas(32) e2m1_bounds_t {
    static constexpr int codes = int(f4_e2m1_t::sign_code), interval_bits = 6, interval = 1 << interval_bits;
    static constexpr int below = 6; // intervals below the scale
    static constexpr uint8_t code[16] = {0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7};

    uint16_t first[8]; // the number that intervals are counted from
    uint8_t last[16];

    static constexpr int bytes_bits = 5; // of its size

    // The bits of a number, and of the smallest one that has a code.
    static constexpr int bits(float x) { return int(__builtin_bit_cast(uint32_t, x) >> 16); }
    static constexpr int least(float scale, int c) {
        const float bound = (f4_e2m1_t::decode(uint32_t(c - 1)) + f4_e2m1_t::decode(uint32_t(c))) / 2;
        // To which side a bound itself belongs depends on the rounding of the quotient, too.
        return bits(bound * scale) + (f4_e2m1_t::encode(bound * scale * (1 / scale)) < uint32_t(c));
    }

    constexpr e2m1_bounds_t() : first(), last() {}
    constexpr explicit e2m1_bounds_t(float scale) : first(), last() {
        for (uint16_t &f : first) f = uint16_t(bits(scale) - below * interval);
        for (uint8_t &l : last) l = uint8_t(interval - 1);
        for (int c = 1; c < codes; c++) {
            const int at = least(scale, c) - first[0];
            last[at / interval] = uint8_t(at % interval - 1);
        }
    }
    // Whether the intervals are those of code[].
    constexpr bool suits() const {
        for (int i = 0; i < 15; i++)
            if (code[i + 1] - code[i] != int(last[i] != interval - 1)) return false;
        return true;
    }
};

static_assert(sizeof(e2m1_bounds_t) == 1 << e2m1_bounds_t::bytes_bits);

// Positions of both halves of 32 elements from `first` on: their intervals, and where they are in these.
// There is no Inf and no NaN, and elements are below 8 times their scale.
struct e2m1_places_t {
    __m256i interval, position;
};
MXDNN_INLINE e2m1_places_t e2m1_places(__m256i a, __m256i b, __m256i first_a, __m256i first_b) {
    const auto distance = [](__m256i x, __m256i first) {
        return _mm256_subs_epu16(_mm256_and_si256(x, _mm256_set1_epi16(0x7fff)), first);
    };
    const auto position = [](__m256i d) {
        return _mm256_and_si256(d, _mm256_set1_epi16(e2m1_bounds_t::interval - 1));
    };
    const __m256i d = distance(a, first_a), e = distance(b, first_b);
    return {_mm256_packus_epi16(_mm256_srli_epi16(d, e2m1_bounds_t::interval_bits),
                    _mm256_srli_epi16(e, e2m1_bounds_t::interval_bits)),
            _mm256_packus_epi16(position(d), position(e))};
}
MXDNN_INLINE __m256i with_signs_e2m1(__m256i codes, __m256i a, __m256i b) {
    return _mm256_or_si256(codes, minifloat_encoder_t<f4_e2m1_t>::sign_of_code(_mm256_packs_epi16(a, b)));
}
MXDNN_INLINE __m256i table16(const uint8_t *t) { return _mm256_broadcastsi128_si256(load128(t)); }

MXDNN_INLINE __m256i encode_e2m1(__m256i a, __m256i b, __m256i first_a, __m256i first_b, __m256i last) {
    const e2m1_places_t p = e2m1_places(a, b, first_a, first_b);
    const __m256i beyond = _mm256_cmpgt_epi8(p.position, _mm256_shuffle_epi8(last, p.interval));
    const __m256i code = _mm256_shuffle_epi8(table16(e2m1_bounds_t::code), p.interval);
    return with_signs_e2m1(_mm256_sub_epi8(code, beyond), a, b);
}

// Under a power of two, which changes exponents only.
template <>
struct bf16_encoder_of<f4_e2m1_t> {
    struct type {
        static constexpr e2m1_bounds_t bounds{1.f};
        static_assert(bounds.suits());
        // An eighth of the scale is a normal number.
        static_assert(bounds.first[0] == (127 - 3) << 7);
        static constexpr mx_shift_t shift = {-3, 1, 0, 254};

        template <typename P>
        MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
            return encode_e2m1(load256(x), load256(x + 16), p.shift(0), p.shift(1), table16(bounds.last));
        }
    };
};

// Under each e4m3 scale that is a normal number below the largest. Elements of the largest may be anything.
struct nvfp4_bounds_t {
    static constexpr uint32_t least = 1 << f8_e4m3_t::mantissa_bits, end = f8_e4m3_t::max_code;
    e2m1_bounds_t of_scale[f8_e4m3_t::nan_code + 1];
    constexpr nvfp4_bounds_t() : of_scale() {
        for (uint32_t c = least; c < end; c++) of_scale[c] = e2m1_bounds_t(f8_e4m3_t::decode(c));
    }
    constexpr bool suits() const {
        for (uint32_t c = least; c < end; c++)
            if (!of_scale[c].suits()) return false;
        return true;
    }
    // At so many bytes from the first.
    const e2m1_bounds_t &at(uint32_t place) const {
        return *reinterpret_cast<const e2m1_bounds_t *>(reinterpret_cast<const uint8_t *>(of_scale) + place);
    }
};
constexpr nvfp4_bounds_t nvfp4_bounds;
static_assert(nvfp4_bounds.suits());

// 32 elements, in order: 16 under each of two scales.
MXDNN_INLINE __m256i encode_nvfp4(const uint16_t *x, uint32_t place, uint32_t next_place) {
    const e2m1_bounds_t &low = nvfp4_bounds.at(place), &high = nvfp4_bounds.at(next_place);
    const __m256i first = load_halves(low.first, high.first);
    return encode_e2m1(load_halves(x, x + 16), load_halves(x + 8, x + 24), first, first,
            load_halves(low.last, high.last));
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
