// SPDX-License-Identifier: Apache-2.0
// Packed tiles to values, a pair of panels at a time: a vector holds 32 codes as words, of a row, each of a
// block of its own, or of a line, as the destination has them, and becomes bf16 by integer arithmetic where
// scales are powers of two, else by f32.
#pragma once

#include "cpu/x64/reorder/body_dequantise.hpp"
#include "cpu/x64/reorder/body_n16_lines_avx512.hpp"
#include "cpu/x64/reorder/body_n16_rows.hpp"
#include "cpu/x64/reorder/body_n16_words_avx512.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- Codes to bf16 without their scale, exactly ---- value(words, place) is for the codes at bit `place` of
// the words. Other bits may have any value.

template <typename E, int magnitudes>
struct bf16_table_t {
    uint16_t value[32];
    constexpr bf16_table_t() : value() {
        for (int i = 0; i < 32; i++) value[i] = uint16_t(bits_of(E::decode(uint32_t(i % magnitudes))) >> 16);
    }
};

template <typename E>
struct bf16_words_t;

// At most 16 codes: one table for all.
template <typename E>
struct small_words_t {
    static constexpr bf16_table_t<E, 16> table{};
    MXDNN_INLINE __m512i value(__m512i w, int place) {
        return look_up(load512(table.value), _mm512_srli_epi16(w, unsigned(place)));
    }
};
template <>
struct bf16_words_t<f4_e2m1_t> : small_words_t<f4_e2m1_t> {};
template <>
struct bf16_words_t<s4_t> : small_words_t<s4_t> {};

// u4 less the middle.
struct u4_bf16_table_t {
    uint16_t value[32];
    constexpr u4_bf16_table_t() : value() {
        for (int i = 0; i < 32; i++) value[i] = uint16_t(bits_of(float(i % 16 - int4_mid)) >> 16);
    }
};
template <>
struct bf16_words_t<u4_t> {
    static constexpr u4_bf16_table_t table{};
    MXDNN_INLINE __m512i value(__m512i w, int place) {
        return look_up(load512(table.value), _mm512_srli_epi16(w, unsigned(place)));
    }
};

// 32 magnitudes.
template <typename E>
struct medium_words_t {
    static_assert(E::bits == 6);
    static constexpr bf16_table_t<E, 32> table{};
    MXDNN_INLINE __m512i value(__m512i w, int place) {
        const __m512i v = _mm512_srli_epi16(w, unsigned(place));
        return or_and(look_up(load512(table.value), v), _mm512_slli_epi16(v, 10), words(0x8000));
    }
};
template <>
struct bf16_words_t<f6_e2m3_t> : medium_words_t<f6_e2m3_t> {};
template <>
struct bf16_words_t<f6_e3m2_t> : medium_words_t<f6_e3m2_t> {};

// ---- with their scale: of() and of_line() as in body_quantise_panels_avx512.hpp ----

// A power of two changes exponents. Only for scales that keep every value normal (calm_t::exact).
template <typename E, bool large = E::bits == 8>
struct moved_words_t {
    __m512i offset;
    MXDNN_INLINE moved_words_t of(const blocks_t &b, int i) {
        return {_mm512_add_epi16(_mm512_slli_epi16(load_words_of(b.scale + i), 7), words(-127 * 128))};
    }
    MXDNN_INLINE moved_words_t of_line(const blocks_t &b, int i, int) {
        return {load_words_of_line(b.shift + i)};
    }
    __m512i value(__m512i w, int place) const {
        const __m512i x = bf16_words_t<E>::value(w, place);
        return _mm512_mask_add_epi16(x, _mm512_test_epi16_mask(x, words(0x7fff)), x, offset);
    }
};

// The correction for a subnormal of an 8-bit type that is moved like a normal number: low bytes, then high
// ones.
template <typename E>
struct subnormal_fixes_t {
    alignas(16) uint8_t byte[16];
    constexpr subnormal_fixes_t() : byte() {
        for (uint32_t i = 1; i < (1u << E::mantissa_bits); i++) {
            const uint32_t fix = (bits_of(E::decode(i)) >> 16) - (uint32_t(127 - E::bias) << 7)
                                 - (i << (7 - E::mantissa_bits));
            byte[i] = uint8_t(fix);
            byte[8 + i] = uint8_t(fix >> 8);
        }
    }
};

// Exponent field and mantissa of an 8-bit type are moved to the place of bf16's. The scale accounts for the
// difference of the biases, too. Subnormals are looked up. For numbers only: any_words_t has the rest.
template <typename E>
struct moved_words_t<E, true> {
    static constexpr int m = E::mantissa_bits, bias = (127 - E::bias) << 7;
    static constexpr int magnitude = int(E::sign_code - 1) << (7 - m), field = int(E::top_field) << 7;
    static constexpr subnormal_fixes_t<E> fixes{};

    __m512i offset;
    MXDNN_INLINE moved_words_t of(const blocks_t &b, int i) {
        return {_mm512_add_epi16(_mm512_slli_epi16(load_words_of(b.scale + i), 7), words(bias - 127 * 128))};
    }
    MXDNN_INLINE moved_words_t of_line(const blocks_t &b, int i, int) {
        return {load_words_of_line(b.shift + i)};
    }
    MXDNN_INLINE __m512i unscaled(__m512i w) {
        return _mm512_and_si512(_mm512_srai_epi16(w, 1 + m), words(0x8000 | magnitude));
    }
    __m512i value(__m512i w, int place) const {
        return value_of_both(
                shuffle512(w, place ? _mm_setr_epi8(1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15)
                                    : _mm_setr_epi8(0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14)));
    }
    // For a code that is in both bytes of a word.
    __m512i value_of_both(__m512i w) const {
        constexpr int mantissa = (1 << m) - 1;
        const __m512i x = unscaled(w);
        const __m512i index = and_or(w, words(mantissa << 8 | mantissa), words(8 << 8));
        const __m512i fix = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load128(fixes.byte)), index);
        const __mmask32 subnormal = _mm512_testn_epi16_mask(x, words(field)),
                        nonzero = _mm512_test_epi16_mask(x, words(magnitude));
        return _mm512_mask_add_epi16(x, nonzero, _mm512_mask_add_epi16(x, subnormal, x, fix), offset);
    }
};

// What moved_words_t::of_line() reads in b.shift.
MXDNN_INLINE void make_offsets(blocks_t &b, int n, const block_format_t &f) {
    if (f.family != quant_family_t::mx) return;
    int bias = 0;
    visit_type(decoded_mx_types(), f.elem, [&](auto e) {
        using E = decltype(e);
        if constexpr (E::is_float && E::bits == 8) bias = moved_words_t<E>::bias;
    });
    for_blocks(n, [&](int i) { b.shift[i] = uint32_t((int(b.scale[i]) - 127) * 128 + bias); });
    double_words(b.shift, n);
}

// The same, with Inf and NaN, which are the same under any scale.
template <typename E>
struct any_words_t {
    using moved_t = moved_words_t<E, true>;
    static constexpr int magnitude = moved_t::magnitude, field = moved_t::field;
    moved_t moved;
    __m512i value(__m512i w, int place) const {
        return specials(moved_t::unscaled(place ? w : _mm512_slli_epi16(w, 8)), moved.value(w, place));
    }
    __m512i value_of_both(__m512i w) const { return value(w, 8); }

private:
    // x: moved code; y: the value if it is a number.
    MXDNN_INLINE __m512i specials(__m512i x, __m512i y) {
        if (E::specials == specials_t::nan) {
            const __mmask32 nan =
                    _mm512_cmpeq_epi16_mask(_mm512_or_si512(x, words(0x8000)), words(0x8000 | magnitude));
            return _mm512_mask_blend_epi16(nan, y, or_and(words(0x7fc0), x, words(0x8000)));
        }
        const __mmask32 top = _mm512_cmpge_epu16_mask(_mm512_and_si512(x, words(0x7fff)), words(field));
        const __mmask32 nan = _mm512_mask_test_epi16_mask(top, x, words(magnitude & 0x7f));
        y = _mm512_mask_blend_epi16(top, y, _mm512_or_si512(x, words(0x7f80)));
        return _mm512_mask_blend_epi16(nan, y, _mm512_or_si512(x, words(0x7fc0)));
    }
};

// Whether codes of a type are numbers, as W requires. There is a whole number of vectors.
template <typename E, typename W>
MXDNN_INLINE bool fits(const W &, const uint8_t *, int) {
    return true;
}
template <typename E>
MXDNN_INLINE bool fits(const moved_words_t<E, true> &, const uint8_t *codes, int bytes) {
    constexpr uint32_t first = E::specials == specials_t::nan ? E::nan_code : E::inf_code;
    __m512i most = _mm512_setzero_si512();
    for (int i = 0; i < bytes; i += 64) {
        const __m512i c = load512(codes + i);
        most = _mm512_max_epu8(most, _mm512_add_epi8(c, c)); // without signs
    }
    return _mm512_cmpge_epu8_mask(most, _mm512_set1_epi8(char(2 * first))) == 0;
}
template <typename W>
MXDNN_INLINE const W &any_of(const W &w) {
    return w;
}
template <typename E>
MXDNN_INLINE any_words_t<E> any_of(const moved_words_t<E, true> &w) {
    return {w};
}

// f32 to bf16, rounded to nearest even; for anything but NaN, or for bf16 values.
template <bool exact>
MXDNN_INLINE __m512i to_bf16(const halves_t &x) {
    const auto round = [](__m512 v) {
        const __m512i u = _mm512_castps_si512(v);
        if (exact) return u;
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), dwords(1));
        return _mm512_add_epi32(_mm512_add_epi32(u, dwords(0x7fff)), odd);
    };
    return join_high(round(x.even), round(x.odd));
}

template <typename E, bool exact>
struct scaled_words_t {
    halves_t factor;
    MXDNN_INLINE scaled_words_t of(const blocks_t &b, int i) { return {load_halves_of(b.factor + i)}; }
    MXDNN_INLINE scaled_words_t of_line(const blocks_t &b, int i, int j) {
        return {load_halves_of_line(b.factor, i, j)};
    }
    __m512i value(__m512i w, int place) const {
        return to_bf16<exact>(multiply(bf16_halves(bf16_words_t<E>::value(w, place)), factor));
    }
};

// (code - zero point) * scale, or code * scale + zero point, as in affine_values_t.
template <typename E, zero_point_kind_t zp>
struct affine_bf16_words_t {
    halves_t factor, less, add;
    MXDNN_INLINE affine_bf16_words_t of(const blocks_t &b, int i) {
        return {load_halves_of(b.factor + i), load_halves_of(b.above + i), load_halves_of(b.zero + i)};
    }
    MXDNN_INLINE affine_bf16_words_t of_line(const blocks_t &b, int i, int) {
        return {load_halves_of_line(b.factor, i), load_halves_of_line(b.above, i),
                load_halves_of_line(b.zero, i)};
    }
    __m512i value(__m512i w, int place) const {
        halves_t x = bf16_halves(bf16_words_t<E>::value(w, place));
        if (is_counted<E, zp>) x = {_mm512_sub_ps(x.even, less.even), _mm512_sub_ps(x.odd, less.odd)};
        x = multiply(x, factor);
        if (is_added(zp)) x = {_mm512_add_ps(x.even, add.even), _mm512_add_ps(x.odd, add.odd)};
        return to_bf16<false>(x);
    }
};

// s8, whose step is in b.divisor: that of MXINT8 makes `exact` values.
template <bool exact>
struct int8_bf16_words_t {
    halves_t step;
    MXDNN_INLINE int8_bf16_words_t of(const blocks_t &b, int i) { return {load_halves_of(b.divisor + i)}; }
    MXDNN_INLINE int8_bf16_words_t of_line(const blocks_t &b, int i, int) {
        return {load_halves_of_line(b.divisor, i)};
    }
    __m512i value(__m512i w, int place) const {
        const __m512i even = place ? _mm512_slli_epi32(w, 16) : _mm512_slli_epi32(w, 24);
        const __m512i odd = place ? w : _mm512_slli_epi32(w, 8);
        const halves_t x = {_mm512_cvtepi32_ps(_mm512_srai_epi32(even, 24)),
                _mm512_cvtepi32_ps(_mm512_srai_epi32(odd, 24))};
        return to_bf16<exact>(multiply(x, step));
    }
    __m512i value_of_both(__m512i w) const { return value(w, 8); }
};

// ---- pairs of panels, of one block each ----

struct packed_group_t {
    const uint8_t *codes[2]; // of both panels
    uint8_t *out;
};
struct packed_rows_t {
    int rows = 0, groups = 0;
    packed_group_t group[most_groups];
    int64_t pitch = 0; // bytes from row to row, or from line to line
    bool around = false;
    int64_t ahead = 0;                // how far ahead codes are fetched
    written_later_t *later = nullptr; // as many bytes as are decoded
};

template <typename E, typename W, typename S>
void decode_rows(const packed_rows_t &q, const blocks_t &b) {
    using pack_t = n16_words_t<E::bits>;
    constexpr int bytes = reorder_lines * E::bits / 8;
    W w[most_groups];
    bool fit[most_groups];
    for (int i = 0; i < q.groups; i++) {
        w[i] = W::of(b, i * pair_lines);
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < q.rows * bytes; k += 64) fetch_near(q.group[i].codes[j] + k);
        fit[i] = fits<E>(w[i], q.group[i].codes[0], q.rows * bytes)
                 && fits<E>(w[i], q.group[i].codes[1], q.rows * bytes);
    }
    for (int at = 0; at < q.rows / pack_t::rows * pack_t::parts; at++) {
        const int part = at % pack_t::parts, r = at / pack_t::parts * pack_t::rows;
        for (int i = 0; i < q.groups; i++) {
            const packed_group_t &g = q.group[i];
            for (int k = part * 64; k < pack_t::rows * bytes; k += pack_t::parts * 64)
                for (int j = 0; j < 2; j++) fetch(g.codes[j] + r * bytes + q.ahead + k);
            const auto decode_with = [&](const auto &w) {
                pack_t::unpack(g.codes, r * bytes, part, [&](int k, __m512i c, int place) {
                    write_words<S>(q.around, g.out + (r + k) * q.pitch, w.value(c, place));
                });
            };
            if (fit[i])
                decode_with(w[i]);
            else
                decode_with(any_of(w[i]));
        }
    }
}

// To lines.
template <typename E, typename W, typename S>
void decode_lines(const packed_rows_t &q, const blocks_t &b) {
    constexpr int line_bytes = pair_lines * int(sizeof(typename S::raw_t)); // of 32 positions
    constexpr int bytes = pair_lines * reorder_lines * E::bits / 8;         // of 32 positions of a panel
    const int blocks = q.rows < pair_lines ? 2 : 1, other = (blocks - 1) * pair_lines;
    for (int i = 0; i < q.groups; i += blocks)
        for (int k = 0; k < max_of(q.rows / pair_lines, 1); k++)
            for (int j = 0; j < 2; j++) {
                const int first = i * pair_lines + j * reorder_lines;
                const uint8_t *codes = q.group[i].codes[j] + k * bytes;
                uint8_t *out = q.group[i].out + j * reorder_lines * q.pitch + k * line_bytes;
                for (int c = 0; c < bytes; c += 64) fetch_near(codes + q.ahead + c);
                write_some(*q.later, reorder_lines * line_bytes);
                const auto decode_as = [&](auto &&kind) {
                    n16_lines_t<E::bits>::unpack(codes, [&](int l, __m512i c, int place) {
                        const auto &w = kind(W::of_line(b, first + l, first + l + other));
                        __m512i v;
                        if constexpr (E::bits == 8)
                            v = w.value_of_both(c);
                        else
                            v = w.value(c, place);
                        write_words<S>(q.around, out + l * q.pitch, v);
                    });
                };
                if (fits<E>(W::of_line(b, first, first), codes, bytes))
                    decode_as([](const W &w) { return w; });
                else
                    decode_as([](const W &w) { return any_of(w); });
            }
}

// The decoder: its type, and its parameters for codes of a type and their values.
struct to_rows_t {
    using type = void (*)(const packed_rows_t &q, const blocks_t &b);
    template <typename E, typename W, typename S>
    static constexpr type with = decode_rows<E, W, S>;
};
struct to_lines_t {
    using type = to_rows_t::type;
    template <typename E, typename W, typename S>
    static constexpr type with = decode_lines<E, W, S>;
};

// Null if the parameters need more care.
template <typename T, typename S>
typename T::type decode_to(const block_format_t &f, calm_t calm) {
    using e2m1 = f4_e2m1_t;
    typename T::type decode = nullptr;
    if (f.family == quant_family_t::nvfp4 && calm == calm_t::exact)
        return T::template with<e2m1, scaled_words_t<e2m1, true>, S>;
    if (f.family == quant_family_t::mx) {
        if (calm == calm_t::exact)
            visit_type(decoded_mx_types(), f.elem, [&](auto e) {
                using E = decltype(e);
                if constexpr (E::is_float)
                    decode = T::template with<E, moved_words_t<E>, S>;
                else
                    decode = T::template with<E, int8_bf16_words_t<true>, S>;
            });
        return decode;
    }
    // After rounding to bf16, it is not the value of another type.
    if constexpr (S::dt == mxdnn_bf16) {
        if (calm == calm_t::no) return nullptr;
        if (f.family == quant_family_t::nvfp4) return T::template with<e2m1, scaled_words_t<e2m1, false>, S>;
        with_integers(f, [&](auto e, auto zp) {
            using E = decltype(e);
            if constexpr (E::bits == 8)
                decode = T::template with<E, int8_bf16_words_t<false>, S>;
            else
                decode = T::template with<E, affine_bf16_words_t<E, decltype(zp)::value>, S>;
        });
    }
    return decode;
}
template <typename T>
typename T::type decode_of(const block_format_t &f, calm_t calm, data_type_t dt) {
    typename T::type decode = nullptr;
    with_source(dt, [&](auto s) { decode = decode_to<T, decltype(s)>(f, calm); });
    return decode;
}

// For anything: through one byte for each code.
void decode_any_rows(
        const packed_rows_t &q, const blocks_t &b, const block_format_t &f, float global, data_type_t dt) {
    const int bits = data_type_info(f.elem)->bits;
    alignas(64) uint8_t codes[reorder_max_block][pair_lines];
    for (int i = 0; i < q.groups; i++) {
        const packed_group_t &g = q.group[i];
        for (int j = 0; j < 2; j++)
            // Not more rows than exist: a second block of 16 ends with the tile, and the last tile is the end
            // of the memory.
            n16_unpack_rows(bits, g.codes[j], q.rows, codes[0] + j * reorder_lines, pair_lines);
        blocks_t part;
        clear_blocks(part, pair_lines);
        __builtin_memcpy(part.scale, b.scale + i * pair_lines, pair_lines * sizeof(part.scale[0]));
        __builtin_memcpy(part.zp, b.zp + i * pair_lines, pair_lines * sizeof(part.zp[0]));
        const decoding_t d = make_decoding(part, pair_lines, f, global, dt);
        for (int r = 0; r < q.rows; r++) d.row(codes[r], pair_lines, part, g.out + r * q.pitch, false);
    }
}

// The same to lines.
void decode_any_lines(
        const packed_rows_t &q, const blocks_t &b, const block_format_t &f, float global, data_type_t dt) {
    const int size = dt == mxdnn_f32 ? 4 : 2;
    alignas(64) uint8_t x[most_panel_bytes];
    packed_rows_t of_rows = q;
    of_rows.pitch = pair_lines * size;
    for (int i = 0; i < q.groups; i++) of_rows.group[i].out = x + i * q.rows * of_rows.pitch;
    decode_any_rows(of_rows, b, f, global, dt);
    for (int i = 0; i < q.groups; i++)
        transpose(size, of_rows.group[i].out, of_rows.pitch, q.rows, pair_lines, q.group[i].out, q.pitch);
}

MXDNN_INLINE __m512i load_panel_codes(int bytes, const uint8_t *p) {
    if (bytes == 1) return _mm512_cvtepu8_epi32(load128(p));
    if (bytes == 2) return _mm512_cvtepu16_epi32(load256(p));
    return load512(p);
}

// ---- a tile ----

void dequantise_panels(const block_format_t &f, const uint8_t *tile, int64_t panel_bytes, int header_bytes,
        int64_t ahead, float global, const panels_values_t &dst, write_t how, written_later_t &later) {
    const bool lines_apart = dst.lines_apart();
    const int size = dst.size();
    const int panels = dst.lines / reorder_lines;
    const int scale_line = reorder_lines * f.scale_bytes, zp_line = reorder_lines * f.zp_bytes;
    const int zps_at = (dst.rows + f.block - 1) / f.block * scale_line,
              row_codes = reorder_lines * data_type_info(f.elem)->bits / 8;
    const bool is_mxint8 = f.elem == mxdnn_s8 && f.family == quant_family_t::mx;
    const float unit = is_mxint8 ? mxint8_decoder_t::unit : 1.f;
    // Stores that bypass the caches write rows directly if these are whole cache lines, and otherwise through
    // `later`. They write lines through `later`, too: single cache lines here and there take longer than
    // longer runs.
    const bool direct =
            how == write_t::cached || (!lines_apart && goes_around512(how, dst.data, dst.pos_bytes));
    const int step = lines_apart ? min_of(dst.rows, most_panel_bytes / 2 / row_bytes) : pair_lines;

    blocks_t b;
    clear_blocks(b, most_blocks);
    packed_rows_t q;
    q.pitch = !direct ? size * dst.lines : lines_apart ? dst.line_bytes : dst.pos_bytes;
    q.around = direct && how == write_t::around;
    q.ahead = ahead;
    q.later = &later;
    for (int p = 0; p < panels; p++)
        for (int i = 0; i < header_bytes; i += 64) fetch(tile + p * panel_bytes + ahead + i);
    const auto decode_all = [&] {
        if (q.groups == 0) return;
        const calm_t calm = decode_params(b, q.groups * pair_lines, f, global, unit);
        const auto decode =
                lines_apart ? decode_of<to_lines_t>(f, calm, dst.dt) : decode_of<to_rows_t>(f, calm, dst.dt);
        if (lines_apart) make_offsets(b, q.groups * pair_lines, f);
        if (decode)
            decode(q, b);
        else
            (lines_apart ? decode_any_lines : decode_any_rows)(q, b, f, global, dst.dt);
        q.groups = 0;
    };
    for (int r = 0; r < dst.rows; r += step) {
        const int rows = min_of(step, dst.rows - r);
        uint8_t *to = static_cast<uint8_t *>(dst.data) + r * dst.pos_bytes;
        if (lines_apart && !direct) q.pitch = size * rows;
        for (int first = 0, n; first < rows; first += n) {
            const int block = (r + first) / f.block;
            n = min_of(rows - first, (block + 1) * f.block - r - first);
            for (int p = 0; p < panels; p += 2) {
                if (q.groups == most_groups || q.rows != n) decode_all();
                q.rows = n;
                const uint8_t *at = tile + p * panel_bytes;
                const uint8_t *codes = at + header_bytes + (r + first) * row_codes;
                for (int j = 0; j < 2; j++, at += panel_bytes) {
                    const int i = q.groups * pair_lines + j * reorder_lines;
                    store512(b.scale + i, load_panel_codes(f.scale_bytes, at + block * scale_line));
                    if (f.zp_bytes)
                        store512(b.zp + i, load_panel_codes(f.zp_bytes, at + zps_at + block * zp_line));
                }
                q.group[q.groups++] = {{codes, codes + panel_bytes},
                        (direct ? to : later.buffer())
                                + (lines_apart ? size * first : first * q.pitch + p * reorder_lines * size)};
            }
        }
        decode_all();
        if (direct) continue;
        if (lines_apart)
            write_later(later, how, to, dst.line_bytes, int(q.pitch), pair_lines);
        else
            write_later(later, how, to, dst.pos_bytes, int(q.pitch), rows);
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
