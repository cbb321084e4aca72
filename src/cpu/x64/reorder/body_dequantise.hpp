// SPDX-License-Identifier: Apache-2.0
// Codes, scales and zero points to f32, bf16 or f16: lines that have a parameter per block, and rows that
// have one per element.
#pragma once

#include <type_traits>

#include "cpu/x64/reorder/body_ahead.hpp"
#include "cpu/x64/reorder/body_decode.hpp"
#include "cpu/x64/reorder/body_decode_params.hpp"
#include "cpu/x64/reorder/body_decode_words.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

struct block_of_line_t {
    float scale, over_unit, add, less;

    __m256 factor(int) const { return _mm256_set1_ps(scale); }
    __m256 factor_over_unit(int) const { return _mm256_set1_ps(over_unit); }
    __m256 zero(int) const { return _mm256_set1_ps(add); }
    __m256 zero_point(int) const { return _mm256_set1_ps(less); }
};
struct lines_of_row_t {
    const blocks_t &b;

    __m256 factor(int k) const { return _mm256_loadu_ps(b.factor + k); }
    __m256 factor_over_unit(int k) const { return _mm256_loadu_ps(b.divisor + k); }
    __m256 zero(int k) const { return _mm256_loadu_ps(b.zero + k); }
    __m256 zero_point(int k) const { return _mm256_loadu_ps(b.above + k); }
};

// ---- 16 values from element k on ----

// Decoded codes of u4 count from the middle. Whether something is subtracted from them.
template <typename E, zero_point_kind_t zp>
constexpr bool is_counted = !E::is_signed && zp != zero_point_kind_t::float_zero;

// Calls fn(E(), kind) with the element type of a format of integers, and what kind of zero points it has.
// None are zero points of 0.
template <typename F>
MXDNN_INLINE void with_integers(const block_format_t &f, F &&fn) {
    using kind = zero_point_kind_t;
    visit_type(affine_element_types(), f.elem, [&](auto e) {
        if constexpr (!decltype(e)::is_signed) {
            if (f.zp == kind::float_zero) return fn(e, std::integral_constant<kind, kind::float_zero>());
            if (f.zp == kind::minimum) return fn(e, std::integral_constant<kind, kind::minimum>());
        }
        fn(e, std::integral_constant<kind, kind::u8>());
    });
}

// A code times its scale.
template <typename E>
struct scaled_values_t {
    using elem_t = E;
    static constexpr float unit = mx_decoder_t<E>::unit;
    static constexpr bool is_affine = false;

    template <bool calm, typename P>
    MXDNN_INLINE f32x16_t values(__m128i c, const P &p, int k) {
        f32x16_t x = mx_decoder_t<E>::decode(c);
        for (int i = 0; i < 2; i++)
            x.v[i] = calm ? _mm256_mul_ps(x.v[i], p.factor_over_unit(k + 8 * i))
                          : _mm256_mul_ps(
                                  _mm256_mul_ps(x.v[i], _mm256_set1_ps(1 / unit)), p.factor(k + 8 * i));
        return x;
    }
};
// (code - zero point) * scale, or code * scale and a zero point added.
template <typename E, zero_point_kind_t zp>
struct affine_values_t {
    static constexpr float unit = 1.f;
    static constexpr bool is_affine = true, has_tables = E::bits == 4;

    template <bool calm, typename P>
    MXDNN_INLINE f32x16_t values(__m128i c, const P &p, int k) {
        f32x16_t x = integer_decoder_t<E>::decode(c);
        for (int i = 0; i < 2; i++) {
            if (is_counted<E, zp>) x.v[i] = _mm256_sub_ps(x.v[i], p.zero_point(k + 8 * i));
            x.v[i] = _mm256_mul_ps(x.v[i], p.factor(k + 8 * i));
            if (is_added(zp)) x.v[i] = _mm256_add_ps(x.v[i], p.zero(k + 8 * i));
        }
        return x;
    }
};

template <typename V, typename T, bool calm, typename P>
MXDNN_INLINE void decode_run(const uint8_t *codes, int n, const P &p, typename T::raw_t *out, bool around) {
    int k = 0;
    for (; k + 16 <= n; k += 16)
        T::store(around, out + k, V::template values<calm>(load128(codes + k), p, k));
    if (k == n) return;
    alignas(16) uint8_t c[16] = {};
    alignas(32) typename T::raw_t rest[16];
    __builtin_memcpy(c, codes + k, size_t(n - k));
    T::store(false, rest, V::template values<calm>(load128(c), p, k));
    __builtin_memcpy(out + k, rest, size_t(n - k) * sizeof(rest[0]));
}

using s4_values_t = affine_values_t<s4_t, zero_point_kind_t::u8>; // as with_integers() has it

// ---- 4-bit codes to bf16 by the 16 values that a block can have ----

// The low bytes, and the high bytes, of 16 values. Both halves of a vector hold all of them.
struct nibble_table_t {
    __m256i low, high;
};
MXDNN_INLINE nibble_table_t load_table(const uint8_t *bytes) {
    return {_mm256_broadcastsi128_si256(load128(bytes)), _mm256_broadcastsi128_si256(load128(bytes + 16))};
}
MXDNN_INLINE __m256i table_bytes(__m256i values) {
    const __m256i low = _mm256_and_si256(values, _mm256_set1_epi16(0xff)),
                  high = _mm256_srli_epi16(values, 8);
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8);
}
MXDNN_INLINE void look_up32(const nibble_table_t &t, const uint8_t *codes, uint16_t *out, bool around) {
    const __m256i c = _mm256_permute4x64_epi64(load256(codes), 0xd8);
    const __m256i low = _mm256_shuffle_epi8(t.low, c), high = _mm256_shuffle_epi8(t.high, c);
    write256(around, out, _mm256_unpacklo_epi8(low, high));
    write256(around, out + 16, _mm256_unpackhi_epi8(low, high));
}
MXDNN_INLINE void look_up16(const nibble_table_t &t, const uint8_t *codes, uint16_t *out, bool around) {
    const __m128i c = load128(codes);
    const __m128i low = _mm_shuffle_epi8(_mm256_castsi256_si128(t.low), c);
    const __m128i high = _mm_shuffle_epi8(_mm256_castsi256_si128(t.high), c);
    write256(around, out, _mm256_set_m128i(_mm_unpackhi_epi8(low, high), _mm_unpacklo_epi8(low, high)));
}
// The last block of a line may be partial. Its length need not be a multiple of 16.
MXDNN_INLINE void look_up(const nibble_table_t &t, const uint8_t *codes, int n, uint16_t *out, bool around) {
    int k = 0;
    for (; k + 32 <= n; k += 32) look_up32(t, codes + k, out + k, around);
    for (; k + 16 <= n; k += 16) look_up16(t, codes + k, out + k, around);
    if (k == n) return;
    alignas(16) uint8_t c[16] = {};
    alignas(32) uint16_t rest[16];
    __builtin_memcpy(c, codes + k, size_t(n - k));
    look_up16(t, c, rest, false);
    __builtin_memcpy(out + k, rest, size_t(n - k) * sizeof(rest[0]));
}

// Scales of bf16: those of integers without zero points. A power of two does not change how products are
// rounded, so there are tables for signs and mantissas.
MXDNN_INLINE int table_of_bf16(uint32_t scale) { return int((scale & 0x7f) | scale >> 15 << 7); }
MXDNN_INLINE int exponent_of_bf16(uint32_t scale) { return int(scale >> 7 & 0xff); }
constexpr int bf16_bias = 127;
// Exponents with which every product is a normal number.
constexpr int least_of_tables = 1, most_of_tables = 249;

template <typename V, typename F>
MXDNN_INLINE void fill_tables(const block_format_t &f, float global, nibble_tables_t &tables, F &&scale) {
    alignas(16) uint8_t codes[16];
    for (int i = 0; i < 16; i++) codes[i] = uint8_t(i);
    const __m128i all = load128(codes);
    for (int first = 0; first < 256; first += 64) {
        blocks_t b;
        clear_blocks(b, 64);
        for (int i = 0; i < 64; i++) b.scale[i] = scale(uint32_t(first + i));
        decode_params(b, 64, f, global, V::unit);
        for (int i = 0; i < 64; i++) {
            alignas(32) uint16_t values[16];
            target_bf16_t::store(false, values,
                    V::template values<false>(
                            all, block_of_line_t{b.factor[i], b.divisor[i], b.zero[i], b.above[i]}, 0));
            store256(tables.bytes[first + i], table_bytes(load256(values)));
        }
    }
}
void fill_tables(const block_format_t &f, float global, nibble_tables_t &tables) {
    if (f.family != quant_family_t::affine)
        return fill_tables<scaled_values_t<f4_e2m1_t>>(f, global, tables, [](uint32_t i) { return i; });
    fill_tables<s4_values_t>(f, global, tables,
            [](uint32_t i) { return (i & 0x7f) | i >> 7 << 15 | uint32_t(bf16_bias) << 7; });
}

// One scale code of each block, of reorder_lines lines each.
MXDNN_INLINE void look_up_line(const uint8_t *codes, int n, int block, const nibble_tables_t &tables,
        const uint8_t *scales, int pitch, uint16_t *out, bool around) {
    int k = 0;
    if (block == nvfp4_block)
        for (; k + int(nvfp4_block) <= n; k += int(nvfp4_block), scales += pitch)
            look_up16(load_table(tables.bytes[*scales]), codes + k, out + k, around);
    else
        for (; k + int(mx_block) <= n; k += int(mx_block), scales += pitch)
            look_up32(load_table(tables.bytes[*scales]), codes + k, out + k, around);
    if (k < n) look_up(load_table(tables.bytes[*scales]), codes + k, n - k, out + k, around);
}

// The same with scales of bf16, and whole blocks of a multiple of 32. False if a scale has no table.
MXDNN_INLINE bool look_up_line_of_integers(const uint8_t *codes, int n, int block,
        const nibble_tables_t &tables, const uint8_t *scales, int pitch, uint16_t *out, bool around) {
    for (int k = 0; k < n; scales += 2 * pitch) {
        uint16_t scale;
        __builtin_memcpy(&scale, scales, sizeof(scale));
        const int exponent = exponent_of_bf16(scale);
        if (uint32_t(exponent - least_of_tables) > uint32_t(most_of_tables - least_of_tables)) return false;
        const nibble_table_t t = load_table(tables.bytes[table_of_bf16(scale)]);
        const __m256i offset = _mm256_set1_epi16(short((exponent - bf16_bias) * 128));
        for (const int end = k + block; k < end; k += 32) {
            const __m256i c = _mm256_permute4x64_epi64(load256(codes + k), 0xd8);
            const __m256i low = _mm256_shuffle_epi8(t.low, c), high = _mm256_shuffle_epi8(t.high, c),
                          zero = _mm256_cmpeq_epi8(c, _mm256_setzero_si256());
            const auto moved = [&](__m256i v, __m256i is_zero) {
                return _mm256_add_epi16(v, _mm256_andnot_si256(is_zero, offset));
            };
            write256(around, out + k,
                    moved(_mm256_unpacklo_epi8(low, high), _mm256_unpacklo_epi8(zero, zero)));
            write256(around, out + k + 16,
                    moved(_mm256_unpackhi_epi8(low, high), _mm256_unpackhi_epi8(zero, zero)));
        }
    }
    return true;
}

// Integers. Their blocks are long enough to make a table for each.
template <typename V, typename T>
void decode_line_by_tables(
        const uint8_t *codes, int n, int block, const blocks_t &b, int l, void *out, bool around) {
    alignas(16) uint8_t all[16];
    for (int i = 0; i < 16; i++) all[i] = uint8_t(i);
    const __m128i c = load128(all);
    auto *to = static_cast<uint16_t *>(out);
    for (int k = 0, i = l; k < n; k += block, i += 4) {
        const f32x16_t x = V::template values<true>(
                c, block_of_line_t{b.factor[i], b.divisor[i], b.zero[i], b.above[i]}, 0);
        const __m256i bytes = table_bytes(upper_halves(T::round(x.v[0]), T::round(x.v[1])));
        const nibble_table_t t = {
                _mm256_permute2x128_si256(bytes, bytes, 0x00), _mm256_permute2x128_si256(bytes, bytes, 0x11)};
        look_up(t, codes + k, min_of(block, n - k), to + k, around);
    }
}

// ---- rows of 4-bit codes: bf16 from a table, times the scales of 32 lines ----

template <typename V>
struct product_codes_t {
    static constexpr bool exist = false;
};
template <typename E>
struct nibble_values_t {
    static constexpr bool exist = true;
    alignas(16) uint8_t bytes[32]; // as in nibble_tables_t
    constexpr nibble_values_t() : bytes() {
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t u = bits_of(E::decode(i)) >> 16;
            bytes[i] = uint8_t(u);
            bytes[16 + i] = uint8_t(u >> 8);
        }
    }
};
template <>
struct product_codes_t<scaled_values_t<f4_e2m1_t>> : nibble_values_t<f4_e2m1_t> {};
template <>
struct product_codes_t<s4_values_t> : nibble_values_t<s4_t> {};

// b.below: of 16 lines, the factors of those with an even number, then those with an odd one.
MXDNN_INLINE void separate_factors(blocks_t &b, int n) {
    for (int i = 0; i < n; i += 16) {
        const __m256 x = _mm256_loadu_ps(b.factor + i), y = _mm256_loadu_ps(b.factor + i + 8);
        const auto store = [&](float *to, __m256 v) {
            store256(to, _mm256_permute4x64_epi64(_mm256_castps_si256(v), 0xd8));
        };
        store(b.below + i, _mm256_shuffle_ps(x, y, 0x88));
        store(b.below + i + 8, _mm256_shuffle_ps(x, y, 0xdd));
    }
}

// `exact`: products are bf16 values; otherwise they are numbers or Inf.
template <typename V, bool exact>
void decode_row_of_products(const uint8_t *codes, int n, const blocks_t &b, void *out, bool around) {
    static constexpr product_codes_t<V> values{};
    const nibble_table_t t = load_table(values.bytes);
    const __m256i upper = _mm256_set1_epi32(int(0xffff0000)), one = _mm256_set1_epi16(1),
                  half = _mm256_set1_epi16(short(0x8000)), zero = _mm256_setzero_si256();
    const auto product = [&](__m256i x, const float *factor) {
        return _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(x), _mm256_loadu_ps(factor)));
    };
    const auto words = [&](__m256i w, const float *factors) {
        const __m256i even = product(_mm256_slli_epi32(w, 16), factors),
                      odd = product(_mm256_and_si256(w, upper), factors + 8);
        const __m256i high = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
        if (exact) return high;
        // Rounded up where the low half is above the middle, or in it beside an odd high half.
        const __m256i low = _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa),
                      beyond = _mm256_adds_epi16(_mm256_xor_si256(low, half), _mm256_and_si256(high, one));
        return _mm256_sub_epi16(high, _mm256_cmpgt_epi16(beyond, zero));
    };
    const auto decode = [&](const uint8_t *from, int k, uint16_t *to, bool bypasses) {
        const __m256i c = _mm256_permute4x64_epi64(load256(from), 0xd8);
        const __m256i low = _mm256_shuffle_epi8(t.low, c), high = _mm256_shuffle_epi8(t.high, c);
        write256(bypasses, to, words(_mm256_unpacklo_epi8(low, high), b.below + k));
        write256(bypasses, to + 16, words(_mm256_unpackhi_epi8(low, high), b.below + k + 16));
    };
    auto *to = static_cast<uint16_t *>(out);
    int k = 0;
    for (; k + 32 <= n; k += 32) decode(codes + k, k, to + k, around);
    if (k == n) return;
    alignas(32) uint8_t c[32] = {};
    alignas(32) uint16_t rest[32];
    __builtin_memcpy(c, codes + k, size_t(n - k));
    decode(c, k, rest, false);
    __builtin_memcpy(to + k, rest, size_t(n - k) * sizeof(rest[0]));
}

// ---- what depends on the types ----

struct decoding_t {
    void (*line)(const uint8_t *codes, int n, int block, const blocks_t &b, int l, void *out, bool around);
    void (*row)(const uint8_t *codes, int n, const blocks_t &b, void *out, bool around);
};

template <typename V, typename T, bool calm>
void decode_line(const uint8_t *codes, int n, int block, const blocks_t &b, int l, void *out, bool around) {
    auto *to = static_cast<typename T::raw_t *>(out);
    int k = 0, i = l;
    if (block == mx_block)
        for (; k + int(mx_block) <= n; k += int(mx_block), i += 4)
            decode_run<V, T, calm>(codes + k, int(mx_block),
                    block_of_line_t{b.factor[i], b.divisor[i], b.zero[i], b.above[i]}, to + k, around);
    for (; k < n; k += block, i += 4)
        decode_run<V, T, calm>(codes + k, min_of(block, n - k),
                block_of_line_t{b.factor[i], b.divisor[i], b.zero[i], b.above[i]}, to + k, around);
}
template <typename V, typename T, bool calm>
void decode_row(const uint8_t *codes, int n, const blocks_t &b, void *out, bool around) {
    decode_run<V, T, calm>(codes, n, lines_of_row_t{b}, static_cast<typename T::raw_t *>(out), around);
}

// Whole vectors of 32 codes. offsets(k, first, second) gives what the scales add to both halves of the codes
// from k on. Returns whether there is an Inf or NaN, which has no word. The loop makes no call, so that
// constants stay in registers.
template <typename E, bool around, typename F>
MXDNN_INLINE bool decode_words(const uint8_t *codes, int n, uint16_t *out, F &&offsets) {
    using words = words_decoder_t<E>;
    __m256i specials = _mm256_setzero_si256();
    for (int k = 0; k < n; k += 32) {
        const __m256i c = _mm256_permute4x64_epi64(load256(codes + k), 0xd8);
        __m256i first, second;
        offsets(k, first, second);
        specials = _mm256_or_si256(specials, words::specials(c));
        const words_t w = words::decode(c, first, second);
        write256(around, out + k, w.first);
        write256(around, out + k + 16, w.second);
    }
    return !_mm256_testz_si256(specials, specials);
}
template <typename E, typename F>
MXDNN_INLINE bool decode_words(const uint8_t *codes, int n, uint16_t *out, bool around, F &&offsets) {
    const int whole = n / 32 * 32, rest = n - whole;
    bool special = around ? decode_words<E, true>(codes, whole, out, offsets)
                          : decode_words<E, false>(codes, whole, out, offsets);
    if (rest) {
        alignas(32) uint8_t c[32] = {};
        alignas(32) uint16_t words[32];
        __builtin_memcpy(c, codes + whole, size_t(rest));
        special |= decode_words<E, false>(
                c, 32, words, [&](int, __m256i &first, __m256i &second) { offsets(whole, first, second); });
        __builtin_memcpy(out + whole, words, size_t(rest) * sizeof(words[0]));
    }
    return special;
}
MXDNN_INLINE int blocks_of(int n, int block) { return (n + block - 1) / block; }
// Calls decode(parameters) with the factors that codes of Inf and NaN need.
template <typename E, typename F>
__attribute__((noinline)) void decode_specials(const blocks_t &b, int n, F &&decode) {
    constexpr float inverse_unit = 1 / scaled_values_t<E>::unit;
    blocks_t c;
    clear_blocks(c, n);
    for_blocks(n, [&](int i) {
        c.factor[i] = decode_e8m0(b.scale[i]);
        c.divisor[i] = c.factor[i] * inverse_unit;
    });
    decode(c);
}
template <typename E>
void decode_line_of_words(
        const uint8_t *codes, int n, int block, const blocks_t &b, int l, void *out, bool around) {
    const uint16_t *const offset = b.offset + l;
    const bool special = decode_words<E>(
            codes, n, static_cast<uint16_t *>(out), around, [&](int k, __m256i &first, __m256i &second) {
                first = second = _mm256_set1_epi16(short(offset[k / int(mx_block) * 4]));
            });
    if (special)
        decode_specials<E>(b, blocks_of(n, block) * 4, [&](const blocks_t &c) {
            decode_line<scaled_values_t<E>, target_exact_bf16_t, true>(codes, n, block, c, l, out, around);
        });
}
template <typename E>
void decode_row_of_words(const uint8_t *codes, int n, const blocks_t &b, void *out, bool around) {
    const bool special = decode_words<E>(
            codes, n, static_cast<uint16_t *>(out), around, [&](int k, __m256i &first, __m256i &second) {
                first = load256(b.offset + k);
                second = load256(b.offset + k + 16);
            });
    if (special)
        decode_specials<E>(b, n, [&](const blocks_t &c) {
            decode_row<scaled_values_t<E>, target_exact_bf16_t, true>(codes, n, c, out, around);
        });
}

template <typename V, typename T, bool calm>
decoding_t decoding_of() {
    return {decode_line<V, T, calm>, decode_row<V, T, calm>};
}

// Whether words_decoder_t has these values.
template <typename V>
constexpr bool has_words() {
    if constexpr (V::is_affine)
        return false;
    else
        return V::elem_t::is_float;
}

// Whether a block has 16 values.
template <typename V>
constexpr bool is_decoded_by_tables() {
    if constexpr (V::is_affine)
        return V::has_tables;
    else
        return false;
}

// Offsets for words_decoder_t. False if there is a scale with which it has not all values.
template <typename E>
bool find_offsets(blocks_t &b, int n) {
    uint32_t outside = 0;
    for_blocks(n, [&](int i) {
        b.offset[i] = words_decoder_t<E>::offset(b.scale[i]);
        outside |= uint32_t(b.scale[i] - mx_calm_least > mx_calm_most - mx_calm_least);
    });
    return !outside;
}

template <typename V>
decoding_t decoding_with(blocks_t &b, int n, data_type_t dt, calm_t calm) {
    const bool is_calm = calm != calm_t::no;
    if (dt == mxdnn_f32)
        return is_calm ? decoding_of<V, target_f32_t, true>() : decoding_of<V, target_f32_t, false>();
    if (dt == mxdnn_f16)
        return is_calm ? decoding_of<V, target_f16_t, true>() : decoding_of<V, target_f16_t, false>();
    if (calm == calm_t::exact) {
        decoding_t d = decoding_of<V, target_exact_bf16_t, true>();
        if constexpr (product_codes_t<V>::exist) {
            separate_factors(b, n);
            d.row = decode_row_of_products<V, true>;
        }
        return d;
    }
    decoding_t d =
            is_calm ? decoding_of<V, target_finite_bf16_t, true>() : decoding_of<V, target_bf16_t, false>();
    if constexpr (product_codes_t<V>::exist)
        if (is_calm) {
            separate_factors(b, n);
            d.row = decode_row_of_products<V, false>;
        }
    if constexpr (is_decoded_by_tables<V>())
        d.line = is_calm ? decode_line_by_tables<V, target_finite_bf16_t>
                         : decode_line_by_tables<V, target_bf16_t>;
    return d;
}

// Calls fn(V()) for the values of the format.
template <typename F>
MXDNN_INLINE void with_values(const block_format_t &f, F &&fn) {
    if (f.family != quant_family_t::affine) {
        visit_type(decoded_mx_types(), f.elem, [&](auto e) { fn(scaled_values_t<decltype(e)>()); });
        return;
    }
    with_integers(f, [&](auto e, auto zp) { fn(affine_values_t<decltype(e), decltype(zp)::value>()); });
}

MXDNN_INLINE decoding_t make_decoding(
        blocks_t &b, int n, const block_format_t &f, float global, data_type_t dt) {
    decoding_t d = {};
    with_values(f, [&](auto v) {
        using V = decltype(v);
        if constexpr (has_words<V>()) {
            using E = typename V::elem_t;
            if (dt == mxdnn_bf16 && f.family == quant_family_t::mx && find_offsets<E>(b, n)) {
                d = {decode_line_of_words<E>, decode_row_of_words<E>};
                return;
            }
        }
        d = decoding_with<V>(b, n, dt, decode_params(b, n, f, global, V::unit));
    });
    return d;
}

void dequantise(const block_format_t &f, const uint8_t *codes, int64_t pitch, int lines, int n, float global,
        const line_params_t &params, const nibble_tables_t *tables, data_type_t dt, void *dst,
        int64_t line_bytes, const ahead_t &ahead, write_t how) {
    const bool is_affine = f.family == quant_family_t::affine;
    prefetcher_t fetcher(ahead, lines);
    if (tables && (!is_affine || n % f.block == 0)) {
        for (int l = 0; l < lines; l++) {
            fetcher.step();
            uint8_t *to = static_cast<uint8_t *>(dst) + l * line_bytes;
            if (is_affine) {
                const line_params_t p = {params.scales + l * f.scale_bytes, nullptr, params.pitch};
                if (!look_up_line_of_integers(codes + l * pitch, n, f.block, *tables, p.scales, p.pitch,
                            reinterpret_cast<uint16_t *>(to), goes_around(how, to)))
                    dequantise(f, codes + l * pitch, pitch, 1, n, global, p, nullptr, dt, to, line_bytes, {},
                            how);
                continue;
            }
            look_up_line(codes + l * pitch, n, f.block, *tables, params.scales + l, params.pitch,
                    reinterpret_cast<uint16_t *>(to), goes_around(how, to));
        }
        return;
    }
    const int blocks = blocks_of(n, f.block);
    blocks_t b;
    clear_blocks(b, blocks * 4);
    for (int first = 0; first < lines; first += 4) {
        const int some = min_of(4, lines - first);
        load_codes(f.scale_bytes, b.scale, params.scales + first * f.scale_bytes, params.pitch, blocks, some);
        if (params.zero_points)
            load_codes(f.zp_bytes, b.zp, params.zero_points + first * f.zp_bytes, params.pitch, blocks, some);
        const decoding_t d = make_decoding(b, blocks * 4, f, global, dt);
        for (int l = 0; l < some; l++) {
            uint8_t *to = static_cast<uint8_t *>(dst) + (first + l) * line_bytes;
            fetcher.step();
            d.line(codes + (first + l) * pitch, n, f.block, b, l, to, goes_around(how, to));
        }
    }
}

void dequantise_rows(const block_format_t &f, const uint8_t *codes, int64_t pitch, int rows, int n,
        float global, const line_params_t &params, data_type_t dt, void *dst, int64_t row_bytes,
        const ahead_t &ahead, write_t how) {
    blocks_t b;
    clear_blocks(b, n);
    prefetcher_t fetcher(ahead, rows);
    for (int first = 0; first < rows; first += f.block) {
        const int64_t skip = first / f.block * params.pitch;
        load_line_codes(f.scale_bytes, b.scale, params.scales + skip * f.scale_bytes, n);
        if (params.zero_points) load_line_codes(f.zp_bytes, b.zp, params.zero_points + skip * f.zp_bytes, n);
        const decoding_t d = make_decoding(b, n, f, global, dt);
        for (int r = first; r < min_of(first + f.block, rows); r++) {
            uint8_t *to = static_cast<uint8_t *>(dst) + r * row_bytes;
            fetcher.step();
            d.row(codes + r * pitch, n, b, to, goes_around(how, to));
        }
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
