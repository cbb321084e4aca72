// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/reorder/recode_bytes.hpp"

// Of what the headers have, some functions are used.
#pragma GCC diagnostic ignored "-Wunused-function"
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 sees an uninitialised variable in its own _mm512_undefined_epi32().
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "cpu/x64/reorder/body_recode_panels.hpp"
#include "cpu/x64/reorder/body_words_avx512.hpp"

// Bytes are looked up in 128 by one instruction. Whoever calls these functions has made sure that it is
// there.
#define MXDNN_WITH_VBMI __attribute__((target("avx512vbmi")))

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int vector_rows = 4;      // of a vector of n16_b8, and twice as many of n16_b4
constexpr int from_rows = mx_block; // of a block
constexpr int most_header_bytes = recode_t::most_rows / int(nvfp4_block) * reorder_lines;
static_assert(
        most_header_bytes >= recode_t::most_rows / from_rows * 2 * reorder_lines, "scales of two bytes");
// With these scales values are far from the ends of f32.
constexpr uint32_t least_scale = 27, greatest_scale = 227;
constexpr uint32_t e8m0_one = 127;

template <bool is_integer>
MXDNN_INLINE __m512i magnitudes(const uint8_t *codes) {
    const __m512i v = load512(codes);
    return is_integer ? _mm512_abs_epi8(v) : _mm512_and_si512(v, _mm512_set1_epi8(0x7f));
}

// In every byte the largest of its column.
MXDNN_INLINE __m512i largest_of_columns(__m512i v) {
    v = _mm512_max_epu8(
            v, shuffle512(v, _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)));
    return _mm512_max_epu8(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
}

// A byte of each column as a dword.
struct bytes_of_columns_t {
    alignas(64) uint8_t index[64];
    constexpr bytes_of_columns_t() : index() {
        for (int c = 0; c < reorder_lines; c++) index[4 * c] = uint8_t(c / 4 * 16 + c % 4 * 2);
    }
};
constexpr bytes_of_columns_t bytes_of_columns;
MXDNN_WITH_VBMI MXDNN_INLINE __m512i dwords_of_columns(__m512i v) {
    return _mm512_maskz_permutexvar_epi8(0x1111111111111111, load512(bytes_of_columns.index), v);
}
// The low byte of the dword of each column in every byte of the column.
struct columns_of_bytes_t {
    alignas(64) uint8_t index[64];
    constexpr columns_of_bytes_t() : index() {
        for (int i = 0; i < 64; i++) index[i] = uint8_t((i / 16 * 4 + i % 8 / 2) * 4);
    }
};
constexpr columns_of_bytes_t columns_of_bytes;
MXDNN_WITH_VBMI MXDNN_INLINE __m512i bytes_of_dwords(__m512i v) {
    return _mm512_permutexvar_epi8(load512(columns_of_bytes.index), v);
}
MXDNN_WITH_VBMI MXDNN_INLINE __m512i look_up_byte(const uint8_t *table, __m512i index) {
    return _mm512_permutex2var_epi8(load512(table), index, load512(table + 64));
}

MXDNN_WITH_VBMI MXDNN_INLINE __m512i look_up_of_256(const uint8_t *table, __m512i index) {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), look_up_byte(table, index),
            look_up_byte(table + recode_bytes_t::magnitudes, index));
}

// ---- magnitudes to codes of 4 bits ----

struct steps_t {
    __m512i of[recode_bytes_t::steps];

    // The codes of magnitudes.
    MXDNN_INLINE __m512i codes(const steps_t &s, __m512i m) {
        const auto reaches = [&](__m512i from) { return _mm512_cmpge_epu8_mask(m, from); };
        const __mmask64 four = reaches(s.of[3]);
        const __mmask64 two = reaches(_mm512_mask_blend_epi8(four, s.of[1], s.of[5]));
        const __m512i below = _mm512_mask_blend_epi8(four, s.of[0], s.of[4]),
                      above = _mm512_mask_blend_epi8(four, s.of[2], s.of[6]);
        const __mmask64 one = reaches(_mm512_mask_blend_epi8(two, below, above));
        const __m512i c = _mm512_maskz_set1_epi8(four, 4),
                      d = _mm512_mask_add_epi8(c, two, c, _mm512_set1_epi8(2));
        return _mm512_mask_add_epi8(d, one, d, _mm512_set1_epi8(1));
    }
};

// Eight rows of n16_b4 from codes in the order of n16_b8.
MXDNN_INLINE __m512i nibbles(__m512i first, __m512i second) {
    const __m512i low = _mm512_unpacklo_epi64(first, second), high = _mm512_unpackhi_epi64(first, second);
    return shuffle512(_mm512_or_si512(low, _mm512_slli_epi16(high, 4)),
            _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
}

// ---- a new block within an old one ----

MXDNN_INLINE __m512i load_scales(const uint8_t *scales) { return _mm512_cvtepu8_epi32(load128(scales)); }

// What is known of 16 columns.
struct columns_t {
    __mmask16 any;   // are not zero
    __mmask16 bad;   // have no rule
    __mmask16 below; // have the least scale because theirs would be smaller

    MXDNN_INLINE columns_t of(const recode_bytes_t &r, __m512i largest, __m512i from_scales) {
        const __mmask16 any = _mm512_test_epi32_mask(largest, largest),
                        bad = _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(from_scales, dwords(least_scale)),
                                      dwords(greatest_scale - least_scale))
                              | _mm512_cmpgt_epu32_mask(largest, dwords(r.most)),
                        nan = _mm512_cmpeq_epi32_mask(from_scales, dwords(e8m0_poison));
        return {any, __mmask16((bad & any) | nan), 0};
    }
    // Stores the new scales. `added`: what the tables say of them.
    MXDNN_INLINE void store_scales(
            columns_t &c, const recode_bytes_t &r, __m512i added, __m512i from_scales, uint8_t *to) {
        const __m512i units = _mm512_mullo_epi32(from_scales, dwords(uint32_t(r.unit))),
                      scales = _mm512_add_epi32(added, _mm512_add_epi32(units, dwords(uint32_t(r.offset))));
        c.below = c.any & _mm512_cmplt_epi32_mask(scales, dwords(uint32_t(r.least)));
        c.bad |= c.any & _mm512_cmpgt_epi32_mask(scales, dwords(uint32_t(r.greatest)));
        store128(to, _mm512_cvtepi32_epi8(_mm512_mask_mov_epi32(
                             dwords(uint32_t(r.least)), __mmask16(c.any & ~c.below), scales)));
    }
};
// Places of the least scale of f8_e4m3 in a table by old scales, which has `n` from 2^`first` on.
MXDNN_INLINE __m512i places_of_least(__m512i from_scales, int first, int n) {
    const __m512i at = _mm512_sub_epi32(from_scales, dwords(e8m0_one + uint32_t(first)));
    return _mm512_min_epi32(_mm512_max_epi32(at, _mm512_setzero_si512()), dwords(uint32_t(n - 1)));
}

// `rows` rows of codes of 8 bits.
template <bool is_integer, int rows>
struct block_of_columns_t {
    static constexpr int vectors = rows / vector_rows;
    __m512i m[vectors], largest; // magnitudes
    columns_t columns;

    MXDNN_WITH_VBMI MXDNN_INLINE block_of_columns_t load(
            const recode_bytes_t &r, const uint8_t *codes, __m512i from_scales) {
        block_of_columns_t b;
        b.largest = _mm512_setzero_si512();
        for (int i = 0; i < vectors; i++) {
            b.m[i] = magnitudes<is_integer>(codes + 64 * i);
            b.largest = _mm512_max_epu8(b.largest, b.m[i]);
        }
        b.largest = largest_of_columns(b.largest);
        b.columns = columns_t::of(r, dwords_of_columns(b.largest), from_scales);
        return b;
    }
    MXDNN_WITH_VBMI MXDNN_INLINE void store_scales(
            block_of_columns_t &b, const recode_bytes_t &r, __m512i from_scales, uint8_t *to) {
        columns_t::store_scales(
                b.columns, r, dwords_of_columns(look_up_byte(r.scale, b.largest)), from_scales, to);
    }
};

// The signs of codes of 8 bits, at bit `bits` - 1.
template <int bits>
MXDNN_INLINE __m512i with_sign(__m512i magnitudes, const uint8_t *codes) {
    const __m512i v = load512(codes);
    return or_and(magnitudes, bits == 8 ? v : _mm512_srli_epi16(v, 8 - bits),
            _mm512_set1_epi8(char(1 << (bits - 1))));
}
MXDNN_INLINE __m512i negated(__m512i magnitudes, const uint8_t *codes) {
    return _mm512_mask_sub_epi8(
            magnitudes, _mm512_movepi8_mask(load512(codes)), _mm512_setzero_si512(), magnitudes);
}

// To f4_e2m1 in blocks of so many rows.
template <bool is_integer, int block_rows>
struct to_e2m1_t {
    static constexpr int rows = block_rows, bits = 4, from_bits = 8, from_blocks = 1;
    using block_t = block_of_columns_t<is_integer, rows>;

    MXDNN_WITH_VBMI MXDNN_INLINE __mmask16 recode(const recode_bytes_t &r, const uint8_t *from,
            const uint8_t *scales, uint8_t *to, uint8_t *to_scales, bool around) {
        const __m512i from_scales = load_scales(scales);
        block_t b = block_t::load(r, from, from_scales);
        block_t::store_scales(b, r, from_scales, to_scales);
        steps_t s;
        for (int i = 0; i < recode_bytes_t::steps; i++) s.of[i] = look_up_byte(r.step[i], b.largest);
        if (const __mmask16 below = b.columns.below; rows == nvfp4_block && below) {
            const __m512i index = bytes_of_dwords(
                    places_of_least(from_scales, -recode_bytes_t::scales_below, recode_bytes_t::scales));
            const __mmask64 columns =
                    _mm512_movepi8_mask(bytes_of_dwords(_mm512_maskz_set1_epi32(below, -1)));
            for (int i = 0; i < recode_bytes_t::steps; i++)
                s.of[i] = _mm512_mask_permutexvar_epi8(s.of[i], columns, index, load512(r.step_of_least[i]));
        }
        const auto codes = [&](int i) { return with_sign<4>(steps_t::codes(s, b.m[i]), from + 64 * i); };
        for (int i = 0; i < block_t::vectors; i += 2)
            write512(around, to + 32 * i, nibbles(codes(i), codes(i + 1)));
        return b.columns.bad;
    }
};

// To elements of MX with 6 or 8 bits.
template <bool is_integer, int to_bits, bool to_integer>
struct to_mx_t {
    static constexpr int rows = from_rows, bits = to_bits, from_bits = 8, from_blocks = 1;
    using block_t = block_of_columns_t<is_integer, rows>;

    MXDNN_WITH_VBMI MXDNN_INLINE __mmask16 recode(const recode_bytes_t &r, const uint8_t *from,
            const uint8_t *scales, uint8_t *to, uint8_t *to_scales, bool around) {
        const __m512i from_scales = load_scales(scales);
        block_t b = block_t::load(r, from, from_scales);
        block_t::store_scales(b, r, from_scales, to_scales);
        const __m512i less = look_up_byte(r.less, b.largest), bits_up = _mm512_and_si512(less, words(0xff));
        const auto codes = [&](int i) MXDNN_WITH_VBMI {
            const __m512i at = is_integer ? _mm512_sllv_epi16(b.m[i], bits_up)
                                          : _mm512_subs_epu8(look_up_byte(r.order, b.m[i]), less);
            const __m512i c = look_up_of_256(r.code[0], at);
            return to_integer ? negated(c, from + 64 * i) : with_sign<bits>(c, from + 64 * i);
        };
        for (int i = 0; i < block_t::vectors; i += 4) {
            const __m512i v[4] = {codes(i), codes(i + 1), codes(i + 2), codes(i + 3)};
            const __m512i top = _mm512_set1_epi8(char(0xc0));
            for (int k = 0; k < (bits == 6 ? 3 : 4); k++, to += 64)
                write512(around, to,
                        bits == 6 ? or_and(v[k], _mm512_slli_epi16(v[3], unsigned(6 - 2 * k)), top) : v[k]);
        }
        return b.columns.bad;
    }
};

// ---- f4_e2m1 ----

// In every byte the largest magnitude of its column of 16 rows.
MXDNN_INLINE __m512i largest_nibbles(const __m512i *v) {
    const auto of = [&](int mask) {
        const __m512i m = _mm512_set1_epi8(char(mask));
        return _mm512_max_epu8(_mm512_and_si512(v[0], m), _mm512_and_si512(v[1], m));
    };
    __m512i m = _mm512_max_epu8(of(0x07), _mm512_srli_epi16(of(0x70), 4));
    m = _mm512_max_epu8(m, _mm512_rol_epi32(m, 16));
    return _mm512_max_epu8(m, _mm512_rol_epi32(m, 8));
}
// codes(v) for both halves of the bytes of v, which are magnitudes beside other bits, with the signs of v.
template <typename F>
MXDNN_WITH_VBMI MXDNN_INLINE __m512i recode_halves(__m512i v, F &&codes) {
    const __m512i high = codes(_mm512_srli_epi16(v, 4)),
                  both = _mm512_or_si512(codes(v), _mm512_slli_epi16(high, 4));
    return or_and(both, v, _mm512_set1_epi8(char(0x88)));
}

// To NVFP4. Codes keep their order.
struct mxfp4_to_nvfp4_t {
    static constexpr int rows = int(nvfp4_block), bits = 4, from_bits = 4, from_blocks = 1;

    MXDNN_WITH_VBMI MXDNN_INLINE __mmask16 recode(const recode_bytes_t &r, const uint8_t *from,
            const uint8_t *scales, uint8_t *to, uint8_t *to_scales, bool around) {
        const __m512i from_scales = load_scales(scales);
        const __m512i v[2] = {load512(from), load512(from + 64)}, low = _mm512_set1_epi8(7);
        const __m512i largest = largest_nibbles(v);
        const __m512i byte = dwords(0xff);
        columns_t c = columns_t::of(r, _mm512_and_si512(largest, byte), from_scales);
        columns_t::store_scales(c, r,
                _mm512_and_si512(
                        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load128(r.scale)), largest), byte),
                from_scales, to_scales);

        const __m512i at = _mm512_slli_epi16(largest, 3), table = load512(r.code[0]);
        const __m512i of_least =
                _mm512_mullo_epi32(places_of_least(from_scales,
                                           recode_bytes_t::first_nibble_scale - recode_bytes_t::scales_below,
                                           recode_bytes_t::nibble_scales),
                        dwords(0x08080808));
        const __mmask64 least = c.below ? _mm512_movepi8_mask(_mm512_maskz_set1_epi32(c.below, -1)) : 0;
        const auto codes = [&](__m512i x) MXDNN_WITH_VBMI {
            __m512i y = _mm512_permutexvar_epi8(and_or(x, low, at), table);
            if (least) y = _mm512_mask_mov_epi8(y, least, look_up_byte(r.code[1], and_or(x, low, of_least)));
            return y;
        };
        for (int i = 0; i < 2; i++) write512(around, to + 64 * i, recode_halves(v[i], codes));
        return c.bad;
    }
};

// NVFP4 to f4_e2m1 in blocks of 32: codes keep their order.
struct nvfp4_to_mx_t {
    static constexpr int rows = from_rows, bits = 4, from_bits = 4, from_blocks = 2;

    MXDNN_WITH_VBMI MXDNN_INLINE __mmask16 recode(const recode_bytes_t &r, const uint8_t *from,
            const uint8_t *scales, uint8_t *to, uint8_t *to_scales, bool around) {
        const __m512i order = load512(r.order), code = load512(r.code[0]), low = _mm512_set1_epi8(7),
                      every_byte = dwords(0x01010101);
        __m512i v[4], mantissas[2], exponents[2], most = _mm512_setzero_si512();
        __mmask16 bad = 0, any = 0;
        for (int i = 0; i < 4; i++) v[i] = load512(from + 64 * i);
        for (int b = 0; b < 2; b++) {
            const __m512i scale = load_scales(scales + b * reorder_lines);
            mantissas[b] =
                    _mm512_mullo_epi32(_mm512_slli_epi32(_mm512_and_si512(scale, dwords(7)), 3), every_byte);
            exponents[b] = _mm512_and_si512(scale, dwords(0x78));
            const __m512i largest = largest_nibbles(v + 2 * b);
            const __mmask16 used = _mm512_test_epi32_mask(largest, largest);
            const __m512i number = _mm512_and_si512(
                    _mm512_permutexvar_epi8(_mm512_or_si512(largest, mantissas[b]), order), dwords(0xff));
            most = _mm512_mask_max_epu32(most, used, most, _mm512_add_epi32(number, exponents[b]));
            any |= used;
            // Those that are negative or NaN, or subnormal.
            bad |= _mm512_cmpgt_epu32_mask(scale, dwords(f8_e4m3_t::max_code))
                   | _mm512_mask_cmplt_epu32_mask(used, scale, dwords(1u << f8_e4m3_t::mantissa_bits));
        }
        const __m512i added = _mm512_and_si512(
                              _mm512_permutexvar_epi8(_mm512_and_si512(most, dwords(7)), load512(r.scale)),
                              dwords(0xff)),
                      new_scales = _mm512_add_epi32(_mm512_srli_epi32(most, 3),
                              _mm512_add_epi32(added, dwords(uint32_t(r.offset))));
        store128(to_scales, _mm512_cvtepi32_epi8(_mm512_maskz_mov_epi32(any, new_scales)));
        for (int b = 0; b < 2; b++) {
            const __m512i apart = _mm512_sub_epi32(_mm512_slli_epi32(new_scales, 3), exponents[b]),
                          least = _mm512_max_epi32(
                                  _mm512_add_epi32(apart, dwords(uint32_t(r.base))), _mm512_setzero_si512()),
                          less = _mm512_mullo_epi32(_mm512_min_epi32(least, dwords(255)), every_byte);
            const auto codes = [&](__m512i x) MXDNN_WITH_VBMI {
                const __m512i number = _mm512_permutexvar_epi8(and_or(x, low, mantissas[b]), order);
                return _mm512_permutexvar_epi8(_mm512_subs_epu8(number, less), code);
            };
            for (int i = 2 * b; i < 2 * b + 2; i++) write512(around, to + 64 * i, recode_halves(v[i], codes));
        }
        return bad;
    }
};

template <typename to_t>
MXDNN_WITH_VBMI bool recode_tile(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around) {
    alignas(64) uint8_t header[most_header_bytes] = {};
    const int header_bytes = recode_t::header_bytes(r.to, tile_rows);
    const uint8_t *codes = from + recode_t::header_bytes(r.from, tile_rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __mmask16 bad = 0;
    for (int i = 0; i < tile_rows; i += from_rows, from += reorder_lines * to_t::from_blocks) {
        for (int b = 0; b < from_rows; b += to_t::rows, scales += reorder_lines) {
            bad |= to_t::recode(r, codes, from, out, scales, around);
            codes += to_t::rows * reorder_lines * to_t::from_bits / 8;
            out += to_t::rows * reorder_lines * to_t::bits / 8;
        }
    }
    for (int i = 0; i < header_bytes; i += 64) write512(around, to + i, load512(header + i));
    return bad == 0;
}

// ---- to int4, in blocks of some old ones ----

// Of a column, from which number or magnitude on codes are at least 1 to 8, for i - 1/2 of the new scale,
// which becomes an even code. 255 is beyond all of them. `scale` is the new scale in units of the old one.
template <bool is_integer>
MXDNN_WITH_VBMI MXDNN_INLINE __m512i step_of_quotient(const recode_bytes_t &r, __m512 scale, int i) {
    const bool is_even = i % 2 == 0;
    const __m512 bound = _mm512_mul_ps(scale, _mm512_set1_ps(float(i) - 0.5f));
    __m512i v;
    if (is_integer) {
        v = is_even ? _mm512_cvt_roundps_epi32(bound, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
                    : _mm512_add_epi32(
                            _mm512_cvt_roundps_epi32(bound, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC),
                            dwords(1));
    } else {
        const uint32_t step = 1u << r.bits_below;
        const __m512i above = _mm512_add_epi32(_mm512_castps_si512(bound), dwords(is_even ? step - 1 : step));
        v = _mm512_sub_epi32(
                _mm512_srl_epi32(above, _mm_cvtsi32_si128(r.bits_below)), dwords(uint32_t(r.base)));
    }
    return bytes_of_dwords(_mm512_min_epi32(_mm512_max_epi32(v, dwords(1)), dwords(255)));
}

template <bool is_integer>
MXDNN_WITH_VBMI bool recode_tile_to_int4(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around) {
    using block_t = block_of_columns_t<is_integer, from_rows>;
    constexpr int most_blocks_of_group = recode_t::most_block / from_rows,
                  block_bytes = from_rows * reorder_lines;
    const int blocks = r.to.block / from_rows, header_bytes = recode_t::header_bytes(r.to, tile_rows);
    alignas(64) uint8_t header[most_header_bytes] = {};
    const uint8_t *codes = from + recode_t::header_bytes(r.from, tile_rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __mmask16 bad = 0;
    for (int row = 0; row < tile_rows; row += r.to.block, scales += 2 * reorder_lines) {
        __m512 amax = _mm512_setzero_ps(), per_unit[most_blocks_of_group];
        for (int b = 0; b < blocks; b++, from += reorder_lines) {
            const __m512i old = load_scales(from);
            const block_t block = block_t::load(r, codes + b * block_bytes, old);
            bad |= block.columns.bad;
            const __m512i most = dwords_of_columns(block.largest);
            const __m512 value =
                    is_integer
                            ? _mm512_cvtepi32_ps(most)
                            : _mm512_castsi512_ps(_mm512_maskz_sll_epi32(block.columns.any,
                                    _mm512_add_epi32(dwords_of_columns(look_up_byte(r.order, block.largest)),
                                            dwords(uint32_t(r.base))),
                                    _mm_cvtsi32_si128(r.bits_below)));
            // In units of the old scale: that of integers is the value of 1.
            const uint32_t unit = is_integer ? 6 : 0;
            const __m512 scale =
                    _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(old, dwords(unit)), 23));
            per_unit[b] = _mm512_castsi512_ps(
                    _mm512_slli_epi32(_mm512_sub_epi32(dwords(2 * e8m0_one + unit), old), 23));
            amax = _mm512_max_ps(amax, _mm512_maskz_mul_ps(block.columns.any, value, scale));
        }
        const __mmask16 any = _mm512_cmp_ps_mask(amax, _mm512_setzero_ps(), _CMP_GT_OQ);
        const __m512 wanted = _mm512_div_ps(amax, _mm512_set1_ps(symmetric_range<s4_t>));
        __m512i code;
        __m512 scale;
        if (r.to.scale_dt == mxdnn_bf16) {
            const __m512i u = _mm512_castps_si512(wanted),
                          odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), dwords(1));
            code = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, dwords(0x7fff)), odd), 16);
            code = _mm512_mask_mov_epi32(dwords(scale_bf16_t::one), any, code);
            scale = _mm512_castsi512_ps(_mm512_slli_epi32(code, 16));
        } else {
            bad |= any
                   & (_mm512_cmp_ps_mask(wanted, _mm512_set1_ps(f16_t::min_normal), _CMP_LT_OQ)
                           | _mm512_cmp_ps_mask(wanted, _mm512_set1_ps(f16_t::max), _CMP_GT_OQ));
            const __m256i half = _mm512_cvtps_ph(wanted, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            code = _mm512_mask_mov_epi32(dwords(scale_f16_t::one), any, _mm512_cvtepu16_epi32(half));
            scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(code));
        }
        store256(scales, _mm512_cvtepi32_epi16(code));

        for (int b = 0; b < blocks; b++, codes += block_bytes, out += block_bytes / 2) {
            // Beyond the limit no magnitude has another code than 0.
            const __m512 quotient = _mm512_min_ps(_mm512_mul_ps(scale, per_unit[b]), _mm512_set1_ps(0x1p20f));
            steps_t s;
            for (int i = 0; i < recode_bytes_t::steps; i++)
                s.of[i] = step_of_quotient<is_integer>(r, quotient, i + 1);
            const __m512i eight = step_of_quotient<is_integer>(r, quotient, 8);
            const auto code_of = [&](int i) MXDNN_WITH_VBMI {
                const __m512i m = magnitudes<is_integer>(codes + 64 * i),
                              v = is_integer ? m : look_up_byte(r.order, m), one = _mm512_set1_epi8(1);
                const __mmask64 negative = _mm512_movepi8_mask(load512(codes + 64 * i));
                __m512i c = steps_t::codes(s, v);
                c = _mm512_mask_add_epi8(c, _mm512_mask_cmpge_epu8_mask(negative, v, eight), c, one);
                c = _mm512_mask_sub_epi8(c, negative, _mm512_setzero_si512(), c);
                return _mm512_and_si512(c, _mm512_set1_epi8(15));
            };
            for (int i = 0; i < block_t::vectors; i += 2)
                write512(around, out + 32 * i, nibbles(code_of(i), code_of(i + 1)));
        }
    }
    for (int i = 0; i < header_bytes; i += 64) write512(around, to + i, load512(header + i));
    return bad == 0;
}

using recode_tile_t = bool (*)(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around);
template <bool is_integer>
recode_tile_t recode_tile_of(const block_format_t &to) {
    if (to.elem == mxdnn_s4) return recode_tile_to_int4<is_integer>;
    if (to.elem == mxdnn_f4_e2m1)
        return to.block == from_rows ? recode_tile<to_e2m1_t<is_integer, from_rows>>
                                     : recode_tile<to_e2m1_t<is_integer, int(nvfp4_block)>>;
    if (to.elem == mxdnn_s8) return recode_tile<to_mx_t<is_integer, 8, true>>;
    return data_type_info(to.elem)->bits == 8 ? recode_tile<to_mx_t<is_integer, 8, false>>
                                              : recode_tile<to_mx_t<is_integer, 6, false>>;
}

} // namespace

bool recode_bytes_of_panels_avx512(const recode_bytes_t &r, const uint8_t *from, int64_t from_panel,
        uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, write_t how) {
    const bool around = goes_around512(how, to, to_panel);
    const recode_tile_t tile = r.from.scale_dt == mxdnn_f8_e4m3 ? recode_tile<nvfp4_to_mx_t>
                               : r.from.elem == mxdnn_f4_e2m1   ? recode_tile<mxfp4_to_nvfp4_t>
                               : r.from.elem == mxdnn_s8        ? recode_tile_of<true>(r.to)
                                                                : recode_tile_of<false>(r.to);
    return recode_each_panel(r, tile, fetch, from, from_panel, to, to_panel, panels, rows, ahead, around);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
