// SPDX-License-Identifier: Apache-2.0
// Lines of f32, bf16 or f16 to codes, scales and zero points: measure the blocks of four lines, make their
// scales together, then encode the lines, which are still in the first-level cache.
#pragma once

#include "cpu/x64/reorder/body_nvfp4_rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- Lines ----

// What depends on the types.
struct codec_t {
    void (*measure)(blocks_t &b, const four_lines_t &q, const block_format_t &f);
    void (*encode)(const four_lines_t &q, const block_format_t &f, const blocks_t &b, bool special);
    void (*measure_rows)(blocks_t &b, const rows_t &q, const block_format_t &f);
    void (*encode_rows)(const rows_t &q, const blocks_t &b);
    bool (*quantise_rows)(const rows_t &q, uint8_t *scales, int lines); // instead of these; may be null
    int bytes;                                                          // of a source element
    const mx_shift_t *shift; // null if not used: see make_factors()
    bool by_bounds;          // lines of NVFP4 need no factors
};

// Calls fn(F()) for the family of a format.
template <typename S, bool any, typename Fn>
void with_family(const block_format_t &f, Fn &&fn) {
    constexpr bool is_words = sizeof(typename S::raw_t) == 2 && !any, is_bf16 = S::dt == mxdnn_bf16 && !any;
    const auto nvfp4 = [&] {
        if constexpr (is_bf16)
            if (!f.has_global) return fn(nvfp4_bf16_family_t());
        fn(nvfp4_family_t());
    };
    const auto mx = [&](auto e) {
        using E = decltype(e);
        if constexpr (is_bf16 && E::is_float)
            fn(mx_bf16_family_t<E>());
        else
            fn(mx_family_t<E>());
    };
    const auto affine = [&](auto e) {
        using E = decltype(e);
        if constexpr (is_words)
            if (f.scale_bytes == 2 && !is_added(f.zp)) return fn(affine16_family_t<E>());
        fn(affine_family_t<E>());
    };
    if (f.family == quant_family_t::nvfp4)
        nvfp4();
    else if (f.family == quant_family_t::mx)
        visit_type(decoded_mx_types(), f.elem, mx);
    else
        visit_type(affine_element_types(), f.elem, affine);
}

template <typename S, bool any>
codec_t codec_of(const block_format_t &f) {
    codec_t c = {};
    c.measure = measure<S>;
    c.measure_rows = measure_rows<S>;
    c.bytes = int(sizeof(typename S::raw_t));
    with_family<S, any>(f, [&](auto family) {
        using F = decltype(family);
        c.encode = encode<S, F, any>;
        if constexpr (std::is_same<F, nvfp4_bf16_family_t>::value)
            c.quantise_rows = quantise_nvfp4_rows;
        else if constexpr (!any)
            c.encode_rows = encode_rows<S, F>;
        c.shift = F::shift;
        c.by_bounds = F::by_bounds;
    });
    return c;
}

// Scales of four lines, and what their elements are multiplied with. Whether there are special blocks.
bool make_params(const codec_t &codec, const four_lines_t &q, const block_format_t &f, blocks_t &b) {
    const int n = q.n / f.block * 4;
    for (int i = n / 32 * 32; i < (n + 31) / 32 * 32; i++) b.amax[i] = b.scale[i] = b.zp[i] = 0;
    codec.measure(b, q, f);
    bool special = false;
    if (codec.by_bounds)
        special = nvfp4_find_bounds(b, n);
    else
        make_scales(b, n, f);
    store_codes(f.scale_bytes, b.scale, q.scales, q.params_pitch, q.stored_blocks, q.lines, q.apart);
    if (q.zero_points)
        store_codes(f.zp_bytes, b.zp, q.zero_points, q.params_pitch, q.stored_blocks, q.lines, q.apart);
    return codec.by_bounds ? special : make_factors(b, n, f, false, codec.shift);
}

void quantise_four(
        const codec_t &codec, const four_lines_t &q, const block_format_t &f, bool given, float global) {
    blocks_t b;
    b.global = f.has_global ? global : 1.f;
    if (!given) return codec.encode(q, f, b, make_params(codec, q, f, b));
    const int n = q.n / f.block * 4;
    for (int i = n / 16 * 16; i < (n + 15) / 16 * 16; i++) b.amax[i] = b.scale[i] = b.zp[i] = 0;
    load_codes(f.scale_bytes, b.scale, q.scales, q.params_pitch, q.stored_blocks, q.lines);
    if (q.zero_points) load_codes(f.zp_bytes, b.zp, q.zero_points, q.params_pitch, q.stored_blocks, q.lines);
    codec.encode(q, f, b, make_factors(b, n, f, true, codec.shift));
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
        // A partial last block is filled with what does not change what is measured: its last element, where
        // a zero could be the minimum.
        alignas(32) uint8_t x[4][reorder_max_block * sizeof(float)] = {};
        const size_t size = size_t(codec.bytes), filled = size_t(rest) * size;
        for (int l = 0; l < q.lines; l++) {
            __builtin_memcpy(x[l], q.src + l * q.line_bytes + whole * codec.bytes, filled);
            if (f.zp == zero_point_kind_t::minimum)
                for (size_t at = filled; at < size_t(unit) * size; at += size)
                    __builtin_memcpy(x[l] + at, x[l] + filled - size, size);
        }
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
    // Factors are positive. If scales are computed, every magnitude below them is finite.
    const bool positive = !f.has_global || global > 0;
    if (!given && positive) {
        codec_t codec = {};
        with_source(src.dt, [&](auto s) { codec = codec_of<decltype(s), false>(f); });
        return quantise_lines(codec, f, false, src, global, params, codes, pitch, nibbles, how);
    }
    // All other cases are rare: one form of source suffices, one line at a time.
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

// Processes one line of a block with the kernels for lines: a special block, or a rare case.
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

// Whole vectors of lines: q.lines is a multiple of 32, of which `lines` exist.
template <typename S>
void quantise_block_rows(const block_format_t &f, bool given, const rows_t &q, int lines, float global,
        const line_params_t &params) {
    // Lines of such blocks are encoded one by one.
    const bool any = given || (f.has_global && !(global > 0)) || f.zp == zero_point_kind_t::minimum;
    bool special = any;
    const codec_t codec = codec_of<S, false>(f);
    if (!any && codec.quantise_rows) {
        special = codec.quantise_rows(q, params.scales, lines);
    } else if (!any) {
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
                min_of(f.block, src.lines - first), whole, codes + first * pitch, pitch, nullptr};
        const int then = first + max_of(f.block, int(mx_block));
        q.next = then < src.lines || !src.next
                         ? q.src + (then - first) * q.row_bytes
                         : static_cast<const uint8_t *>(src.next) + (then - src.lines) * q.row_bytes;
        if (whole) quantise_block_rows<S>(f, given, q, whole, global, p);
        if (!rest) continue;
        alignas(32) uint8_t x[reorder_max_block][encode_step * size];
        __builtin_memset(x, 0, sizeof(x[0]) * size_t(q.rows));
        for (int r = 0; r < q.rows; r++)
            __builtin_memcpy(x[r], q.src + r * q.row_bytes + whole * size, size_t(rest) * size_t(size));
        p.scales += whole * f.scale_bytes;
        if (p.zero_points) p.zero_points += whole * f.zp_bytes;
        q = {x[0], int64_t(sizeof(x[0])), q.rows, encode_step, q.codes + whole, pitch, x[0]};
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
