// SPDX-License-Identifier: Apache-2.0
// Codes, scales and zero points to f32, bf16 or f16: the same bits as the scalar traits give.
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- codes to f32, eight at a time from a dword each ----

template <typename E>
struct minifloat_decoder_t {
    static constexpr int m = E::mantissa_bits, to_top = 32 - E::bits;
    static constexpr uint32_t magnitude = E::sign_code - 1;
    // Added to a magnitude in f32's place, and to one without an exponent (1 << 23 more).
    static constexpr uint32_t rebias = uint32_t(127 - E::bias) << 23;
    static constexpr float least_normal = E::min_normal;
    static constexpr float values[8] = {E::decode(0), E::decode(1), E::decode(2), E::decode(3), E::decode(4),
            E::decode(5), E::decode(6), E::decode(7)};

    MXDNN_INLINE __m256 decode(__m256i c) {
        const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(c, to_top), _mm256_set1_epi32(int(f32_sign_mask)));
        if (E::bits == 4) {
            // The permutation looks at three bits.
            const __m256 v = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values), c);
            return _mm256_or_ps(v, _mm256_castsi256_ps(sign));
        }
        const __m256i v = _mm256_and_si256(c, _mm256_set1_epi32(int(magnitude)));
        const __m256i subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(1 << m), v);
        // A subnormal gets the exponent of the least normal, whose value is taken off again.
        __m256i u = _mm256_add_epi32(_mm256_slli_epi32(v, 23 - m), _mm256_set1_epi32(int(rebias)));
        u = _mm256_add_epi32(u, _mm256_and_si256(subnormal, _mm256_set1_epi32(1 << 23)));
        const __m256 off = _mm256_and_ps(_mm256_castsi256_ps(subnormal), _mm256_set1_ps(least_normal));
        u = _mm256_castps_si256(_mm256_sub_ps(_mm256_castsi256_ps(u), off));
        u = specials(u, v);
        return _mm256_castsi256_ps(_mm256_or_si256(u, sign));
    }

private:
    MXDNN_INLINE __m256i specials(__m256i u, __m256i v) {
        if (E::specials == specials_t::nan) {
            const __m256i nan = _mm256_cmpeq_epi32(v, _mm256_set1_epi32(int(E::nan_code)));
            return _mm256_blendv_epi8(u, _mm256_set1_epi32(int(nan_bits)), nan);
        }
        if (E::specials == specials_t::ieee) {
            const __m256i inf = _mm256_set1_epi32(int(E::inf_code));
            const __m256i is_nan = _mm256_cmpgt_epi32(v, inf);
            const __m256i special = _mm256_or_si256(_mm256_cmpeq_epi32(v, inf), is_nan);
            // Inf, or a quiet NaN that keeps its mantissa.
            const __m256i mantissa = _mm256_slli_epi32(_mm256_andnot_si256(inf, v), 23 - m);
            const __m256i quiet = _mm256_and_si256(is_nan, _mm256_set1_epi32(0x400000));
            const __m256i s = _mm256_or_si256(_mm256_set1_epi32(int(inf_bits)), _mm256_or_si256(mantissa, quiet));
            return _mm256_blendv_epi8(u, s, special);
        }
        return u;
    }
};

struct mxint8_decoder_t {
    MXDNN_INLINE __m256 decode(__m256i c) {
        const __m256i i = _mm256_srai_epi32(_mm256_slli_epi32(c, 24), 24);
        return _mm256_mul_ps(_mm256_cvtepi32_ps(i), _mm256_set1_ps(s8_t::step));
    }
};

template <typename E>
MXDNN_INLINE __m256i decode_int4(__m256i c) {
    return E::is_signed ? _mm256_srai_epi32(_mm256_slli_epi32(c, 28), 28) : _mm256_and_si256(c, _mm256_set1_epi32(15));
}

// ---- f32 to the destination ----

struct target_f32_t {
    using raw_t = float;
    MXDNN_INLINE void store(raw_t *p, __m256 a, __m256 b) {
        _mm256_storeu_ps(p, a);
        _mm256_storeu_ps(p + 8, b);
    }
};
struct target_f16_t {
    using raw_t = uint16_t;
    MXDNN_INLINE void store(raw_t *p, __m256 a, __m256 b) {
        store128(p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
        store128(p + 8, _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT));
    }
};
struct target_bf16_t {
    using raw_t = uint16_t;
    // Nearest even; NaN keeps its sign and upper bits and becomes quiet. In the low half of each dword.
    MXDNN_INLINE __m256i round(__m256 x) {
        const __m256i u = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
        const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
        const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    }
    MXDNN_INLINE void store(raw_t *p, __m256 a, __m256 b) {
        store256(p, _mm256_permute4x64_epi64(_mm256_packus_epi32(round(a), round(b)), 0xd8));
    }
};

template <typename F>
MXDNN_INLINE void with_target(data_type_t dt, F &&fn) {
    switch (dt) {
    case mxdnn_f32: return fn(target_f32_t());
    case mxdnn_bf16: return fn(target_bf16_t());
    default: return fn(target_f16_t());
    }
}

// ---- blocks ----

// Of one line's blocks, as f32.
struct block_values_t {
    float scale[reorder_max_length / int(nvfp4_block)];
    float zero[reorder_max_length / int(nvfp4_block)];
    int zp[reorder_max_length / int(nvfp4_block)];
};

template <typename E>
struct mx_decoder_t : minifloat_decoder_t<E> {};
template <>
struct mx_decoder_t<s8_t> : mxint8_decoder_t {};

// A code times its block's scale.
template <typename E>
struct scaled_values_t {
    MXDNN_INLINE __m256 value(__m256i c, const block_values_t &b, int i) {
        return _mm256_mul_ps(mx_decoder_t<E>::decode(c), _mm256_set1_ps(b.scale[i]));
    }
};
// (code - zero point) * scale, and a floating-point zero added.
template <typename E, bool float_zero>
struct affine_values_t {
    MXDNN_INLINE __m256 value(__m256i c, const block_values_t &b, int i) {
        const __m256i steps = _mm256_sub_epi32(decode_int4<E>(c), _mm256_set1_epi32(b.zp[i]));
        const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(steps), _mm256_set1_ps(b.scale[i]));
        return float_zero ? _mm256_add_ps(v, _mm256_set1_ps(b.zero[i])) : v;
    }
};

template <typename V, typename T>
void dequantise_line(const uint8_t *codes, const block_values_t &b, int block, int n, typename T::raw_t *out) {
    const auto store = [&](const uint8_t *c, int i, typename T::raw_t *to) {
        const __m128i v = load128(c);
        T::store(to, V::value(_mm256_cvtepu8_epi32(v), b, i), V::value(_mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)), b, i));
    };
    for (int i = 0; i * block < n; i++) {
        const int first = i * block, last = min_of(first + block, n);
        int k = first;
        for (; k + 16 <= last; k += 16) store(codes + k, i, out + k);
        if (k == last) continue;
        alignas(16) uint8_t c[16] = {};
        alignas(32) typename T::raw_t rest[16];
        __builtin_memcpy(c, codes + k, size_t(last - k));
        store(c, i, rest);
        __builtin_memcpy(out + k, rest, size_t(last - k) * sizeof(rest[0]));
    }
}

MXDNN_INLINE uint32_t load_code(const uint8_t *p, int bytes) {
    if (bytes == 1) return *p;
    uint32_t c = 0;
    if (bytes == 2)
        __builtin_memcpy(&c, p, 2);
    else
        __builtin_memcpy(&c, p, 4);
    return c;
}

MXDNN_INLINE float scale_value(const block_format_t &f, uint32_t code, float global) {
    if (f.family == quant_family_t::mx) return decode_e8m0(code);
    if (f.family == quant_family_t::nvfp4) return f.has_global ? global * decode_e4m3(code) : decode_e4m3(code);
    float v = 0;
    with_scale(f.scale_dt, [&](auto s) { v = decltype(s)::decode(code); });
    return v;
}

template <typename V>
void dequantise_with(const block_format_t &f, const uint8_t *codes, const block_values_t &b, int n, data_type_t dt,
        void *out) {
    with_target(dt, [&](auto t) {
        using T = decltype(t);
        dequantise_line<V, T>(codes, b, f.block, n, static_cast<typename T::raw_t *>(out));
    });
}

void dequantise(const block_format_t &f, const uint8_t *codes, int64_t pitch, int lines, int n, float global,
        const line_params_t &params, data_type_t dt, void *dst, int64_t line_bytes) {
    const int blocks = (n + f.block - 1) / f.block;
    for (int l = 0; l < lines; l++) {
        block_values_t b;
        for (int i = 0; i < blocks; i++) {
            const int at = i * reorder_lines + l;
            b.scale[i] = scale_value(f, load_code(params.scales + at * f.scale_bytes, f.scale_bytes), global);
            b.zp[i] = 0;
            if (!params.zero_points) continue;
            const uint32_t zp = load_code(params.zero_points + at * f.zp_bytes, f.zp_bytes);
            b.zp[i] = f.zp == zero_point_kind_t::u8 ? int(zp) : int4_mid;
            if (f.zp == zero_point_kind_t::float_zero)
                with_scale(f.zp_dt, [&](auto z) { b.zero[i] = decltype(z)::decode(zp); });
        }
        const uint8_t *c = codes + l * pitch;
        void *out = static_cast<uint8_t *>(dst) + l * line_bytes;
        if (f.family == quant_family_t::affine)
            visit_type(affine_element_types(), f.elem, [&](auto e) {
                using E = decltype(e);
                if (f.zp == zero_point_kind_t::float_zero)
                    dequantise_with<affine_values_t<E, true>>(f, c, b, n, dt, out);
                else
                    dequantise_with<affine_values_t<E, false>>(f, c, b, n, dt, out);
            });
        else
            visit_type(mx_element_types(), f.elem,
                    [&](auto e) { dequantise_with<scaled_values_t<decltype(e)>>(f, c, b, n, dt, out); });
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
