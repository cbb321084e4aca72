// SPDX-License-Identifier: Apache-2.0
// bf16 to e2m1 by comparing. The seven bounds between codes, times a scale of at most four significant bits,
// are bf16 numbers, and bf16 numbers have the order of their bits. Counted from a suitable number on, each 64
// of them, half an octave, have at most one bound. So a table has the code with which each such interval
// begins, and the last position in it that has this code.
#pragma once

#include "cpu/x64/reorder/body_encode.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

struct alignas(64) e2m1_bounds_t {
    static constexpr int codes = int(f4_e2m1_t::sign_code), interval_bits = 6, interval = 1 << interval_bits;

    uint16_t first[8]; // the number that intervals are counted from; smaller ones have code 0
    uint8_t code[16], last[16];

    constexpr e2m1_bounds_t() : first(), code(), last() {}
    constexpr explicit e2m1_bounds_t(float scale) : first(), code(), last() {
        int least[codes] = {}; // the smallest number of each code
        for (int c = 1; c < codes; c++) {
            const float bound = (f4_e2m1_t::decode(uint32_t(c - 1)) + f4_e2m1_t::decode(uint32_t(c))) / 2;
            // To which side a bound itself belongs depends on the rounding of the quotient, too.
            const bool is_below = f4_e2m1_t::encode(bound * scale * (1 / scale)) < uint32_t(c);
            least[c] = int(__builtin_bit_cast(uint32_t, bound * scale) >> 16) + is_below;
        }
        int from = least[1] - 1;
        while (shares_interval(least, from)) from--;
        for (uint16_t &f : first) f = uint16_t(from);
        for (int i = 0; i < 16; i++) {
            const int begin = from + i * interval;
            last[i] = uint8_t(interval - 1);
            for (int c = 1; c < codes; c++) {
                if (least[c] <= begin)
                    code[i] = uint8_t(c);
                else if (least[c] < begin + interval)
                    last[i] = uint8_t(least[c] - begin - 1);
            }
        }
    }

private:
    static constexpr bool shares_interval(const int *least, int from) {
        for (int c = 2; c < codes; c++)
            if ((least[c] - from) / interval == (least[c - 1] - from) / interval) return true;
        return false;
    }
};

// `first`, `code` and `last` of the scales of both halves of 32 elements. There is no Inf and no NaN, and
// elements are below 8 times their scale.
MXDNN_INLINE __m256i encode_e2m1(
        __m256i a, __m256i b, __m256i first_a, __m256i first_b, __m256i code, __m256i last) {
    const auto distance = [](__m256i x, __m256i first) {
        return _mm256_subs_epu16(_mm256_and_si256(x, _mm256_set1_epi16(0x7fff)), first);
    };
    const auto position = [](__m256i d) {
        return _mm256_and_si256(d, _mm256_set1_epi16(e2m1_bounds_t::interval - 1));
    };
    const __m256i d = distance(a, first_a), e = distance(b, first_b);
    const __m256i interval = _mm256_packus_epi16(_mm256_srli_epi16(d, e2m1_bounds_t::interval_bits),
            _mm256_srli_epi16(e, e2m1_bounds_t::interval_bits));
    const __m256i beyond = _mm256_cmpgt_epi8(
            _mm256_packus_epi16(position(d), position(e)), _mm256_shuffle_epi8(last, interval));
    const __m256i sign = minifloat_encoder_t<f4_e2m1_t>::sign_of_code(_mm256_packs_epi16(a, b));
    return _mm256_or_si256(_mm256_sub_epi8(_mm256_shuffle_epi8(code, interval), beyond), sign);
}

// Under a power of two, which changes exponents only.
template <>
struct bf16_encoder_of<f4_e2m1_t> {
    struct type {
        static constexpr e2m1_bounds_t bounds{1.f};
        // Intervals are counted from a quarter of the scale on.
        static_assert(bounds.first[0] == (127 - 2) << 7);
        static constexpr mx_shift_t shift = {-2, 1, 0, 254}; // a quarter of the scale is a normal number

        template <typename P>
        MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
            return encode_e2m1(load256(x), load256(x + 16), p.shift(0), p.shift(1),
                    _mm256_broadcastsi128_si256(load128(bounds.code)),
                    _mm256_broadcastsi128_si256(load128(bounds.last)));
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
    // At so many bytes from the first.
    const e2m1_bounds_t &at(uint32_t place) const {
        return *reinterpret_cast<const e2m1_bounds_t *>(reinterpret_cast<const uint8_t *>(of_scale) + place);
    }
};
constexpr nvfp4_bounds_t nvfp4_bounds;

// 32 elements, in order: 16 under each of two scales.
MXDNN_INLINE __m256i encode_nvfp4(const uint16_t *x, uint32_t place, uint32_t next_place) {
    const e2m1_bounds_t &low = nvfp4_bounds.at(place), &high = nvfp4_bounds.at(next_place);
    const __m256i first = load_halves(low.first, high.first);
    return encode_e2m1(load_halves(x, x + 16), load_halves(x + 8, x + 24), first, first,
            load_halves(low.code, high.code), load_halves(low.last, high.last));
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
