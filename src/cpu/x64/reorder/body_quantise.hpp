// SPDX-License-Identifier: Apache-2.0
// Lines of f32, bf16 or f16 to codes, scales and zero points: measure the blocks of four lines, make their
// scales together, then encode the lines, which are still in the first-level cache.
#pragma once

#include "cpu/x64/reorder/body_params.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Elements are encoded 32 at a time.
constexpr int encode_step = 32;

// Up to four lines of whole blocks. Beyond `stored_blocks` a block is padding.
struct four_lines_t {
    const uint8_t *src;
    const uint8_t *next; // lines to fetch meanwhile
    int64_t line_bytes;
    int lines, n, stored_blocks;
    uint8_t *scales, *zero_points; // of the first block and line
    uint8_t *codes;
    int64_t pitch;
    write_t how;

    template <typename raw_t>
    MXDNN_INLINE const raw_t *line(const four_lines_t &q, int l) {
        return reinterpret_cast<const raw_t *>(q.src + l * q.line_bytes);
    }
};

// ---- measuring ----

// Calls body(i, v): v are eight vectors, for blocks i and i + 1 of four lines each, that block(x) makes of a
// block. What is not there is something that is.
template <typename S, typename F, typename B>
MXDNN_INLINE void for_block_pairs(const four_lines_t &q, int block, F &&vector_of, B &&body) {
    const int blocks = q.n / block;
    const typename S::raw_t *x[4];
    for (int l = 0; l < 4; l++) x[l] = four_lines_t::line<typename S::raw_t>(q, l < q.lines ? l : 0);
    for (int i = 0; i < blocks; i += 2) {
        __m256i v[8];
        for (int j = 0; j < 8; j++) v[j] = vector_of(x[j & 3] + (i + (j >> 2) < blocks ? i + (j >> 2) : i) * block);
        body(i, v);
    }
}

template <typename S>
MXDNN_INLINE void measure_amax_of(blocks_t &b, const four_lines_t &q, int block) {
    for_block_pairs<S>(
            q, block,
            [=](const typename S::raw_t *x) {
                __m256i m = S::template magnitudes<false>(x);
                for (int j = 16; j < block; j += 16) m = S::larger(m, S::template magnitudes<false>(x + j));
                return m;
            },
            [&](int i, const __m256i *v) { store256(b.amax + 4 * i, S::largest(v)); });
}

template <typename S>
void measure_amax(blocks_t &b, const four_lines_t &q, int block) {
    if (block == nvfp4_block) return measure_amax_of<S>(b, q, int(nvfp4_block));
    if (block == mx_block) return measure_amax_of<S>(b, q, int(mx_block));
    measure_amax_of<S>(b, q, block);
}

// Of u4. NaN is not above anything.
template <typename S>
void measure_reach(float *out, const four_lines_t &q, int block, bool negate) {
    const __m256 sign = _mm256_set1_ps(negate ? -0.f : 0.f);
    for_block_pairs<S>(
            q, block,
            [=](const typename S::raw_t *x) {
                __m256 most = _mm256_setzero_ps();
                for (int j = 0; j < block; j += encode_step) {
                    const f32x32_t y = S::load(x + j);
                    for (const __m256 &v : y.v) most = _mm256_max_ps(_mm256_xor_ps(v, sign), most);
                }
                return _mm256_castps_si256(most);
            },
            [&](int i, const __m256i *v) { store256(out + 4 * i, largest_u32(v)); });
}

template <typename S>
void measure(blocks_t &b, const four_lines_t &q, const block_format_t &f) {
    measure_amax<S>(b, q, f.block);
    if (f.elem != mxdnn_u4) return;
    measure_reach<S>(b.below, q, f.block, true);
    measure_reach<S>(b.above, q, f.block, false);
}

// ---- scales ----

void make_scales(blocks_t &b, int n, const block_format_t &f, float global) {
    if (f.family == quant_family_t::nvfp4)
        nvfp4_scales(b, n, f.has_global, global);
    else if (f.family == quant_family_t::mx)
        visit_type(mx_element_types(), f.elem,
                [&](auto e) { mx_scales(b, n, mx_target<decltype(e)>, f.rounding); });
    else
        with_scale(f.scale_dt, [&](auto s) {
            if (f.elem == mxdnn_s4)
                s4_scales<decltype(s)>(b, n);
            else
                u4_scales<decltype(s)>(b, n);
        });
}

// Whether there are blocks that the encoders leave to encode_special(). `shift` is null where elements are
// multiplied.
bool make_factors(
        blocks_t &b, int n, const block_format_t &f, const mx_shift_t *shift, bool given, float global) {
    if (f.family == quant_family_t::mx) {
        if (shift && !mx_shifts(b, n, *shift)) return false;
        const bool poisoned = mx_factors(b, n);
        return shift || poisoned;
    }
    if (f.family == quant_family_t::nvfp4)
        return given ? nvfp4_factors<true>(b, n, f.has_global, global)
                     : nvfp4_factors<false>(b, n, f.has_global, global);
    with_scale(f.scale_dt, [&](auto s) { affine_scales<decltype(s)>(b, n); });
    if (f.zp == zero_point_kind_t::float_zero)
        with_scale(f.zp_dt, [&](auto z) { affine_zeros<decltype(z)>(b, n); });
    else
        for_blocks(n, [&](int i) {
            b.zero[i] = 0;
            b.zp[i] = f.zp == zero_point_kind_t::none ? 0 : b.zp[i];
        });
    return false;
}

// ---- one class per family: how it encodes 32 elements from block i on, and blocks that are different ----

template <typename E>
struct mx_encoder_t : minifloat_encoder_t<E> {};
template <>
struct mx_encoder_t<s8_t> : mxint8_encoder_t {};

// bf16 to minifloats, scales computed.
template <typename E>
struct mx_bf16_family_t {
    MXDNN_INLINE constexpr int block(const block_format_t &) { return int(mx_block); }
    template <typename S, bool any>
    MXDNN_INLINE __m256i encode(const uint16_t *x, const blocks_t &b, int i) {
        return mx_bf16_encoder_t<E>::encode(x, b.shift[i]);
    }
    // Any block may come here.
    template <typename S>
    MXDNN_INLINE void encode_special(const uint16_t *x, const blocks_t &b, int i, uint8_t *codes) {
        const __m256i c = minifloat_encoder_t<E>::template encode_scaled<source_bf16_t>(x, b.factor[i], b.factor[i]);
        store256(codes, b.scale[i] == e8m0_poison ? _mm256_set1_epi8(char(E::poisoned_code)) : c);
    }
};

template <typename E>
struct mx_family_t {
    using encoder_t = mx_encoder_t<E>;
    MXDNN_INLINE constexpr int block(const block_format_t &) { return int(mx_block); }
    // `any`: x may be NaN or Inf and the factor negative.
    template <typename S, bool any>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const blocks_t &b, int i) {
        return any ? encoder_t::template encode_any<S>(x, b.factor[i], b.factor[i])
                   : encoder_t::template encode_scaled<S>(x, b.factor[i], b.factor[i]);
    }
    template <typename S>
    MXDNN_INLINE void encode_special(const typename S::raw_t *, const blocks_t &b, int i, uint8_t *codes) {
        if (b.scale[i] == e8m0_poison) store256(codes, _mm256_set1_epi8(char(E::poisoned_code)));
    }
};

struct nvfp4_family_t {
    using encoder_t = minifloat_encoder_t<f4_e2m1_t>;
    MXDNN_INLINE constexpr int block(const block_format_t &) { return int(nvfp4_block); }
    template <typename S, bool any>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const blocks_t &b, int i) {
        return any ? encoder_t::template encode_any<S>(x, b.factor[i], b.factor[i + 4])
                   : encoder_t::template encode_scaled<S>(x, b.factor[i], b.factor[i + 4]);
    }
    // No finite factor: divided by the divisor, ±0 where that is 0, and 0 where it is NaN.
    template <typename S>
    MXDNN_INLINE void encode_special(const typename S::raw_t *x, const blocks_t &b, int i, uint8_t *codes) {
        const float d = b.divisor[i];
        if (d == d && (f32_bits(b.factor[i]) & magnitude_mask) < inf_bits) return;
        alignas(32) float y[encode_step] = {};
        alignas(32) uint8_t c[encode_step];
        for (int j = 0; j < int(nvfp4_block); j++) {
            const float v = S::value(x[j]);
            y[j] = d != d ? 0.f : d == 0 ? f32_from(f32_bits(v) & ~magnitude_mask) : v / d;
        }
        store256(c, encoder_t::template encode_any<source_f32_t>(y, 1.f, 1.f));
        store128(codes, load128(c));
    }
};

template <typename E>
struct affine_family_t {
    MXDNN_INLINE int block(const block_format_t &f) { return f.block; }
    template <typename S, bool any>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const blocks_t &b, int i) {
        return encode_affine<E, S>(x, {b.factor[i], b.zero[i], int(b.zp[i])});
    }
    template <typename S>
    MXDNN_INLINE void encode_special(const typename S::raw_t *, const blocks_t &, int, uint8_t *) {}
};

template <size_t bytes>
MXDNN_INLINE void prefetch(const uint8_t *p) {
    for (size_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char *>(p + i), _MM_HINT_T0);
}

template <typename S, typename F, bool any>
void encode(const four_lines_t &q, const block_format_t &f, const blocks_t &b, bool special) {
    const bool around = goes_around(q.how, q.codes, q.pitch);
    const int block = F::block(f), blocks_per_step = max_of(encode_step / block, 1);
    const int steps_per_block = max_of(block / encode_step, 1);
    for (int l = 0; l < q.lines; l++) {
        const typename S::raw_t *x = four_lines_t::line<typename S::raw_t>(q, l);
        const uint8_t *ahead = q.next + l * q.line_bytes;
        uint8_t *c = q.codes + l * q.pitch;
        for (int k = 0, i = l; k < q.n; i += 4 * blocks_per_step)
            for (int j = 0; j < steps_per_block; j++, k += encode_step) {
                prefetch<encode_step * sizeof(*x)>(ahead + k * int(sizeof(*x)));
                write256(around, c + k, F::template encode<S, any>(x + k, b, i));
            }
        if (!special) continue;
        for (int i = 0; i < q.stored_blocks; i++)
            F::template encode_special<S>(x + i * block, b, 4 * i + l, c + i * block);
    }
}

// ---- lines ----

// What depends on the types.
struct codec_t {
    void (*measure)(blocks_t &b, const four_lines_t &q, const block_format_t &f);
    void (*encode)(const four_lines_t &q, const block_format_t &f, const blocks_t &b, bool special);
    int bytes; // of a source element
    const mx_shift_t *shift; // or null: see make_factors()
};

template <typename S, bool any, typename E>
void set_mx_codec(codec_t &c) {
    if constexpr (S::dt == mxdnn_bf16 && !any && E::is_float) {
        c.encode = encode<S, mx_bf16_family_t<E>, any>;
        c.shift = &mx_bf16_encoder_t<E>::shift;
    } else {
        c.encode = encode<S, mx_family_t<E>, any>;
    }
}

template <typename S, bool any>
codec_t codec_of(const block_format_t &f) {
    codec_t c = {measure<S>, nullptr, int(sizeof(typename S::raw_t)), nullptr};
    if (f.family == quant_family_t::nvfp4)
        c.encode = encode<S, nvfp4_family_t, any>;
    else if (f.family == quant_family_t::mx)
        visit_type(mx_element_types(), f.elem, [&](auto e) { set_mx_codec<S, any, decltype(e)>(c); });
    else
        visit_type(affine_element_types(), f.elem,
                [&](auto e) { c.encode = encode<S, affine_family_t<decltype(e)>, false>; });
    return c;
}

void quantise_four(const codec_t &codec, const four_lines_t &q, const block_format_t &f, bool given, float global) {
    const int n = q.n / f.block * 4;
    blocks_t b;
    for (int i = n / 16 * 16; i < (n + 15) / 16 * 16; i++) b.amax[i] = b.scale[i] = b.zp[i] = 0;
    if (given) {
        load_codes(f.scale_bytes, b.scale, q.scales, q.stored_blocks, q.lines);
        if (q.zero_points) load_codes(f.zp_bytes, b.zp, q.zero_points, q.stored_blocks, q.lines);
    } else {
        codec.measure(b, q, f);
        make_scales(b, n, f, global);
        store_codes(f.scale_bytes, b.scale, q.scales, q.stored_blocks, q.lines);
        if (q.zero_points) store_codes(f.zp_bytes, b.zp, q.zero_points, q.stored_blocks, q.lines);
    }
    const bool special = make_factors(b, n, f, codec.shift, given, global);
    codec.encode(q, f, b, special);
}

void quantise_lines(const codec_t &codec, const block_format_t &f, bool given, const source_lines_t &src, float global,
        const line_params_t &params, uint8_t *codes, int64_t pitch, write_t how) {
    const int unit = max_of(f.block, encode_step);
    const int whole = src.n / unit * unit, rest = src.n - whole;
    for (int first = 0; first < src.lines; first += 4) {
        four_lines_t q;
        q.src = static_cast<const uint8_t *>(src.data) + first * src.line_bytes;
        q.next = q.src;
        if (first + 4 < src.lines)
            q.next += 4 * src.line_bytes;
        else if (src.next)
            q.next = static_cast<const uint8_t *>(src.next);
        q.line_bytes = src.line_bytes;
        q.lines = min_of(4, src.lines - first);
        q.n = whole;
        q.stored_blocks = whole / f.block;
        q.scales = params.scales + first * f.scale_bytes;
        q.zero_points = params.zero_points ? params.zero_points + first * f.zp_bytes : nullptr;
        q.codes = codes + first * pitch;
        q.pitch = pitch;
        q.how = how;
        if (whole) quantise_four(codec, q, f, given, global);
        if (!rest) continue;
        // A last, partial block: zeros change nothing that is measured.
        alignas(32) uint8_t x[4][reorder_max_block * sizeof(float)] = {};
        for (int l = 0; l < q.lines; l++)
            __builtin_memcpy(x[l], q.src + l * q.line_bytes + whole * codec.bytes, size_t(rest) * size_t(codec.bytes));
        q.src = q.next = x[0];
        q.line_bytes = sizeof(x[0]);
        q.n = unit;
        q.scales += q.stored_blocks * reorder_lines * f.scale_bytes;
        if (q.zero_points) q.zero_points += q.stored_blocks * reorder_lines * f.zp_bytes;
        q.stored_blocks = (rest + f.block - 1) / f.block;
        q.codes += whole;
        quantise_four(codec, q, f, given, global);
        const int padded = (rest + encode_step - 1) / encode_step * encode_step;
        for (int l = 0; l < q.lines; l++) __builtin_memset(q.codes + l * pitch + rest, 0, size_t(padded - rest));
    }
}

template <typename S>
void to_f32(const void *src, float *out, int n) {
    const auto *x = static_cast<const typename S::raw_t *>(src);
    for (int i = 0; i < n; i++) out[i] = S::value(x[i]);
}

void quantise(const block_format_t &f, bool given, const source_lines_t &src, float global,
        const line_params_t &params, uint8_t *codes, int64_t pitch, write_t how) {
    // Factors are positive and, where scales are computed, so is every magnitude below them finite.
    const bool positive = !f.has_global || global > 0;
    if (!given && positive) {
        codec_t codec = {};
        with_source(src.dt, [&](auto s) { codec = codec_of<decltype(s), false>(f); });
        return quantise_lines(codec, f, false, src, global, params, codes, pitch, how);
    }
    // Anything else is rare: one form of source will do, a line at a time.
    const codec_t codec = codec_of<source_f32_t, true>(f);
    alignas(32) float x[reorder_max_length];
    for (int l = 0; l < src.lines; l++) {
        const void *line = static_cast<const uint8_t *>(src.data) + l * src.line_bytes;
        with_source(src.dt, [&](auto s) { to_f32<decltype(s)>(line, x, src.n); });
        const line_params_t p = {params.scales + l * f.scale_bytes,
                params.zero_points ? params.zero_points + l * f.zp_bytes : nullptr};
        quantise_lines(codec, f, given, {x, mxdnn_f32, int64_t(sizeof(x)), 1, src.n, nullptr}, global, p, codes + l * pitch, pitch, how);
    }
}

template <typename S>
uint32_t finite_amax_of(const source_lines_t &src) {
    using raw_t = typename S::raw_t;
    __m256i m[8] = {};
    for (int l = 0; l < src.lines; l++) {
        const raw_t *x = reinterpret_cast<const raw_t *>(static_cast<const uint8_t *>(src.data) + l * src.line_bytes);
        const int whole = src.n / 16 * 16, rest = src.n - whole;
        for (int k = 0; k < whole; k += 16) m[0] = S::larger(m[0], S::template magnitudes<true>(x + k));
        if (!rest) continue;
        alignas(32) raw_t last[16] = {};
        __builtin_memcpy(last, x + whole, size_t(rest) * sizeof(raw_t));
        m[0] = S::larger(m[0], S::template magnitudes<true>(last));
    }
    return uint32_t(_mm256_cvtsi256_si32(S::largest(m)));
}

uint32_t finite_amax(const source_lines_t &src) {
    uint32_t amax = 0;
    with_source(src.dt, [&](auto s) { amax = finite_amax_of<decltype(s)>(src); });
    return amax;
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
