// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of many blocks at once: from what was measured of the blocks to the codes that are
// stored, and from those to the numbers that elements are multiplied with or divided by. Loops without
// branches over arrays, which the compiler turns into vectors; the rules are those of quantize_block.hpp.
#pragma once

#include "cpu/x64/reorder/body_encode_e2m1.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// MX element types with vector code.
template <typename kept, typename list>
struct decoded_types;
template <typename kept>
struct decoded_types<kept, type_list<>> {
    using type = kept;
};
template <typename kept, typename T, typename... rest>
struct decoded_types<kept, type_list<T, rest...>> {
    static constexpr bool keep = decoder_of(T::id, mx_quant) != decoder_t::none;
    using type =
            typename decoded_types<typename detail::append<keep, kept, T>::type, type_list<rest...>>::type;
};
using decoded_mx_types = decoded_types<type_list<>, mx_element_types>::type;

// Blocks that are processed together: four lines of reorder_max_length, or one of each of reorder_max_lines.
constexpr int most_blocks = max_of(4 * reorder_max_length / int(nvfp4_block), reorder_max_lines);
static_assert(most_blocks % 32 == 0); // some loops have steps of 32 blocks

struct blocks_t {
    alignas(64) uint32_t amax[most_blocks]; // magnitude bits
    // u4: how far the block reaches on both sides of 0. With minima: its least and its greatest element.
    alignas(64) float below[most_blocks], above[most_blocks];
    alignas(64) uint32_t scale[most_blocks], zp[most_blocks]; // codes
    // For elements: they are multiplied by `factor`. Affine elements are divided by `divisor` after `zero`
    // was subtracted, if a product is not exact.
    alignas(64) float factor[most_blocks], divisor[most_blocks], zero[most_blocks];
    alignas(64) uint32_t shift[most_blocks];  // for mx_bf16_encoder_t; or the place of bounds
    alignas(64) uint16_t offset[most_blocks]; // for words_decoder_t
    float global;                             // 1 if there is no global scale
};

// Runs body(i) for i < n and perhaps for up to 15 more.
template <typename F>
MXDNN_INLINE void for_blocks(int n, F &&body) {
    const int rounded = (n + 15) & ~15;
    for (int i = 0; i < rounded; i++) body(i);
}
// The same blocks, body(i) for eight of them from i on.
template <typename F>
MXDNN_INLINE void for_eight_blocks(int n, F &&body) {
    for (int i = 0; i < n; i += 16) {
        body(i);
        body(i + 8);
    }
}

// ---- scale types ----

MXDNN_INLINE float decode_e8m0(uint32_t c) {
    return f32_from(c == 0 ? 0x400000 : c == e8m0_poison ? nan_bits : c << 23);
}
// 2^(127 - c); 0 for NaN.
MXDNN_INLINE float inverse_e8m0(uint32_t c) {
    return f32_from(c == e8m0_poison ? 0 : c == 254 ? 0x400000 : (254 - c) << 23);
}
MXDNN_INLINE float decode_e4m3(uint32_t c) {
    const uint32_t v = c & 0x7f, sign = (c & 0x80) << 24;
    // A subnormal is a number with the next exponent minus the power of two of that exponent.
    const uint32_t is_subnormal = v < 8 ? ~0u : 0u;
    const float x = f32_from((v << 20) + (120u << 23) + (is_subnormal & (1u << 23)));
    const uint32_t u = f32_bits(x - f32_from(is_subnormal & f32_bits(f8_e4m3_t::min_normal)));
    return f32_from(sign | (v == f8_e4m3_t::nan_code ? nan_bits : u));
}
// For numbers from 2^-6 on, also Inf.
MXDNN_INLINE uint32_t encode_e4m3_normal(float s) {
    const uint32_t u = f32_bits(s);
    const uint32_t c = ((u + 0x7ffff + (u >> 20 & 1)) >> 20) - (120u << 3);
    return min_of<uint32_t>(c, f8_e4m3_t::max_code);
}

// For numbers that are not negative. Rounds to nearest even and saturates, as encode_saturating() of the
// traits.
struct scale_bf16_t {
    static constexpr uint32_t one = 0x3f80, nan = bf16_t::nan_code;
    MXDNN_INLINE uint32_t encode(float x) {
        const uint32_t u = f32_bits(x);
        return min_of<uint32_t>((u + 0x7fff + (u >> 16 & 1)) >> 16, bf16_t::max_code);
    }
    MXDNN_INLINE float decode(uint32_t c) {
        const uint32_t u = c << 16;
        return f32_from((u & magnitude_mask) > inf_bits ? u | 0x400000 : u);
    }
};
struct scale_f16_t {
    static constexpr uint32_t one = 0x3c00, nan = f16_t::nan_code;
    MXDNN_INLINE uint32_t encode(float x) {
        return min_of<uint32_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT), f16_t::max_code);
    }
    MXDNN_INLINE float decode(uint32_t c) { return _cvtsh_ss(uint16_t(c)); }
};
struct scale_f32_t {
    static constexpr uint32_t one = 0x3f800000, nan = nan_bits;
    MXDNN_INLINE uint32_t encode(float x) { return min_of<uint32_t>(f32_bits(x), f32_max_bits); }
    MXDNN_INLINE float decode(uint32_t c) { return f32_from(c); }
};

// Of as many blocks. The compiler makes no vectors of conversions of f16.
template <typename scale_t>
MXDNN_INLINE void encode_all(scale_t, const float *x, int n, uint32_t *codes) {
    for_blocks(n, [&](int i) { codes[i] = scale_t::encode(x[i]); });
}
template <typename scale_t>
MXDNN_INLINE void decode_all(scale_t, const uint32_t *codes, int n, float *x) {
    for_blocks(n, [&](int i) { x[i] = scale_t::decode(codes[i]); });
}
MXDNN_INLINE void encode_all(scale_f16_t, const float *x, int n, uint32_t *codes) {
    for_eight_blocks(n, [&](int i) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        store256(codes + i,
                _mm256_min_epu32(_mm256_cvtepu16_epi32(halves), _mm256_set1_epi32(f16_t::max_code)));
    });
}
MXDNN_INLINE void decode_all(scale_f16_t, const uint32_t *codes, int n, float *x) {
    for_eight_blocks(n, [&](int i) {
        _mm256_storeu_ps(
                x + i, _mm256_cvtph_ps(_mm_packus_epi32(load128(codes + i), load128(codes + i + 4))));
    });
}

template <typename F>
MXDNN_INLINE void with_scale(data_type_t dt, F &&fn) {
    switch (dt) {
    case mxdnn_bf16: return fn(scale_bf16_t());
    case mxdnn_f16: return fn(scale_f16_t());
    default: return fn(scale_f32_t());
    }
}

// ---- From measured values to stored parameters ----

template <scale_rounding_t rounding>
MXDNN_INLINE uint32_t mx_scale(uint32_t amax, int emax, int mantissa_bits, float inverse_max) {
    if (rounding == mxdnn_scale_rounding_rceil) {
        const uint32_t u = f32_bits(f32_from(amax) * inverse_max), field = u >> 23, mantissa = u & 0x7fffff;
        const uint32_t subnormal = mantissa > 0x400000, normal = field + (mantissa != 0);
        const uint32_t c = field == 0 ? subnormal : min_of<uint32_t>(normal, 254);
        return amax >= inf_bits ? e8m0_poison : c;
    }
    const uint32_t half = rounding == mxdnn_scale_rounding_even ? 1u << (22 - mantissa_bits) : 0;
    const uint32_t u = amax + half;
    int c = int(u >> 23) - emax;
    if (rounding == mxdnn_scale_rounding_ceil) c += (u & 0x7fffff) != 0;
    c = max_of(min_of(c, 254), 0);
    return amax >= inf_bits ? e8m0_poison : uint32_t(c);
}

// The properties of an element type that the choice of a scale needs.
struct mx_target_t {
    int emax, mantissa_bits;
    float inverse_max;
};
template <typename E>
constexpr mx_target_t mx_target = {E::emax, E::mantissa_bits, 1.f / E::max};

template <scale_rounding_t rounding>
void mx_scales(blocks_t &b, int n, const mx_target_t &t) {
    const mx_target_t e = t;
    for_blocks(n, [&](int i) {
        b.scale[i] = mx_scale<rounding>(b.amax[i], e.emax, e.mantissa_bits, e.inverse_max);
    });
}

MXDNN_INLINE void mx_scales(blocks_t &b, int n, const mx_target_t &t, scale_rounding_t rounding) {
    switch (rounding) {
    case mxdnn_scale_rounding_floor: return mx_scales<mxdnn_scale_rounding_floor>(b, n, t);
    case mxdnn_scale_rounding_ceil: return mx_scales<mxdnn_scale_rounding_ceil>(b, n, t);
    case mxdnn_scale_rounding_even: return mx_scales<mxdnn_scale_rounding_even>(b, n, t);
    case mxdnn_scale_rounding_rceil: return mx_scales<mxdnn_scale_rounding_rceil>(b, n, t);
    }
}

void nvfp4_scales(blocks_t &b, int n, bool has_global, float global) {
    for_blocks(n, [&](int i) {
        float s = f32_from(b.amax[i]) / f4_e2m1_t::max;
        if (has_global) s = global == 0 ? 0.f : s / global;
        const uint32_t c = encode_e4m3_normal(s > f8_e4m3_t::min_normal ? s : f8_e4m3_t::min_normal);
        b.scale[i] = b.amax[i] >= inf_bits || s != s ? f8_e4m3_t::nan_code : c;
    });
}

template <typename scale_t>
void symmetric_scales(blocks_t &b, int n, float range) {
    for_blocks(n, [&](int i) { b.divisor[i] = f32_from(b.amax[i]) / range; });
    encode_all(scale_t(), b.divisor, n, b.scale);
    for_blocks(n, [&](int i) {
        const uint32_t c = b.scale[i];
        b.scale[i] = b.amax[i] >= inf_bits ? scale_t::nan : c == 0 ? scale_t::one : c;
        b.zp[i] = 0;
    });
}

template <typename scale_t>
void u4_scales(blocks_t &b, int n) {
    // `zp` is what blocks have whose codes are all the zero point; other ones have `counted`.
    constexpr uint32_t counted = ~0u;
    for_blocks(n, [&](int i) { b.divisor[i] = (b.above[i] + b.below[i]) / 15.f; });
    encode_all(scale_t(), b.divisor, n, b.scale);
    for_blocks(n, [&](int i) {
        const bool poisoned = b.amax[i] >= inf_bits, empty = b.scale[i] == 0;
        b.scale[i] = poisoned ? scale_t::nan : empty ? scale_t::one : b.scale[i];
        b.zp[i] = poisoned || empty ? uint32_t(int4_mid) : counted;
    });
    decode_all(scale_t(), b.scale, n, b.divisor);
    for_blocks(n, [&](int i) {
        float zp = b.below[i] / b.divisor[i];
        zp = zp > 0.f ? zp < 15.f ? zp : 15.f : 0.f;
        // The addition rounds to nearest even.
        const uint32_t rounded = f32_bits(zp + 8388608.f) & 0xff;
        b.zp[i] = b.zp[i] == counted ? rounded : b.zp[i];
    });
}

template <typename scale_t, typename zero_t>
void u4_min_scales(blocks_t &b, int n) {
    const auto least = [&](int i) { return b.below[i] + 0.f; }; // -0 becomes 0
    for_blocks(n, [&](int i) {
        b.divisor[i] = (b.above[i] + 0.f - least(i)) / 15.f;
        b.zero[i] = f32_from(f32_bits(least(i)) & magnitude_mask);
    });
    encode_all(scale_t(), b.divisor, n, b.scale);
    encode_all(zero_t(), b.zero, n, b.zp);
    for_blocks(n, [&](int i) {
        const bool poisoned = b.amax[i] >= inf_bits;
        const uint32_t c = b.scale[i],
                       sign = (f32_bits(least(i)) & ~magnitude_mask) >> (zero_t::one > 0xffff ? 0 : 16);
        b.scale[i] = poisoned ? scale_t::nan : c == 0 ? scale_t::one : c;
        b.zp[i] = poisoned ? 0 : sign | b.zp[i];
    });
}

// ---- From stored parameters to those of encoders ----

// Whether there is a poisoned block.
bool mx_factors(blocks_t &b, int n) {
    uint32_t special = 0;
    for_blocks(n, [&](int i) {
        b.factor[i] = inverse_e8m0(b.scale[i]);
        special |= uint32_t(b.scale[i] == e8m0_poison);
    });
    return special;
}

// Whether a block is poisoned, or its exponents leave the range of bf16. Zeros have no exponent.
bool mx_shifts(blocks_t &b, int n, const mx_shift_t &s) {
    const mx_shift_t t = s;
    uint32_t special = 0;
    for_blocks(n, [&](int i) {
        const int field = int(b.scale[i]) + t.offset;
        b.shift[i] = uint32_t((max_of(field, t.least) << 7) + t.added);
        special |=
                uint32_t(int(b.scale[i]) > t.most) | (uint32_t(field < t.least) & uint32_t(b.amax[i] != 0));
    });
    return special;
}

// 1/s of a computed scale, which is a normal number or NaN. s has one of eight mantissas, and its power of
// two does not change the rounding of the quotient.
struct e4m3_inverses_t {
    float value[8];
    constexpr e4m3_inverses_t() : value() {
        for (int i = 0; i < 8; i++)
            value[i] = 1.f / (1.f + float(i) / 8) * 128.f; // for the bias of the exponent
    }
};
constexpr e4m3_inverses_t e4m3_inverses;
static_assert(f8_e4m3_t::mantissa_bits == 3 && f8_e4m3_t::bias == 7);

bool nvfp4_inverses(blocks_t &b, int n) {
    const __m256i values = load256(e4m3_inverses.value),
                  nan_code = _mm256_set1_epi32(int(f8_e4m3_t::nan_code));
    __m256i special = _mm256_setzero_si256();
    for (int i = 0; i < n; i += 8) {
        const __m256i c = load256(b.scale + i), is_nan = _mm256_cmpeq_epi32(c, nan_code);
        const __m256i exponent = _mm256_slli_epi32(_mm256_and_si256(c, _mm256_set1_epi32(0x78)), 20);
        const __m256i inverse = _mm256_sub_epi32(_mm256_permutevar8x32_epi32(values, c), exponent);
        store256(b.factor + i, _mm256_blendv_epi8(inverse, _mm256_set1_epi32(int(nan_bits)), is_nan));
        special = _mm256_or_si256(special, is_nan);
    }
    return !_mm256_testz_si256(special, special);
}

// The scale of a block by the bits of its largest magnitude: those of an octave are eight steps, which begin
// at these mantissas.
struct nvfp4_scale_steps_t {
    static constexpr int steps = 8, octave = 1 << 7, exponent = 127 + 4; // some octave
    // The last mantissa before each step: vectors, since the compiler would make them each time.
    alignas(32) uint8_t last[steps][32];
    int base; // the code at the beginning of octave 0, if it had one

    constexpr nvfp4_scale_steps_t() : last(), base(0) {
        const auto scale = [](int mantissa) {
            return int(nvfp4_scale(uint32_t(exponent * octave + mantissa) << 16));
        };
        base = scale(0) - steps * exponent;
        int n = 0;
        for (int f = 1; f <= octave; f++)
            for (int s = scale(f - 1); s < scale(f); s++, n++)
                for (uint8_t &l : last[n]) l = uint8_t(f - 1);
    }
};
constexpr nvfp4_scale_steps_t nvfp4_scale_steps;

// Of 32 blocks, in the order of packing.
MXDNN_INLINE __m256i nvfp4_scales_of(__m256i a, __m256i b) {
    constexpr int octave = nvfp4_scale_steps_t::octave;
    const auto octaves = [](__m256i x) {
        return _mm256_add_epi16(_mm256_slli_epi16(_mm256_srli_epi16(x, 7), 3),
                _mm256_set1_epi16(short(nvfp4_scale_steps.base)));
    };
    const auto mantissa = [](__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi16(octave - 1)); };
    const auto is_no_number = [](__m256i x) { return _mm256_cmpgt_epi16(x, _mm256_set1_epi16(0x7f7f)); };
    const __m256i m = _mm256_packus_epi16(mantissa(a), mantissa(b));
    __m256i c = _mm256_packs_epi16(octaves(a), octaves(b));
    for (const auto &last : nvfp4_scale_steps.last)
        c = _mm256_subs_epi8(c, _mm256_cmpgt_epi8(m, load256(last)));
    c = _mm256_min_epi8(_mm256_max_epi8(c, _mm256_set1_epi8(char(nvfp4_bounds_t::least))),
            _mm256_set1_epi8(char(nvfp4_bounds_t::end)));
    return _mm256_sub_epi8(c, _mm256_packs_epi16(is_no_number(a), is_no_number(b)));
}

MXDNN_INLINE bool nvfp4_is_beyond(__m256i scales) {
    const __m256i end = _mm256_set1_epi8(char(nvfp4_bounds_t::end - 1)),
                  beyond = _mm256_cmpgt_epi8(scales, end);
    return !_mm256_testz_si256(beyond, beyond);
}

// Scales of bf16 blocks, and where their bounds are, in bytes. Whether there is a block whose scale has none.
// Up to 31 blocks more are computed.
bool nvfp4_find_bounds(blocks_t &b, int n) {
    __m256i largest = _mm256_setzero_si256();
    const auto words = [&](int i) {
        return _mm256_packus_epi32(
                _mm256_srli_epi32(load256(b.amax + i), 16), _mm256_srli_epi32(load256(b.amax + i + 8), 16));
    };
    for (int i = 0; i < n; i += 32) {
        const __m256i c = interleave_dwords(nvfp4_scales_of(words(i), words(i + 16)));
        largest = _mm256_max_epu8(largest, c);
        alignas(32) uint8_t bytes[32];
        store256(bytes, c);
        for (int j = 0; j < 32; j += 8) {
            const __m256i code =
                    _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(bytes + j)));
            store256(b.scale + i + j, code);
            store256(b.shift + i + j, _mm256_slli_epi32(code, e2m1_bounds_t::bytes_bits));
        }
    }
    return nvfp4_is_beyond(largest);
}

// Whether there is a block without a finite factor.
bool nvfp4_factors(blocks_t &b, int n, bool has_global) {
    const float inverse = has_global ? 1.f / b.global : 1.f;
    uint32_t special = 0;
    for_blocks(n, [&](int i) {
        b.factor[i] = inverse / decode_e4m3(b.scale[i]);
        special |= uint32_t((f32_bits(b.factor[i]) & magnitude_mask) >= inf_bits);
    });
    return special;
}

// Whether a block cannot use the reciprocal, because the scale or a result is out of range.
template <typename scale_t>
bool affine_scales(blocks_t &b, int n, float reach) {
    uint32_t special = 0;
    decode_all(scale_t(), b.scale, n, b.divisor);
    for_blocks(n, [&](int i) {
        const float s = b.divisor[i], inverse = 1.f / s;
        b.factor[i] = inverse;
        special |= uint32_t(!(s >= 0x1p-100f)) | uint32_t(!(s <= 0x1p100f))
                   | uint32_t(!(f32_from(b.amax[i]) * inverse < reach));
    });
    return special;
}
template <typename E>
MXDNN_INLINE bool is_affine_special(const blocks_t &b, int i) {
    const float s = b.divisor[i];
    return !(s >= 0x1p-100f && s <= 0x1p100f && f32_from(b.amax[i]) * b.factor[i] < affine_reach<E>);
}
// `code` is the one whose value the zero point is.
template <typename zero_t>
void affine_zeros(blocks_t &b, int n, int code) {
    decode_all(zero_t(), b.zp, n, b.zero);
    for_blocks(n, [&](int i) { b.zp[i] = uint32_t(code); });
}

// ---- Codes in memory: four lines of a line_params_t ----

template <typename T>
MXDNN_INLINE void store_codes(
        const uint32_t *codes, uint8_t *out, int pitch, int blocks, int lines, int apart) {
    for (int i = 0; i < blocks; i++)
        for (int l = 0; l < lines; l++) {
            const T c = T(codes[i * 4 + l]);
            const int at = i * pitch + l / 2 * apart + l % 2;
            __builtin_memcpy(out + at * int(sizeof(T)), &c, sizeof(T));
        }
}
template <typename T>
MXDNN_INLINE void load_codes(uint32_t *codes, const uint8_t *in, int pitch, int blocks, int lines) {
    for (int i = 0; i < blocks; i++)
        for (int l = 0; l < lines; l++) {
            T c;
            __builtin_memcpy(&c, in + (i * pitch + l) * int(sizeof(T)), sizeof(T));
            codes[i * 4 + l] = c;
        }
}

// Lines 2 and 3 follow `apart` lines after lines 0 and 1.
void store_codes(
        int bytes, const uint32_t *codes, uint8_t *out, int pitch, int blocks, int lines, int apart) {
    if (lines == 4 && bytes < 4) {
        const int step = pitch * bytes, second = apart * bytes;
        const __m128i order = bytes == 1 ? _mm_setr_epi8(0, 4, -1, -1, 8, 12, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0)
                                         : _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0);
        for (int i = 0; i < blocks; i++, out += step) {
            const __m128i c = _mm_shuffle_epi8(load128(codes + i * 4), order);
            if (bytes == 1) {
                _mm_storeu_si16(out, c);
                const int high = _mm_extract_epi16(c, 2);
                __builtin_memcpy(out + second, &high, 2);
            } else {
                _mm_storeu_si32(out, c);
                const int high = _mm_extract_epi32(c, 1);
                __builtin_memcpy(out + second, &high, 4);
            }
        }
        return;
    }
    if (bytes == 1) return store_codes<uint8_t>(codes, out, pitch, blocks, lines, apart);
    if (bytes == 2) return store_codes<uint16_t>(codes, out, pitch, blocks, lines, apart);
    store_codes<uint32_t>(codes, out, pitch, blocks, lines, apart);
}
void load_codes(int bytes, uint32_t *codes, const uint8_t *in, int pitch, int blocks, int lines) {
    if (lines == 4 && bytes < 4) {
        for (int i = 0; i < blocks; i++, in += pitch * bytes)
            store128(codes + 4 * i,
                    bytes == 1 ? _mm_cvtepu8_epi32(_mm_loadu_si32(in))
                               : _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(in))));
        return;
    }
    if (bytes == 1) return load_codes<uint8_t>(codes, in, pitch, blocks, lines);
    if (bytes == 2) return load_codes<uint16_t>(codes, in, pitch, blocks, lines);
    load_codes<uint32_t>(codes, in, pitch, blocks, lines);
}

// Codes of one block of many lines, side by side.
template <typename T>
MXDNN_INLINE void store_line_codes(const uint32_t *codes, uint8_t *out, int lines) {
    for (int l = 0; l < lines; l++) {
        const T c = T(codes[l]);
        __builtin_memcpy(out + l * int(sizeof(T)), &c, sizeof(T));
    }
}
template <typename T>
MXDNN_INLINE void load_line_codes(uint32_t *codes, const uint8_t *in, int lines) {
    for (int l = 0; l < lines; l++) {
        T c;
        __builtin_memcpy(&c, in + l * int(sizeof(T)), sizeof(T));
        codes[l] = c;
    }
}
void store_line_codes(int bytes, const uint32_t *codes, uint8_t *out, int lines) {
    if (bytes == 1) return store_line_codes<uint8_t>(codes, out, lines);
    if (bytes == 2) return store_line_codes<uint16_t>(codes, out, lines);
    store_line_codes<uint32_t>(codes, out, lines);
}
void load_line_codes(int bytes, uint32_t *codes, const uint8_t *in, int lines) {
    if (bytes == 1) return load_line_codes<uint8_t>(codes, in, lines);
    if (bytes == 2) return load_line_codes<uint16_t>(codes, in, lines);
    load_line_codes<uint32_t>(codes, in, lines);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
