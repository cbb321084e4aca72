// SPDX-License-Identifier: Apache-2.0
// Codes of 8 bits to elements of MX with 6 or 8 bits, eight columns in a vector of AVX2. A number of 8 bits
// says what a magnitude becomes. Its halves are looked up, since tables have 16 bytes.
#pragma once

#include "cpu/x64/reorder/body_recode_columns.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// What numbers become.
struct halves_of_numbers_t {
    __m256i added, first, bound, more[4], most_code;

    MXDNN_INLINE halves_of_numbers_t of(const recode_bytes_t::halves_t &h) {
        const auto load = [](const uint8_t *t) { return in_both_lanes(load128(t)); };
        return {load(h.added), load(h.first), load(h.bound),
                {load(h.more[0]), load(h.more[1]), load(h.more[2]), load(h.more[3])},
                _mm256_set1_epi8(char(h.most_code))};
    }
    // `upper`: the upper half of every number.
    MXDNN_INLINE __m256i codes_of_integers(const halves_of_numbers_t &t, __m256i number, __m256i upper) {
        // Bytes from 128 on are negative, and look up 0.
        const __m256i l = _mm256_and_si256(number, _mm256_set1_epi8(char(0x8f)));
        const auto from = [&](int n) { return _mm256_cmpgt_epi8(number, _mm256_set1_epi8(char(n - 1))); };
        __m256i more = _mm256_blendv_epi8(
                _mm256_shuffle_epi8(t.more[0], l), _mm256_shuffle_epi8(t.more[1], l), from(16));
        more = _mm256_blendv_epi8(more, _mm256_shuffle_epi8(t.more[2], l), from(32));
        more = _mm256_blendv_epi8(more, _mm256_shuffle_epi8(t.more[3], l), from(64));
        const __m256i lower = _mm256_and_si256(number, _mm256_set1_epi8(15)),
                      is_below = _mm256_cmpgt_epi8(_mm256_shuffle_epi8(t.bound, upper), lower);
        return _mm256_add_epi8(_mm256_add_epi8(_mm256_shuffle_epi8(t.first, upper), more), is_below);
    }
    MXDNN_INLINE __m256i codes_of_floats(const halves_of_numbers_t &t, __m256i number, __m256i upper) {
        const __m256i l = _mm256_and_si256(number, _mm256_set1_epi8(15)),
                      part = _mm256_min_epu8(number, _mm256_set1_epi8(63)),
                      is_odd = _mm256_slli_epi16(part, 3);
        const auto one_of = [&](int i) {
            return _mm256_blendv_epi8(
                    _mm256_shuffle_epi8(t.more[i], l), _mm256_shuffle_epi8(t.more[i + 1], l), is_odd);
        };
        const __m256i more = _mm256_blendv_epi8(one_of(0), one_of(2), _mm256_slli_epi16(part, 2));
        return _mm256_min_epu8(_mm256_add_epi8(_mm256_shuffle_epi8(t.first, upper), more), t.most_code);
    }
    // Codes without signs, of bytes of eight columns. `params`: those of each column in its bytes.
    template <bool is_integer>
    MXDNN_INLINE __m256i codes(const halves_of_numbers_t &t, __m256i v, __m256i params) {
        __m256i number;
        if (is_integer) {
            number = _mm256_mullo_epi16(_mm256_abs_epi8(v), params); // of both bytes: none is beyond 255
        } else {
            number = _mm256_subs_epu8(number_of(t.added, v), params);
        }
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(number, 4), _mm256_set1_epi8(15));
        return is_integer ? codes_of_integers(t, number, upper) : codes_of_floats(t, number, upper);
    }
};

template <int bits, bool to_integer>
MXDNN_INLINE __m256i with_signs(__m256i codes, __m256i v) {
    if (to_integer) return _mm256_sign_epi8(codes, v); // 0 stays 0
    return _mm256_or_si256(codes, _mm256_and_si256(bits == 8 ? v : _mm256_srli_epi16(v, 8 - bits),
                                          _mm256_set1_epi8(char(1 << (bits - 1)))));
}

template <bool is_integer, int to_bits, bool to_integer>
struct to_mx_t {
    static constexpr int rows = from_rows, bits = to_bits, from_bits = 8, from_blocks = 1;

    MXDNN_INLINE __m256i recode(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
            uint8_t *to, uint8_t *to_scales, bool around) {
        __m256i params[2], bad = _mm256_setzero_si256();
        for (int h = 0; h < 2; h++) {
            const __m256i old = load_scales(from_scales + h * recode_lanes),
                          largest = largest_of_columns<is_integer, rows>(from + h * half_bytes),
                          at = _mm256_and_si256(largest, dwords256(recode_bytes_t::magnitudes - 1)),
                          entry = _mm256_i32gather_epi32(
                                  reinterpret_cast<const int *>(r.entries[0] + recode_bytes_t::of_mx), at, 8);
            const new_scales_t s = new_scales_t::of(r, largest, _mm256_srli_epi32(entry, 24), old);
            store_scales(to_scales + h * recode_lanes, s.scales);
            bad = _mm256_or_si256(bad, s.bad);
            // As words for integers.
            const __m128i columns =
                    is_integer ? _mm_setr_epi8(0, -1, 4, -1, 8, -1, 12, -1, 0, -1, 4, -1, 8, -1, 12, -1)
                               : _mm_setr_epi8(0, 0, 4, 4, 8, 8, 12, 12, 0, 0, 4, 4, 8, 8, 12, 12);
            params[h] = _mm256_shuffle_epi8(entry, in_both_lanes(columns));
        }
        const halves_of_numbers_t t = halves_of_numbers_t::of(r.halves);
        constexpr int vectors = bits == 6 ? 4 : 1, results = bits == 6 ? 3 : 1;
        for (int i = 0; i < rows / vector_rows; i += vectors, to += 64 * results) {
            __m256i v[vectors][2];
            for (int j = 0; j < vectors; j++)
                for (int h = 0; h < 2; h++) {
                    const __m256i x = load256(from + 64 * (i + j) + half_bytes * h);
                    v[j][h] = with_signs<bits, to_integer>(
                            halves_of_numbers_t::codes<is_integer>(t, x, params[h]), x);
                }
            for (int j = 0; j < results; j++) {
                for (int h = 0; h < 2 && bits == 6; h++)
                    v[j][h] = with_top_bits(v[j][h], v[vectors - 1][h], j);
                write_two(around, to + 64 * j, v[j][0], v[j][1]);
            }
        }
        return bad;
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
