// SPDX-License-Identifier: Apache-2.0
// Bits, loads of every source type and reductions for the reorder kernels. Everything in the body_*.hpp has
// internal linkage and uses no library function: code compiled for one ISA must not be merged by the linker
// with code for another.
#pragma once

#include <immintrin.h>

#include "common/formats/quantize_block.hpp"
#include "cpu/x64/reorder/reorder_kernels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

#define MXDNN_INLINE static inline __attribute__((always_inline))

// min_of, max_of: for numbers, or for integers with the order of numbers.
template <typename T>
MXDNN_INLINE constexpr T min_of(T a, T b) {
    return a < b ? a : b;
}
template <typename T>
MXDNN_INLINE constexpr T max_of(T a, T b) {
    return a > b ? a : b;
}

MXDNN_INLINE uint32_t f32_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
MXDNN_INLINE float f32_from(uint32_t u) { return __builtin_bit_cast(float, u); }

constexpr uint32_t inf_bits = 0x7f800000, nan_bits = 0x7fc00000, magnitude_mask = 0x7fffffff;

MXDNN_INLINE __m128i load128(const void *p) { return _mm_loadu_si128(static_cast<const __m128i *>(p)); }
MXDNN_INLINE __m256i load256(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }
MXDNN_INLINE void store128(void *p, __m128i v) { _mm_storeu_si128(static_cast<__m128i *>(p), v); }
MXDNN_INLINE void store256(void *p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i *>(p), v); }
// With `around`, stores bypass the caches. `p` is then aligned to 32 bytes.
MXDNN_INLINE void write256(bool around, void *p, __m256i v) {
    if (around)
        _mm256_stream_si256(static_cast<__m256i *>(p), v);
    else
        store256(p, v);
}
// Whether stores of 32 bytes at p, and at multiples of `step` from it, may bypass the caches.
MXDNN_INLINE bool goes_around(write_t how, const void *p, int64_t step = 32) {
    return how == write_t::around && ((reinterpret_cast<uintptr_t>(p) | uint64_t(step)) & 31) == 0;
}

// Stores 64 bytes. The caches are bypassed only if `to` is a multiple of 32.
MXDNN_INLINE void write_line(bool around, uint8_t *to, const uint8_t *from) {
#ifdef __AVX512BW__
    // A store of 64 bytes that bypasses the caches faults unless it is a cache line.
    if (!around) return _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    if (reinterpret_cast<uintptr_t>(to) % 64 == 0)
        return _mm512_stream_si512(reinterpret_cast<__m512i *>(to), _mm512_loadu_si512(from));
#endif
    write256(around, to, load256(from));
    write256(around, to + 32, load256(from + 32));
}
// Stores fewer bytes than a cache line, within one line.
MXDNN_INLINE void write_part(uint8_t *to, const uint8_t *from, int bytes) {
    int k = 0;
    for (; k + 16 <= bytes; k += 16) store128(to + k, load128(from + k));
    for (; k + 2 <= bytes; k += 2) __builtin_memcpy(to + k, from + k, 2);
    if (k < bytes) to[k] = from[k];
}
// Stores bytes that may begin and end anywhere. The last cache line of a run and the first one of the next
// run are the same, so these do not bypass the cache.
MXDNN_INLINE void write_run(write_t how, uint8_t *to, const uint8_t *from, int bytes) {
    const bool around = how == write_t::around;
    int k = around ? min_of(int(-reinterpret_cast<uintptr_t>(to) & 63), bytes) : 0;
    write_part(to, from, k);
    for (; k + 64 <= bytes; k += 64) write_line(around, to + k, from + k);
    write_part(to + k, from + k, bytes - k);
}

void write_some(written_later_t &later, int bytes) {
    for (; later.runs > 0 && bytes > 0; later.runs--, bytes -= later.run) {
        write_run(later.how, later.to, later.from, later.run);
        later.from += later.run;
        later.to += later.apart;
    }
}
void write_later(written_later_t &later, write_t how, uint8_t *to, int64_t apart, int run, int runs) {
    write_some(later, later.run * later.runs);
    later.from = later.buffer();
    later.free ^= 1;
    later.to = to;
    later.apart = apart;
    later.run = run;
    later.runs = runs;
    later.how = how;
}
void finish(written_later_t &later) {
    write_some(later, later.run * later.runs);
    _mm_sfence();
}

// Two 16-byte halves from two places.
MXDNN_INLINE __m256i load_halves(const void *low, const void *high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(low)), load128(high), 1);
}

// Four vectors of f32 with 32 elements, in an order that depends on the source type. After packing to bytes,
// in_order() puts them in order. Two such vectors of 4-bit codes are joined by join_nibbles() and packed;
// nibbles_in_order() puts them in order.
struct f32x32_t {
    __m256 v[4];
};

// The largest 16-bit element of each of eight vectors, in the order of the vectors.
MXDNN_INLINE __m128i largest_u16(const __m256i *v) {
    const auto fold16 = [](__m256i a, __m256i b) {
        return _mm256_max_epu16(_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    };
    const auto fold32 = [](__m256i a, __m256i b) {
        return _mm256_max_epu16(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    };
    const __m256i a = fold32(fold16(v[0], v[1]), fold16(v[2], v[3]));
    const __m256i b = fold32(fold16(v[4], v[5]), fold16(v[6], v[7]));
    const __m256i m = _mm256_max_epu16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    return _mm_max_epu16(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
}
MXDNN_INLINE __m256i largest_u32(const __m256i *v) {
    const auto fold32 = [](__m256i a, __m256i b) {
        return _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    };
    const auto fold64 = [](__m256i a, __m256i b) {
        return _mm256_max_epu32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    };
    const __m256i a = fold64(fold32(v[0], v[1]), fold32(v[2], v[3]));
    const __m256i b = fold64(fold32(v[4], v[5]), fold32(v[6], v[7]));
    return _mm256_max_epu32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

template <bool finite_only>
MXDNN_INLINE __m256i magnitudes_u16(const uint16_t *p, short inf) {
    const __m256i m = _mm256_and_si256(load256(p), _mm256_set1_epi16(0x7fff));
    return finite_only ? _mm256_and_si256(m, _mm256_cmpgt_epi16(_mm256_set1_epi16(inf), m)) : m;
}

// ---- source types: 32 elements at a time, and magnitudes as integers 16 elements at a time ----

// Dwords of the low and the high half alternately.
MXDNN_INLINE __m256i interleave_dwords(__m256i v) {
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Pairs of bytes, each below 16, become words: even + 16 * odd.
MXDNN_INLINE __m256i join_nibbles(__m256i codes) {
    return _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001));
}

// Vectors of 16-bit elements as integers: magnitudes, and numbers. Numbers have the order of the integers,
// except that all negative ones are below the others, in some order.
struct lanes_u16_t {
    static constexpr int lanes = 16;
    MXDNN_INLINE __m256i numbers(const uint16_t *p, bool negate) {
        return _mm256_xor_si256(load256(p), _mm256_set1_epi16(negate ? short(0x8000) : short(0)));
    }
    MXDNN_INLINE __m256i larger(__m256i a, __m256i b) { return _mm256_max_epu16(a, b); }
    MXDNN_INLINE __m256i larger_number(__m256i a, __m256i b) { return _mm256_max_epi16(a, b); }
    MXDNN_INLINE __m256i lane_magnitudes(const uint16_t *p) {
        return _mm256_and_si256(load256(p), _mm256_set1_epi16(0x7fff));
    }
};

struct source_bf16_t : lanes_u16_t {
    using raw_t = uint16_t;
    static constexpr data_type_t dt = mxdnn_bf16;

    MXDNN_INLINE f32x32_t load(const raw_t *p) { return widen(load256(p), load256(p + 16)); }
    // Bit 7 of each byte is the sign of an element, in the order of pack_bytes().
    MXDNN_INLINE f32x32_t load_magnitudes(const raw_t *p, __m256i &signs) {
        const __m256i mask = _mm256_set1_epi16(0x7fff), a = load256(p), b = load256(p + 16);
        signs = _mm256_packs_epi16(a, b);
        return widen(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
    }
    MXDNN_INLINE __m256i in_order(__m256i bytes) { return _mm256_permute4x64_epi64(bytes, 0xd8); }
    MXDNN_INLINE __m256i nibbles_in_order(__m256i bytes) { return interleave_dwords(bytes); }

    // For 16 elements; with `finite_only`, 0 instead of Inf and NaN.
    template <bool finite_only>
    MXDNN_INLINE __m256i magnitudes(const raw_t *p) {
        return magnitudes_u16<finite_only>(p, 0x7f80);
    }
    // The largest magnitude of each of eight vectors, as f32 bits.
    MXDNN_INLINE __m256i largest(const __m256i *m) { return widen_bits(largest_u16(m)); }
    MXDNN_INLINE float value(raw_t x) { return f32_from(uint32_t(x) << 16); }
    // For a vector of magnitudes: f32 bits, one element after the other.
    MXDNN_INLINE void store_bits(uint32_t *out, __m256i m) {
        store256(out, widen_bits(_mm256_castsi256_si128(m)));
        store256(out + 8, widen_bits(_mm256_extracti128_si256(m, 1)));
    }
    // Parameters of 32 elements in the order of f32x32_t.
    MXDNN_INLINE void put_in_order(const float *in, float *out) {
        for (int i = 0; i < 32; i += 16) {
            const __m256 a = _mm256_loadu_ps(in + i), b = _mm256_loadu_ps(in + i + 8);
            _mm256_storeu_ps(out + i, _mm256_permute2f128_ps(a, b, 0x20));
            _mm256_storeu_ps(out + i + 8, _mm256_permute2f128_ps(a, b, 0x31));
        }
    }
    // The same in another order: the even ones of each 16, then the odd ones.
    MXDNN_INLINE void put_pairs_in_order(const float *in, float *out) {
        const auto put = [](float *to, __m256 v) {
            _mm256_storeu_ps(to, _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8)));
        };
        for (int i = 0; i < 32; i += 16) {
            const __m256 a = _mm256_loadu_ps(in + i), b = _mm256_loadu_ps(in + i + 8);
            put(out + i, _mm256_shuffle_ps(a, b, 0x88));
            put(out + i + 8, _mm256_shuffle_ps(a, b, 0xdd));
        }
    }

private:
    MXDNN_INLINE __m256i widen_bits(__m128i m) { return _mm256_slli_epi32(_mm256_cvtepu16_epi32(m), 16); }
    MXDNN_INLINE f32x32_t widen(__m256i a, __m256i b) {
        const __m256i zero = _mm256_setzero_si256();
        return {{_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, a)),
                _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, a)),
                _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, b)),
                _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, b))}};
    }
};

// Signs and magnitudes of vectors in their natural order.
struct natural_order_t {
    MXDNN_INLINE void put_in_order(const float *in, float *out) {
        for (int i = 0; i < 32; i += 8) _mm256_storeu_ps(out + i, _mm256_loadu_ps(in + i));
    }
    MXDNN_INLINE __m256i in_order(__m256i bytes) { return interleave_dwords(bytes); }
    MXDNN_INLINE __m256i nibbles_in_order(__m256i bytes) {
        const __m256i words = _mm256_permute4x64_epi64(bytes, 0xd8);
        return _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                                  0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)));
    }
};

MXDNN_INLINE __m256i sign_bytes(const f32x32_t &x) {
    return _mm256_packs_epi16(_mm256_packs_epi32(_mm256_castps_si256(x.v[0]), _mm256_castps_si256(x.v[1])),
            _mm256_packs_epi32(_mm256_castps_si256(x.v[2]), _mm256_castps_si256(x.v[3])));
}
MXDNN_INLINE void clear_signs(f32x32_t &x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(int(magnitude_mask)));
    for (int i = 0; i < 4; i++) x.v[i] = _mm256_and_ps(x.v[i], mask);
}

struct source_f16_t : natural_order_t, lanes_u16_t {
    using raw_t = uint16_t;
    static constexpr data_type_t dt = mxdnn_f16;

    MXDNN_INLINE f32x32_t load(const raw_t *p) {
        return {{_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 8)),
                _mm256_cvtph_ps(load128(p + 16)), _mm256_cvtph_ps(load128(p + 24))}};
    }
    MXDNN_INLINE f32x32_t load_magnitudes(const raw_t *p, __m256i &signs) {
        f32x32_t x = load(p);
        signs = sign_bytes(x);
        clear_signs(x);
        return x;
    }
    template <bool finite_only>
    MXDNN_INLINE __m256i magnitudes(const raw_t *p) {
        return magnitudes_u16<finite_only>(p, 0x7c00);
    }
    // Magnitudes of f16 have the order of their values.
    MXDNN_INLINE __m256i largest(const __m256i *m) {
        return _mm256_castps_si256(_mm256_cvtph_ps(largest_u16(m)));
    }
    MXDNN_INLINE void store_bits(uint32_t *out, __m256i m) {
        store256(out, _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(m))));
        store256(out + 8, _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256(m, 1))));
    }
    MXDNN_INLINE float value(raw_t x) { return _cvtsh_ss(x); }
};

struct source_f32_t : natural_order_t {
    using raw_t = float;
    static constexpr data_type_t dt = mxdnn_f32;

    MXDNN_INLINE f32x32_t load(const raw_t *p) {
        return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), _mm256_loadu_ps(p + 16),
                _mm256_loadu_ps(p + 24)}};
    }
    MXDNN_INLINE f32x32_t load_magnitudes(const raw_t *p, __m256i &signs) {
        f32x32_t x = load(p);
        signs = sign_bytes(x);
        clear_signs(x);
        return x;
    }
    template <bool finite_only>
    MXDNN_INLINE __m256i magnitudes(const raw_t *p) {
        const __m256i mask = _mm256_set1_epi32(int(magnitude_mask)), inf = _mm256_set1_epi32(int(inf_bits));
        __m256i a = _mm256_and_si256(load256(p), mask), b = _mm256_and_si256(load256(p + 8), mask);
        if (finite_only) {
            a = _mm256_and_si256(a, _mm256_cmpgt_epi32(inf, a));
            b = _mm256_and_si256(b, _mm256_cmpgt_epi32(inf, b));
        }
        return _mm256_max_epu32(a, b);
    }
    static constexpr int lanes = 8;
    MXDNN_INLINE __m256i numbers(const raw_t *p, bool negate) {
        return _mm256_xor_si256(load256(p), _mm256_set1_epi32(negate ? int(f32_sign_mask) : 0));
    }
    MXDNN_INLINE __m256i lane_magnitudes(const raw_t *p) {
        return _mm256_and_si256(load256(p), _mm256_set1_epi32(int(magnitude_mask)));
    }
    MXDNN_INLINE __m256i larger(__m256i a, __m256i b) { return _mm256_max_epu32(a, b); }
    MXDNN_INLINE __m256i larger_number(__m256i a, __m256i b) { return _mm256_max_epi32(a, b); }
    MXDNN_INLINE __m256i largest(const __m256i *m) { return largest_u32(m); }
    MXDNN_INLINE void store_bits(uint32_t *out, __m256i m) { store256(out, m); }
    MXDNN_INLINE float value(raw_t x) { return x; }
};

// Calls fn(source_*_t()) for f32, bf16 and f16.
template <typename F>
MXDNN_INLINE void with_source(data_type_t dt, F &&fn) {
    switch (dt) {
    case mxdnn_f32: return fn(source_f32_t());
    case mxdnn_bf16: return fn(source_bf16_t());
    default: return fn(source_f16_t());
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
