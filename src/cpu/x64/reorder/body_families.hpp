// SPDX-License-Identifier: Apache-2.0
// What the families of formats do to blocks: scales from what was measured, factors from scales, and how 32
// elements are encoded.
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Elements are encoded 32 at a time.
constexpr int encode_step = 32;

// ---- scales ----

void make_scales(blocks_t &b, int n, const block_format_t &f) {
    if (f.family == quant_family_t::nvfp4)
        nvfp4_scales(b, n, f.has_global, b.global);
    else if (f.family == quant_family_t::mx)
        visit_type(decoded_mx_types(), f.elem,
                [&](auto e) { mx_scales(b, n, mx_target<decltype(e)>, f.rounding); });
    else
        with_scale(f.scale_dt, [&](auto s) {
            using scale_t = decltype(s);
            if (f.zp == zero_point_kind_t::minimum)
                return with_scale(f.zp_dt, [&](auto z) { u4_min_scales<scale_t, decltype(z)>(b, n); });
            if (f.elem == mxdnn_u4) return u4_scales<scale_t>(b, n);
            symmetric_scales<scale_t>(
                    b, n, f.elem == mxdnn_s8 ? symmetric_range<s8_t> : symmetric_range<s4_t>);
        });
}

// Whether there are blocks that must go to encode_special(). `shift` is null if elements are multiplied.
bool make_factors(blocks_t &b, int n, const block_format_t &f, bool given, const mx_shift_t *shift) {
    if (f.family == quant_family_t::mx) {
        if (shift && !mx_shifts(b, n, *shift)) return false;
        const bool poisoned = mx_factors(b, n);
        return shift || poisoned;
    }
    if (f.family == quant_family_t::nvfp4)
        return given || f.has_global ? nvfp4_factors(b, n, f.has_global) : nvfp4_inverses(b, n);
    bool special = false;
    const float reach = f.elem == mxdnn_s8 ? affine_reach<s8_t> : affine_reach<s4_t>;
    with_scale(f.scale_dt, [&](auto s) { special = affine_scales<decltype(s)>(b, n, reach); });
    if (is_added(f.zp))
        with_scale(f.zp_dt, [&](auto z) { affine_zeros<decltype(z)>(b, n, code_of_added(f.zp)); });
    else
        for_blocks(n, [&](int i) {
            b.zero[i] = 0;
            b.zp[i] = f.zp == zero_point_kind_t::none ? 0 : b.zp[i];
        });
    return special;
}

// ---- Parameters of encoders: for 32 elements, in the order of f32x32_t; shifts of 16 in a row ----

// For a line. The first and the last 16 elements may belong to two blocks.
struct line_params_of_t {
    const blocks_t &b;
    int64_t i, j;

    __m256i shift(int v) const { return _mm256_set1_epi16(short(b.shift[v ? j : i])); }
    __m256 factor(int v) const { return _mm256_set1_ps(b.factor[v < 2 ? i : j]); }
    __m256 divisor(int v) const { return _mm256_set1_ps(b.divisor[v < 2 ? i : j]); }
    __m256 zero(int v) const { return _mm256_set1_ps(b.zero[v < 2 ? i : j]); }
    __m256i zero_point(int v) const { return _mm256_set1_epi32(int(b.zp[v < 2 ? i : j])); }
    __m256i zero_point_bytes() const { return _mm256_set1_epi8(char(b.zp[i])); }
    uint32_t place(int v) const { return b.shift[v ? j : i]; }
};

struct factor_t {
    float value;
    __m256 factor(int) const { return _mm256_set1_ps(value); }
};

// ---- One class per family: how it encodes 32 elements, and special blocks ----

MXDNN_INLINE constexpr int bits_of_block(dim_t block) { return __builtin_ctz(unsigned(block)); }

// What most families have: codes in the order in which encoders of single elements return them.
struct source_order_t {
    static constexpr const mx_shift_t *shift = nullptr; // if it is used: see make_factors()
    static constexpr bool by_shifts = false;            // whether that is so
    static constexpr bool by_bounds = false;            // lines need no factors
    template <typename S>
    MXDNN_INLINE __m256i in_order(__m256i bytes) {
        return S::in_order(bytes);
    }
    template <typename S>
    MXDNN_INLINE __m256i nibbles_in_order(__m256i bytes) {
        return S::nibbles_in_order(bytes);
    }
    // Parameters of 32 elements.
    template <typename S>
    MXDNN_INLINE void put_in_order(const float *in, float *out) {
        S::put_in_order(in, out);
    }
};

template <typename E>
struct mx_encoder_t : minifloat_encoder_t<E> {};
template <>
struct mx_encoder_t<s8_t> : mxint8_encoder_t {};

// bf16 to minifloats, scales computed.
template <typename E>
struct mx_bf16_family_t : source_order_t {
    using elem_t = E;
    using encoder_t = typename bf16_encoder_of<E>::type;
    static constexpr const mx_shift_t *shift = &encoder_t::shift;
    static constexpr bool by_shifts = true;
    static constexpr int64_t block = mx_block;
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
        return encoder_t::encode(x, p);
    }
    // For any block.
    template <typename S>
    MXDNN_INLINE void encode_special(const uint16_t *x, const blocks_t &b, int i, int, uint8_t *codes) {
        const __m256i c = source_bf16_t::in_order(
                minifloat_encoder_t<E>::template encode_scaled<source_bf16_t>(x, line_params_of_t{b, i, i}));
        store256(codes, b.scale[i] == e8m0_poison ? _mm256_set1_epi8(char(E::poisoned_code)) : c);
    }
};

template <typename E>
struct mx_family_t : source_order_t {
    using elem_t = E;
    using encoder_t = mx_encoder_t<E>;
    static constexpr int64_t block = mx_block;
    // `any`: x may be NaN or Inf and the factor negative.
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        return any ? encoder_t::template encode_any<S>(x, p) : encoder_t::template encode_scaled<S>(x, p);
    }
    template <typename S>
    MXDNN_INLINE void encode_special(
            const typename S::raw_t *, const blocks_t &b, int i, int, uint8_t *codes) {
        if (b.scale[i] == e8m0_poison) store256(codes, _mm256_set1_epi8(char(E::poisoned_code)));
    }
};

struct nvfp4_family_t : source_order_t {
    using elem_t = f4_e2m1_t;
    using encoder_t = minifloat_encoder_t<f4_e2m1_t>;
    static constexpr int64_t block = nvfp4_block;
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        return any ? encoder_t::template encode_any<S>(x, p) : encoder_t::template encode_scaled<S>(x, p);
    }
    // No finite factor: divided by the divisor. The result is ±0 if that is 0, and 0 if it is NaN.
    template <typename S>
    MXDNN_INLINE void encode_special(
            const typename S::raw_t *x, const blocks_t &b, int i, int, uint8_t *codes) {
        if ((f32_bits(b.factor[i]) & magnitude_mask) < inf_bits) return;
        const float d = b.global * decode_e4m3(b.scale[i]);
        alignas(32) float y[encode_step] = {};
        alignas(32) uint8_t c[encode_step];
        for (int j = 0; j < int(nvfp4_block); j++) {
            const float v = S::value(x[j]);
            y[j] = d != d ? 0.f : d == 0 ? f32_from(f32_bits(v) & ~magnitude_mask) : v / d;
        }
        store256(c, source_f32_t::in_order(encoder_t::template encode_any<source_f32_t>(y, factor_t{1.f})));
        store128(codes, load128(c));
    }
};

// bf16 in lines; scales are computed, without a global one.
struct nvfp4_bf16_family_t {
    using elem_t = f4_e2m1_t;
    static constexpr const mx_shift_t *shift = nullptr;
    static constexpr bool by_bounds = true;
    template <typename S>
    MXDNN_INLINE __m256i in_order(__m256i bytes) {
        return bytes;
    }
    template <typename S>
    MXDNN_INLINE __m256i nibbles_in_order(__m256i bytes) {
        return _mm256_permute4x64_epi64(bytes, 0xd8);
    }
    static constexpr int64_t block = nvfp4_block;
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
        return encode_nvfp4(x, p.place(0), p.place(1));
    }
    template <typename S>
    MXDNN_INLINE void encode_special(const uint16_t *x, const blocks_t &b, int i, int, uint8_t *codes) {
        if (b.scale[i] < nvfp4_bounds_t::end) return;
        if (b.scale[i] == f8_e4m3_t::nan_code) return store128(codes, _mm_setzero_si128());
        alignas(32) uint16_t y[encode_step] = {};
        alignas(32) uint8_t c[encode_step];
        __builtin_memcpy(y, x, sizeof(y[0]) * size_t(nvfp4_block));
        const factor_t inverse{1.f / decode_e4m3(b.scale[i])};
        store256(c, source_bf16_t::in_order(nvfp4_family_t::encode<source_bf16_t, false>(y, inverse)));
        store128(codes, load128(c));
    }
};

template <typename E>
struct affine_family_t : source_order_t {
    using elem_t = E;
    static constexpr int64_t block = 0; // varies
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        return encode_affine<E, S>(x, p);
    }
    template <typename S>
    MXDNN_INLINE void encode_special(const typename S::raw_t *, const blocks_t &, int, int, uint8_t *) {}
};

// Scales are computed; elements and scales have 16 bits.
template <typename E>
struct affine16_family_t : source_order_t {
    using elem_t = E;
    static constexpr int64_t block = 0; // varies
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        if constexpr (S::dt == mxdnn_bf16) return encode_affine_bf16<E>(x, p);
        return encode_affine_by_reciprocal<E, S>(x, p);
    }
    template <typename S>
    MXDNN_INLINE void put_in_order(const float *in, float *out) {
        if constexpr (S::dt == mxdnn_bf16) return S::put_pairs_in_order(in, out);
        S::put_in_order(in, out);
    }
    template <typename S>
    MXDNN_INLINE void encode_special(
            const typename S::raw_t *x, const blocks_t &b, int i, int block, uint8_t *codes) {
        if (!is_affine_special<E>(b, i)) return;
        for (int k = 0; k < block; k += encode_step)
            store256(codes + k, S::in_order(encode_affine<E, S>(x + k, line_params_of_t{b, i, i})));
    }
};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
