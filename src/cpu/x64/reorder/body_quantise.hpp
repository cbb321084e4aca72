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
    int params_pitch;
    uint8_t *codes; // a byte each, or half a byte
    int64_t pitch;
    bool nibbles;
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
        for (int j = 0; j < 8; j++)
            v[j] = vector_of(x[j & 3] + (i + (j >> 2) < blocks ? i + (j >> 2) : i) * block);
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

// Of u4: how far a block reaches above 0, or below it.
template <typename S>
void measure_reach(float *out, const four_lines_t &q, int block, bool negate) {
    for_block_pairs<S>(
            q, block,
            [=](const typename S::raw_t *x) {
                __m256i most = _mm256_setzero_si256();
                for (int j = 0; j < block; j += S::lanes)
                    most = S::larger_number(most, S::numbers(x + j, negate));
                return most;
            },
            [&](int i, const __m256i *v) { store256(out + 4 * i, S::largest(v)); });
}

// A NaN is above every number, on one side.
MXDNN_INLINE void reach_to_amax(blocks_t &b, int n) {
    for_blocks(n, [&](int i) { b.amax[i] = max_of(f32_bits(b.below[i]), f32_bits(b.above[i])); });
}

template <typename S>
void measure(blocks_t &b, const four_lines_t &q, const block_format_t &f) {
    if (f.elem != mxdnn_u4) return measure_amax<S>(b, q, f.block);
    measure_reach<S>(b.below, q, f.block, true);
    measure_reach<S>(b.above, q, f.block, false);
    reach_to_amax(b, q.n / f.block * 4);
}

// ---- scales ----

void make_scales(blocks_t &b, int n, const block_format_t &f) {
    if (f.family == quant_family_t::nvfp4)
        nvfp4_scales(b, n, f.has_global, b.global);
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
bool make_factors(blocks_t &b, int n, const block_format_t &f, bool given, const mx_shift_t *shift) {
    if (f.family == quant_family_t::mx) {
        if (shift && !mx_shifts(b, n, *shift)) return false;
        const bool poisoned = mx_factors(b, n);
        return shift || poisoned;
    }
    if (f.family == quant_family_t::nvfp4)
        return given || f.has_global ? nvfp4_factors(b, n, f.has_global) : nvfp4_inverses(b, n);
    bool special = false;
    with_scale(f.scale_dt, [&](auto s) { special = affine_scales<decltype(s)>(b, n); });
    if (f.zp == zero_point_kind_t::float_zero)
        with_scale(f.zp_dt, [&](auto z) { affine_zeros<decltype(z)>(b, n); });
    else
        for_blocks(n, [&](int i) {
            b.zero[i] = 0;
            b.zp[i] = f.zp == zero_point_kind_t::none ? 0 : b.zp[i];
        });
    return special;
}

// ---- what encoders are told: parameters of 32 elements, in the order of f32x32_t; shifts of 16 in a row
// ----

// Of a line. The first and the last 16 elements may be of two blocks.
struct line_params_of_t {
    const blocks_t &b;
    int i, j;

    __m256i shift(int v) const { return _mm256_set1_epi16(short(b.shift[v ? j : i])); }
    __m256 factor(int v) const { return _mm256_set1_ps(b.factor[v < 2 ? i : j]); }
    __m256 divisor(int v) const { return _mm256_set1_ps(b.divisor[v < 2 ? i : j]); }
    __m256 zero(int v) const { return _mm256_set1_ps(b.zero[v < 2 ? i : j]); }
    __m256i zero_point(int v) const { return _mm256_set1_epi32(int(b.zp[v < 2 ? i : j])); }
    __m256i zero_point_bytes() const { return _mm256_set1_epi8(char(b.zp[i])); }
};

struct unit_factor_t {
    __m256 factor(int) const { return _mm256_set1_ps(1.f); }
};

// ---- one class per family: how it encodes 32 elements, and blocks that are different ----

MXDNN_INLINE constexpr int bits_of_block(dim_t block) { return __builtin_ctz(unsigned(block)); }

template <typename E>
struct mx_encoder_t : minifloat_encoder_t<E> {};
template <>
struct mx_encoder_t<s8_t> : mxint8_encoder_t {};

// bf16 to minifloats, scales computed.
template <typename E>
struct mx_bf16_family_t {
    MXDNN_INLINE constexpr int block_bits(const block_format_t &) { return bits_of_block(mx_block); }
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const uint16_t *x, const P &p) {
        return mx_bf16_encoder_t<E>::encode(x, p);
    }
    // Any block may come here.
    template <typename S>
    MXDNN_INLINE void encode_special(const uint16_t *x, const blocks_t &b, int i, int, uint8_t *codes) {
        const __m256i c = source_bf16_t::in_order(
                minifloat_encoder_t<E>::template encode_scaled<source_bf16_t>(x, line_params_of_t{b, i, i}));
        store256(codes, b.scale[i] == e8m0_poison ? _mm256_set1_epi8(char(E::poisoned_code)) : c);
    }
};

template <typename E>
struct mx_family_t {
    using encoder_t = mx_encoder_t<E>;
    MXDNN_INLINE constexpr int block_bits(const block_format_t &) { return bits_of_block(mx_block); }
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

struct nvfp4_family_t {
    using encoder_t = minifloat_encoder_t<f4_e2m1_t>;
    MXDNN_INLINE constexpr int block_bits(const block_format_t &) { return bits_of_block(nvfp4_block); }
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        return any ? encoder_t::template encode_any<S>(x, p) : encoder_t::template encode_scaled<S>(x, p);
    }
    // No finite factor: divided by the divisor, ±0 where that is 0, and 0 where it is NaN.
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
        store256(c, source_f32_t::in_order(encoder_t::template encode_any<source_f32_t>(y, unit_factor_t())));
        store128(codes, load128(c));
    }
};

template <typename E>
struct affine_family_t {
    MXDNN_INLINE int block_bits(const block_format_t &f) { return bits_of_block(f.block); }
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        return encode_affine<E, S>(x, p);
    }
    template <typename S>
    MXDNN_INLINE void encode_special(const typename S::raw_t *, const blocks_t &, int, int, uint8_t *) {}
};

// Scales computed, elements and scales of 16 bits.
template <typename E>
struct affine16_family_t {
    MXDNN_INLINE int block_bits(const block_format_t &f) { return bits_of_block(f.block); }
    template <typename S, bool any, typename P>
    MXDNN_INLINE __m256i encode(const typename S::raw_t *x, const P &p) {
        return encode_affine_by_reciprocal<E, S>(x, p);
    }
    template <typename S>
    MXDNN_INLINE void encode_special(
            const typename S::raw_t *x, const blocks_t &b, int i, int block, uint8_t *codes) {
        if (!is_affine_special(b, i)) return;
        for (int k = 0; k < block; k += encode_step)
            store256(codes + k, S::in_order(encode_affine<E, S>(x + k, line_params_of_t{b, i, i})));
    }
};

template <size_t bytes>
MXDNN_INLINE void prefetch(const uint8_t *p) {
    for (size_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char *>(p + i), _MM_HINT_T0);
}

// Blocks of one line that encode() does not fit, a byte for each code or half a byte.
template <typename S, typename F>
__attribute__((noinline)) void encode_specials(const four_lines_t &q, const blocks_t &b, int block, int line,
        const typename S::raw_t *x, uint8_t *codes) {
    alignas(32) uint8_t c[reorder_max_block];
    for (int i = 0; i < q.stored_blocks; i++, x += block) {
        if (!q.nibbles) {
            F::template encode_special<S>(x, b, 4 * i + line, block, codes + i * block);
            continue;
        }
        uint8_t *out = codes + i * block / 2;
        for (int j = 0; j < block; j++) c[j] = out[j / 2] >> (j % 2 * 4) & 15;
        F::template encode_special<S>(x, b, 4 * i + line, block, c);
        for (int j = 0; j < block; j += 2) out[j / 2] = uint8_t(c[j] | c[j + 1] << 4);
    }
}

template <typename S, typename F, bool any>
void encode(const four_lines_t &q, const block_format_t &f, const blocks_t &b, bool special) {
    using raw_t = typename S::raw_t;
    constexpr int line_bytes = encode_step * int(sizeof(raw_t));
    const bool around = goes_around(q.how, q.codes, q.pitch);
    const int shift = F::block_bits(f);
    for (int l = 0; l < q.lines; l++) {
        const raw_t *x = four_lines_t::line<raw_t>(q, l);
        const uint8_t *ahead = q.next + l * q.line_bytes;
        uint8_t *c = q.codes + l * q.pitch;
        const auto codes = [&](int k) {
            prefetch<line_bytes>(ahead + k * int(sizeof(raw_t)));
            const line_params_of_t p{b, (k >> shift) * 4 + l, ((k + encode_step / 2) >> shift) * 4 + l};
            return F::template encode<S, any>(x + k, p);
        };
        if (q.nibbles)
            for (int k = 0; k < q.n; k += 2 * encode_step) {
                const __m256i low = join_nibbles(codes(k)), high = join_nibbles(codes(k + encode_step));
                write256(around, c + k / 2, S::nibbles_in_order(_mm256_packus_epi16(low, high)));
            }
        else
            for (int k = 0; k < q.n; k += encode_step) write256(around, c + k, S::in_order(codes(k)));
        if (special) encode_specials<S, F>(q, b, 1 << shift, l, x, c);
    }
}

// ---- blocks that stand side by side ----

// The rows of a block each of up to reorder_max_lines lines, padded to a multiple of 32.
struct rows_t {
    const uint8_t *src;
    int64_t row_bytes;
    int rows, lines;
    uint8_t *codes;
    int64_t pitch;
};

// Rows that are fetched into cache ahead: each begins on a page of its own, which hardware does not follow.
constexpr int rows_ahead = 16;

// body(vector, elements) for all vectors of a row after the other.
template <typename S, typename B>
MXDNN_INLINE void for_row_vectors(const rows_t &q, B &&body) {
    using raw_t = typename S::raw_t;
    constexpr int step = encode_step / S::lanes;
    const uint8_t *p = q.src;
    for (int r = 0; r < q.rows; r++, p += q.row_bytes) {
        const raw_t *x = reinterpret_cast<const raw_t *>(p);
        for (int v = 0; v < q.lines / S::lanes; v += step) {
            prefetch<encode_step * sizeof(raw_t)>(
                    p + rows_ahead * q.row_bytes + v * S::lanes * int(sizeof(raw_t)));
            for (int i = v; i < v + step; i++) body(i, x + i * S::lanes);
        }
    }
}

template <typename S>
void measure_rows(blocks_t &b, const rows_t &q, const block_format_t &f) {
    using raw_t = typename S::raw_t;
    const int vectors = q.lines / S::lanes;
    __m256i most[reorder_max_lines / S::lanes], least[reorder_max_lines / S::lanes];
    for (int v = 0; v < vectors; v++) most[v] = least[v] = _mm256_setzero_si256();
    if (f.elem != mxdnn_u4) {
        for_row_vectors<S>(
                q, [&](int v, const raw_t *x) { most[v] = S::larger(most[v], S::lane_magnitudes(x)); });
        for (int v = 0; v < vectors; v++) S::store_bits(b.amax + v * S::lanes, most[v]);
        return;
    }
    for_row_vectors<S>(q, [&](int v, const raw_t *x) {
        most[v] = S::larger_number(most[v], S::numbers(x, false));
        least[v] = S::larger_number(least[v], S::numbers(x, true));
    });
    for (int v = 0; v < vectors; v++) {
        S::store_bits(reinterpret_cast<uint32_t *>(b.above + v * S::lanes), most[v]);
        S::store_bits(reinterpret_cast<uint32_t *>(b.below + v * S::lanes), least[v]);
    }
    reach_to_amax(b, q.lines);
}

// Of 32 lines.
struct lane_params_t {
    const uint16_t *shifts;
    const float *factors, *divisors;
    const uint8_t *zero_points;
    const int32_t *wide_zero_points;

    __m256i shift(int v) const { return load256(shifts + 16 * v); }
    __m256 factor(int v) const { return _mm256_loadu_ps(factors + 8 * v); }
    __m256 divisor(int v) const { return _mm256_loadu_ps(divisors + 8 * v); }
    __m256 zero(int) const { return _mm256_setzero_ps(); }
    __m256i zero_point(int v) const { return load256(wide_zero_points + 8 * v); }
    __m256i zero_point_bytes() const { return load256(zero_points); }
};

template <typename S, typename F>
void encode_rows(const rows_t &q, const blocks_t &b) {
    using raw_t = typename S::raw_t;
    alignas(32) uint16_t shifts[reorder_max_lines];
    alignas(32) float factors[reorder_max_lines], divisors[reorder_max_lines];
    alignas(32) int32_t wide[reorder_max_lines];
    alignas(32) uint8_t zero_points[reorder_max_lines];
    for (int l = 0; l < q.lines; l++) shifts[l] = uint16_t(b.shift[l]);
    for (int l = 0; l < q.lines; l += encode_step) {
        S::put_in_order(b.factor + l, factors + l);
        S::put_in_order(b.divisor + l, divisors + l);
        S::put_in_order(reinterpret_cast<const float *>(b.zp + l), reinterpret_cast<float *>(wide + l));
        const int32_t *w = wide + l;
        store256(zero_points + l, pack_signed(load256(w), load256(w + 8), load256(w + 16), load256(w + 24)));
    }
    for (int r = 0; r < q.rows; r++) {
        const raw_t *x = reinterpret_cast<const raw_t *>(q.src + r * q.row_bytes);
        uint8_t *c = q.codes + r * q.pitch;
        for (int l = 0; l < q.lines; l += encode_step) {
            const lane_params_t p{shifts + l, factors + l, divisors + l, zero_points + l, wide + l};
            store256(c + l, S::in_order(F::template encode<S, false>(x + l, p)));
        }
    }
}

// ---- lines ----

// What depends on the types.
struct codec_t {
    void (*measure)(blocks_t &b, const four_lines_t &q, const block_format_t &f);
    void (*encode)(const four_lines_t &q, const block_format_t &f, const blocks_t &b, bool special);
    void (*measure_rows)(blocks_t &b, const rows_t &q, const block_format_t &f);
    void (*encode_rows)(const rows_t &q, const blocks_t &b);
    int bytes;               // of a source element
    const mx_shift_t *shift; // or null: see make_factors()
};

template <typename S, bool any, typename F>
void set_family(codec_t &c) {
    c.encode = encode<S, F, any>;
    if constexpr (!any) c.encode_rows = encode_rows<S, F>;
}

template <typename S, bool any, typename E>
void set_mx_family(codec_t &c) {
    if constexpr (S::dt == mxdnn_bf16 && !any && E::is_float) {
        set_family<S, any, mx_bf16_family_t<E>>(c);
        c.shift = &mx_bf16_encoder_t<E>::shift;
    } else {
        set_family<S, any, mx_family_t<E>>(c);
    }
}

template <typename S, bool any, typename E>
void set_affine_family(codec_t &c, const block_format_t &f) {
    set_family<S, any, affine_family_t<E>>(c);
    if constexpr (sizeof(typename S::raw_t) == 2 && !any)
        if (f.scale_bytes == 2) set_family<S, any, affine16_family_t<E>>(c);
}

template <typename S, bool any>
codec_t codec_of(const block_format_t &f) {
    codec_t c = {measure<S>, nullptr, measure_rows<S>, nullptr, int(sizeof(typename S::raw_t)), nullptr};
    if (f.family == quant_family_t::nvfp4)
        set_family<S, any, nvfp4_family_t>(c);
    else if (f.family == quant_family_t::mx)
        visit_type(mx_element_types(), f.elem, [&](auto e) { set_mx_family<S, any, decltype(e)>(c); });
    else
        visit_type(affine_element_types(), f.elem,
                [&](auto e) { set_affine_family<S, any, decltype(e)>(c, f); });
    return c;
}

void quantise_four(
        const codec_t &codec, const four_lines_t &q, const block_format_t &f, bool given, float global) {
    const int n = q.n / f.block * 4;
    blocks_t b;
    b.global = f.has_global ? global : 1.f;
    for (int i = n / 16 * 16; i < (n + 15) / 16 * 16; i++) b.amax[i] = b.scale[i] = b.zp[i] = 0;
    if (given) {
        load_codes(f.scale_bytes, b.scale, q.scales, q.params_pitch, q.stored_blocks, q.lines);
        if (q.zero_points)
            load_codes(f.zp_bytes, b.zp, q.zero_points, q.params_pitch, q.stored_blocks, q.lines);
    } else {
        codec.measure(b, q, f);
        make_scales(b, n, f);
        store_codes(f.scale_bytes, b.scale, q.scales, q.params_pitch, q.stored_blocks, q.lines);
        if (q.zero_points)
            store_codes(f.zp_bytes, b.zp, q.zero_points, q.params_pitch, q.stored_blocks, q.lines);
    }
    const bool special = make_factors(b, n, f, given, codec.shift);
    codec.encode(q, f, b, special);
}

void quantise_lines(const codec_t &codec, const block_format_t &f, bool given, const source_lines_t &src,
        float global, const line_params_t &params, uint8_t *codes, int64_t pitch, bool nibbles, write_t how) {
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
        q.params_pitch = params.pitch;
        q.codes = codes + first * pitch;
        q.pitch = pitch;
        q.nibbles = nibbles;
        q.how = how;
        if (whole) quantise_four(codec, q, f, given, global);
        if (!rest) continue;
        // A last, partial block: zeros change nothing that is measured.
        alignas(32) uint8_t x[4][reorder_max_block * sizeof(float)] = {};
        for (int l = 0; l < q.lines; l++)
            __builtin_memcpy(
                    x[l], q.src + l * q.line_bytes + whole * codec.bytes, size_t(rest) * size_t(codec.bytes));
        q.src = q.next = x[0];
        q.line_bytes = sizeof(x[0]);
        q.n = unit;
        q.scales += q.stored_blocks * q.params_pitch * f.scale_bytes;
        if (q.zero_points) q.zero_points += q.stored_blocks * q.params_pitch * f.zp_bytes;
        q.stored_blocks = (rest + f.block - 1) / f.block;
        q.codes += whole;
        quantise_four(codec, q, f, given, global);
        const int padded = (rest + encode_step - 1) / encode_step * encode_step;
        for (int l = 0; l < q.lines; l++)
            __builtin_memset(q.codes + l * pitch + rest, 0, size_t(padded - rest));
    }
}

template <typename S>
void to_f32(const void *src, float *out, int n) {
    const auto *x = static_cast<const typename S::raw_t *>(src);
    for (int i = 0; i < n; i++) out[i] = S::value(x[i]);
}

void quantise(const block_format_t &f, bool given, const source_lines_t &src, float global,
        const line_params_t &params, uint8_t *codes, int64_t pitch, bool nibbles, write_t how) {
    // Factors are positive and, where scales are computed, so is every magnitude below them finite.
    const bool positive = !f.has_global || global > 0;
    if (!given && positive) {
        codec_t codec = {};
        with_source(src.dt, [&](auto s) { codec = codec_of<decltype(s), false>(f); });
        return quantise_lines(codec, f, false, src, global, params, codes, pitch, nibbles, how);
    }
    // Anything else is rare: one form of source will do, a line at a time.
    const codec_t codec = codec_of<source_f32_t, true>(f);
    alignas(32) float x[reorder_max_length];
    for (int l = 0; l < src.lines; l++) {
        const void *line = static_cast<const uint8_t *>(src.data) + l * src.line_bytes;
        with_source(src.dt, [&](auto s) { to_f32<decltype(s)>(line, x, src.n); });
        const line_params_t p = {params.scales + l * f.scale_bytes,
                params.zero_points ? params.zero_points + l * f.zp_bytes : nullptr, params.pitch};
        quantise_lines(codec, f, given, {x, mxdnn_f32, int64_t(sizeof(x)), 1, src.n, nullptr}, global, p,
                codes + l * pitch, pitch, nibbles, how);
    }
}

// ---- rows ----

// One line of a block through the kernels for lines: a block that is special, or anything that is rare.
template <typename S>
void quantise_column(const block_format_t &f, bool given, bool any, const rows_t &q, int line, float global,
        const line_params_t &params) {
    using raw_t = typename S::raw_t;
    alignas(32) raw_t x[reorder_max_block];
    alignas(32) uint8_t c[reorder_max_block];
    alignas(32) float wide[reorder_max_block];
    for (int r = 0; r < q.rows; r++)
        __builtin_memcpy(x + r, q.src + r * q.row_bytes + line * int(sizeof(raw_t)), sizeof(raw_t));
    const line_params_t p = {params.scales + line * f.scale_bytes,
            params.zero_points ? params.zero_points + line * f.zp_bytes : nullptr, params.pitch};
    if (any) {
        to_f32<S>(x, wide, q.rows);
        quantise_lines(codec_of<source_f32_t, true>(f), f, given, {wide, mxdnn_f32, 0, 1, q.rows, nullptr},
                global, p, c, reorder_max_block, false, write_t::cached);
    } else {
        quantise_lines(codec_of<S, false>(f), f, given, {x, S::dt, 0, 1, q.rows, nullptr}, global, p, c,
                reorder_max_block, false, write_t::cached);
    }
    for (int r = 0; r < q.rows; r++) q.codes[r * q.pitch + line] = c[r];
}

// Lines that fill vectors: q.lines is a multiple of 32, of which `lines` are there.
template <typename S>
void quantise_block_rows(const block_format_t &f, bool given, const rows_t &q, int lines, float global,
        const line_params_t &params) {
    const bool any = given || (f.has_global && !(global > 0));
    bool special = any;
    if (!any) {
        const codec_t codec = codec_of<S, false>(f);
        blocks_t b;
        b.global = f.has_global ? global : 1.f;
        for (int l = 0; l < q.lines; l++) b.zp[l] = 0;
        codec.measure_rows(b, q, f);
        make_scales(b, q.lines, f);
        store_line_codes(f.scale_bytes, b.scale, params.scales, lines);
        if (params.zero_points) store_line_codes(f.zp_bytes, b.zp, params.zero_points, lines);
        special = make_factors(b, q.lines, f, false, codec.shift);
        codec.encode_rows(q, b);
    }
    if (!special) return;
    for (int l = 0; l < lines; l++) quantise_column<S>(f, given, any, q, l, global, params);
}

template <typename S>
void quantise_rows_of(const block_format_t &f, bool given, const source_lines_t &src, float global,
        const line_params_t &params, uint8_t *codes, int64_t pitch) {
    constexpr int size = int(sizeof(typename S::raw_t));
    const int whole = src.n / encode_step * encode_step, rest = src.n - whole;
    for (int first = 0; first < src.lines; first += f.block) {
        const int64_t skip = first / f.block * params.pitch;
        line_params_t p = {params.scales + skip * f.scale_bytes,
                params.zero_points ? params.zero_points + skip * f.zp_bytes : nullptr, params.pitch};
        rows_t q = {static_cast<const uint8_t *>(src.data) + first * src.line_bytes, src.line_bytes,
                min_of(f.block, src.lines - first), whole, codes + first * pitch, pitch};
        if (whole) quantise_block_rows<S>(f, given, q, whole, global, p);
        if (!rest) continue;
        alignas(32) uint8_t x[reorder_max_block][encode_step * size];
        __builtin_memset(x, 0, sizeof(x[0]) * size_t(q.rows));
        for (int r = 0; r < q.rows; r++)
            __builtin_memcpy(x[r], q.src + r * q.row_bytes + whole * size, size_t(rest * size));
        p.scales += whole * f.scale_bytes;
        if (p.zero_points) p.zero_points += whole * f.zp_bytes;
        q = {x[0], int64_t(sizeof(x[0])), q.rows, encode_step, q.codes + whole, pitch};
        quantise_block_rows<S>(f, given, q, rest, global, p);
    }
}

void quantise_rows(const block_format_t &f, bool given, const source_lines_t &src, float global,
        const line_params_t &params, uint8_t *codes, int64_t pitch) {
    with_source(src.dt,
            [&](auto s) { quantise_rows_of<decltype(s)>(f, given, src, global, params, codes, pitch); });
}

template <typename S>
uint32_t finite_amax_of(const source_lines_t &src) {
    using raw_t = typename S::raw_t;
    __m256i m[8] = {};
    for (int l = 0; l < src.lines; l++) {
        const raw_t *x =
                reinterpret_cast<const raw_t *>(static_cast<const uint8_t *>(src.data) + l * src.line_bytes);
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
