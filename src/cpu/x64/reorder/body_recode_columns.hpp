// SPDX-License-Identifier: Apache-2.0
// Packed codes to packed codes of another format, eight columns in a vector of AVX2: what all formats share.
#pragma once

#include "cpu/x64/reorder/body_ahead.hpp"
#include "cpu/x64/reorder/body_nibbles.hpp"
#include "cpu/x64/reorder/body_recode_panels.hpp"
#include "cpu/x64/reorder/recode_bytes.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int from_rows = mx_block; // of a block
constexpr int vector_rows = 4;      // of a vector of n16_b8, and twice as many of n16_b4
constexpr int half_bytes = 32;      // of a vector, of eight columns
constexpr int most_header_bytes = recode_t::most_rows / int(nvfp4_block) * reorder_lines;
// With these scales values are far from the ends of f32.
constexpr uint32_t least_scale = 27, greatest_scale = 227;

MXDNN_INLINE __m256i in_both_lanes(__m128i v) { return _mm256_broadcastsi128_si256(v); }

// A magnitude of 128 is taken for 127, which has the same code.
template <bool is_integer>
MXDNN_INLINE __m256i magnitudes(__m256i v) {
    const __m256i most = _mm256_set1_epi8(127);
    return is_integer ? _mm256_min_epu8(_mm256_abs_epi8(v), most) : _mm256_and_si256(v, most);
}

// The largest magnitude of each of eight columns.
template <bool is_integer, int rows>
MXDNN_INLINE __m256i largest_of_columns(const uint8_t *codes) {
    __m256i v = _mm256_setzero_si256();
    for (int i = 0; i < rows / vector_rows; i++) {
        const __m256i x = load256(codes + 64 * i);
        v = _mm256_max_epu8(v, is_integer ? _mm256_abs_epi8(x) : magnitudes<false>(x));
    }
    v = _mm256_max_epu8(v, _mm256_srli_epi16(v, 8));
    v = _mm256_max_epu8(v, _mm256_shuffle_epi32(v, 0x4e));
    return _mm256_shuffle_epi8(
            v, in_both_lanes(_mm_setr_epi8(0, -1, -1, -1, 2, -1, -1, -1, 4, -1, -1, -1, 6, -1, -1, -1)));
}

// Columns whose scale or largest magnitude has no rule: all ones.
MXDNN_INLINE __m256i without_rule(const recode_bytes_t &r, __m256i largest, __m256i from_scales) {
    const __m256i is_zero = _mm256_cmpeq_epi32(largest, _mm256_setzero_si256()),
                  beyond = _mm256_or_si256(_mm256_cmpgt_epi32(dwords256(least_scale), from_scales),
                          _mm256_cmpgt_epi32(from_scales, dwords256(greatest_scale))),
                  bad = _mm256_or_si256(beyond, _mm256_cmpgt_epi32(largest, dwords256(r.most)));
    return _mm256_or_si256(
            _mm256_andnot_si256(is_zero, bad), _mm256_cmpeq_epi32(from_scales, dwords256(e8m0_poison)));
}

// Numbers of magnitudes of floats, in bytes, also of their codes.
MXDNN_INLINE __m256i number_of(__m256i added, __m256i v) {
    const __m256i m = magnitudes<false>(v);
    return _mm256_add_epi8(m, _mm256_shuffle_epi8(added, _mm256_min_epu8(m, _mm256_set1_epi8(15))));
}

// The new scales of eight columns.
struct new_scales_t {
    __m256i scales;
    __m256i below; // all ones: they have the least scale because theirs would be smaller
    __m256i bad;   // all ones: there is no rule

    // `scale`: what the tables say of the largest magnitudes.
    MXDNN_INLINE new_scales_t of(
            const recode_bytes_t &r, __m256i largest, __m256i scale, __m256i from_scales) {
        const __m256i least = dwords256(uint32_t(r.least)), greatest = dwords256(uint32_t(r.greatest)),
                      is_zero = _mm256_cmpeq_epi32(largest, _mm256_setzero_si256()),
                      units = _mm256_mullo_epi32(from_scales, dwords256(uint32_t(r.unit))),
                      v = _mm256_add_epi32(_mm256_add_epi32(scale, dwords256(uint32_t(r.offset))), units);
        const __m256i bad = _mm256_or_si256(without_rule(r, largest, from_scales),
                _mm256_andnot_si256(is_zero, _mm256_cmpgt_epi32(v, greatest)));
        const __m256i below = _mm256_andnot_si256(is_zero, _mm256_cmpgt_epi32(least, v));
        return {_mm256_blendv_epi8(v, least, _mm256_or_si256(is_zero, below)), below, bad};
    }
    // Of those below: the place in a table by old scales, which has `n` from 2^`first` on.
    MXDNN_INLINE __m256i place(__m256i from_scales, int first, int n) {
        const __m256i at = _mm256_sub_epi32(from_scales, dwords256(uint32_t(127 + first)));
        return _mm256_min_epi32(_mm256_max_epi32(at, _mm256_setzero_si256()), dwords256(uint32_t(n - 1)));
    }
};
// Eight rows of n16_b4 from codes in the order of n16_b8.
MXDNN_INLINE __m256i nibbles(__m256i first, __m256i second) {
    const __m256i low = _mm256_unpacklo_epi64(first, second), high = _mm256_unpackhi_epi64(first, second);
    return _mm256_shuffle_epi8(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)),
            in_both_lanes(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)));
}

MXDNN_INLINE void store_scales(uint8_t *to, __m256i v) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(to), _mm_packus_epi16(words, words));
}
MXDNN_INLINE __m256i load_scales(const uint8_t *from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
