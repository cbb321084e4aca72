// SPDX-License-Identifier: Apache-2.0
// Rows of 32 words, one of each of 32 lines: bf16 values and codes of a pair of packed panels, as AVX-512 has
// them in one vector.
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Lines of a pair of panels.
constexpr int pair_lines = 2 * reorder_lines;
constexpr int row_bytes = pair_lines * 2;
// Pairs of blocks, or single blocks, whose parameters are processed together.
constexpr int most_groups = most_blocks / pair_lines;

MXDNN_INLINE __m512i load512(const void *p) { return _mm512_loadu_si512(p); }
MXDNN_INLINE void store512(void *p, __m512i v) { _mm512_storeu_si512(p, v); }
// With `around`, stores bypass the caches. `p` is then aligned to 64 bytes.
MXDNN_INLINE void write512(bool around, void *p, __m512i v) {
    if (around)
        _mm512_stream_si512(static_cast<__m512i *>(p), v);
    else
        store512(p, v);
}
// Whether stores of 64 bytes at p, and at multiples of `step` from it, may bypass the caches.
MXDNN_INLINE bool goes_around512(write_t how, const void *p, int64_t step = 64) {
    return how == write_t::around && ((reinterpret_cast<uintptr_t>(p) | uint64_t(step)) & 63) == 0;
}

// Prefetches to the second-level cache, or to the first one what is small and needed soon.
MXDNN_INLINE void fetch(const uint8_t *p) { _mm_prefetch(reinterpret_cast<const char *>(p), _MM_HINT_T1); }
MXDNN_INLINE void fetch_near(const uint8_t *p) {
    _mm_prefetch(reinterpret_cast<const char *>(p), _MM_HINT_T0);
}

// Runs of whole cache lines that are prefetched piece by piece, while other data is processed. All at once
// they would be waited for.
struct runs_to_fetch_t {
    const uint8_t *run;
    int64_t apart; // bytes from run to run
    int bytes, at; // bytes of a run; position in it

    void fetch_some(int n) {
        for (int i = 0; i < n; i++) {
            fetch(run + at);
            at += 64;
            if (at < bytes) continue;
            at = 0;
            run += apart;
        }
    }
};

MXDNN_INLINE __m512i words(int x) { return _mm512_set1_epi16(short(x)); }
MXDNN_INLINE __m512i dwords(uint32_t x) { return _mm512_set1_epi32(int(x)); }
// a | (b & c)
MXDNN_INLINE __m512i or_and(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi32(a, b, c, 0xf8);
}
// a ^ (b & c)
MXDNN_INLINE __m512i xor_and(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi32(a, b, c, 0x78);
}
// (a & b) | c
MXDNN_INLINE __m512i and_or(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi32(a, b, c, 0xea);
}
// Table of 32 words, looked up by the low five bits.
MXDNN_INLINE __m512i look_up(__m512i table, __m512i index) { return _mm512_permutexvar_epi16(index, table); }

// Permutes the bytes of every lane.
MXDNN_INLINE __m512i shuffle512(__m512i v, const __m128i &order) {
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(order));
}

// ---- Words as f32: those with an even and those with an odd number ----

struct halves_t {
    __m512 even, odd;
};
MXDNN_INLINE halves_t bf16_halves(__m512i x) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(x, dwords(0xffff0000)))};
}
// The low words of both.
MXDNN_INLINE __m512i join_low(__m512i even, __m512i odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, even, _mm512_slli_epi32(odd, 16));
}
// The high words of both.
MXDNN_INLINE __m512i join_high(__m512i even, __m512i odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(even, 16), odd);
}
MXDNN_INLINE halves_t multiply(const halves_t &a, const halves_t &b) {
    return {_mm512_mul_ps(a.even, b.even), _mm512_mul_ps(a.odd, b.odd)};
}
// Parameters of 32 lines, separated as in halves_t.
MXDNN_INLINE halves_t load_halves_of(const float *p) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512 a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + 16);
    return {_mm512_permutex2var_ps(a, even, b),
            _mm512_permutex2var_ps(a, _mm512_or_si512(even, dwords(1)), b)};
}
// Parameters of a line: of block i, or of two blocks of 16.
MXDNN_INLINE halves_t load_halves_of_line(const float *p, int i) {
    const __m512 all = _mm512_set1_ps(p[i]);
    return {all, all};
}
MXDNN_INLINE halves_t load_halves_of_line(const float *p, int i, int j) {
    const __m512 both = _mm512_mask_broadcastss_ps(_mm512_set1_ps(p[i]), 0xff00, _mm_load_ss(p + j));
    return {both, both};
}
// Integers of a line, in both words of their dwords (double_words()).
MXDNN_INLINE __m512i load_words_of_line(const uint32_t *p) { return _mm512_set1_epi32(int(*p)); }
// Integers of 32 lines as words.
MXDNN_INLINE __m512i load_words_of(const uint32_t *p) {
    const __m256i a = _mm512_cvtepi32_epi16(load512(p)), b = _mm512_cvtepi32_epi16(load512(p + 16));
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

// Copies n integers of 16 bits, and up to 15 after them, to both words of their dwords.
MXDNN_INLINE void double_words(uint32_t *p, int n) {
    for_blocks(n, [&](int i) { p[i] = (p[i] << 16) | (p[i] & 0xffff); });
}

// ---- values as words ----

// 32 neighbouring elements, as bf16 or as words that are rounded alike (rounds_as_words()): upper halves,
// whose last bit is set if it or any bit of the lower half is.
template <typename S>
struct words_from_t;
template <>
struct words_from_t<source_bf16_t> {
    MXDNN_INLINE __m512i load(const uint8_t *p) { return load512(p); }
};
struct odd_words_t {
    alignas(64) uint16_t index[32];
    constexpr odd_words_t() : index() {
        for (int i = 0; i < 32; i++) index[i] = uint16_t(2 * i + 1);
    }
};
constexpr odd_words_t odd_words;
struct cut_words_t {
    MXDNN_INLINE __m512i upper(__m512i a, __m512i b) {
        return _mm512_permutex2var_epi16(sticky(a), load512(odd_words.index), sticky(b));
    }

private:
    // The addition carries into the upper half unless the lower one is 0.
    MXDNN_INLINE __m512i sticky(__m512i v) {
        const __m512i low = dwords(0xffff);
        return _mm512_or_si512(v, _mm512_add_epi32(_mm512_and_si512(v, low), low));
    }
};
template <>
struct words_from_t<source_f32_t> {
    MXDNN_INLINE __m512i load(const uint8_t *p) { return cut_words_t::upper(load512(p), load512(p + 64)); }
};
template <>
struct words_from_t<source_f16_t> {
    MXDNN_INLINE __m512i load(const uint8_t *p) {
        return cut_words_t::upper(_mm512_castps_si512(_mm512_cvtph_ps(load256(p))),
                _mm512_castps_si512(_mm512_cvtph_ps(load256(p + 32))));
    }
};

// The inverse, for bf16.
template <typename S>
MXDNN_INLINE void write_words(bool around, uint8_t *p, __m512i v) {
    if constexpr (S::dt == mxdnn_bf16) return write512(around, p, v);
    const auto wide = [](__m256i half) { return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16); };
    const __m512i a = wide(_mm512_castsi512_si256(v)), b = wide(_mm512_extracti64x4_epi64(v, 1));
    if constexpr (S::dt == mxdnn_f32) {
        write512(around, p, a);
        write512(around, p + 64, b);
    } else {
        constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        const __m256i low = _mm512_cvtps_ph(_mm512_castsi512_ps(a), nearest),
                      high = _mm512_cvtps_ph(_mm512_castsi512_ps(b), nearest);
        write512(around, p, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
}

// 16 bytes each from four places.
MXDNN_INLINE __m512i load_lanes(const uint8_t *p, int64_t step) {
    const __m512i a = _mm512_castsi128_si512(load128(p));
    const __m512i b = _mm512_inserti32x4(a, load128(p + step), 1);
    const __m512i c = _mm512_inserti32x4(b, load128(p + 2 * step), 2);
    return _mm512_inserti32x4(c, load128(p + 3 * step), 3);
}

// ---- a part of a tile in the first-level cache ----

// Positions that are processed together: as many as the blocks of a pair of panels whose parameters are
// prepared together; else a block, or 32 of them.
MXDNN_INLINE int panel_step(const block_format_t &f, const panels_values_t &v) {
    if (v.lines_apart()) return min_of(v.rows, max_of(most_blocks / pair_lines * f.block, pair_lines));
    return min_of(v.rows, max_of(f.block, pair_lines));
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
