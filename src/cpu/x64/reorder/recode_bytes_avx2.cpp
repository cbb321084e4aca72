// SPDX-License-Identifier: Apache-2.0
// Codes of 8 bits to f4_e2m1, and MXFP4 to NVFP4 and back, eight columns at a time.
#include "cpu/x64/reorder/recode_bytes.hpp"

// Of what the headers have, some functions are used.
#pragma GCC diagnostic ignored "-Wunused-function"
#include "cpu/x64/reorder/body_ahead.hpp"
#include "cpu/x64/reorder/body_nibbles.hpp"
#include "cpu/x64/reorder/body_recode_panels.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int from_rows = mx_block; // of a block
constexpr int vector_rows = 4;      // of a vector of n16_b8, and twice as many of n16_b4
constexpr int half_bytes = 32;      // of a vector, of eight columns
constexpr int most_header_bytes = recode_t::most_rows / int(nvfp4_block) * reorder_lines;
// With these scales values are far from the ends of f32.
constexpr uint32_t least_scale = 27, greatest_scale = 227;

MXDNN_INLINE __m256i in_both_lanes(__m128i v) { return _mm256_broadcastsi128_si256(v); }

// A magnitude of 128 is taken for 127, which has the same code.
template <bool is_integer>
MXDNN_INLINE __m256i magnitudes(__m256i v) {
    const __m256i most = _mm256_set1_epi8(127);
    return is_integer ? _mm256_min_epu8(_mm256_abs_epi8(v), most) : _mm256_and_si256(v, most);
}

// The largest magnitude of each of eight columns.
template <bool is_integer, int rows>
MXDNN_INLINE __m256i largest_of_columns(const uint8_t *codes) {
    __m256i v = _mm256_setzero_si256();
    for (int i = 0; i < rows / vector_rows; i++) {
        const __m256i x = load256(codes + 64 * i);
        v = _mm256_max_epu8(v, is_integer ? _mm256_abs_epi8(x) : magnitudes<false>(x));
    }
    v = _mm256_max_epu8(v, _mm256_srli_epi16(v, 8));
    v = _mm256_max_epu8(v, _mm256_shuffle_epi32(v, 0x4e));
    return _mm256_shuffle_epi8(
            v, in_both_lanes(_mm_setr_epi8(0, -1, -1, -1, 2, -1, -1, -1, 4, -1, -1, -1, 6, -1, -1, -1)));
}

// The new scales of eight columns.
struct new_scales_t {
    __m256i scales;
    __m256i below; // all ones: they have the least scale because theirs would be smaller
    __m256i bad;   // all ones: there is no rule

    // `scale`: what the tables say of the largest magnitudes.
    MXDNN_INLINE new_scales_t of(
            const recode_bytes_t &r, __m256i largest, __m256i scale, __m256i from_scales) {
        const __m256i least = dwords256(uint32_t(r.least)), greatest = dwords256(uint32_t(r.greatest)),
                      is_zero = _mm256_cmpeq_epi32(largest, _mm256_setzero_si256()),
                      units = _mm256_mullo_epi32(from_scales, dwords256(uint32_t(r.unit))),
                      v = _mm256_add_epi32(_mm256_add_epi32(scale, dwords256(uint32_t(r.offset))), units);
        __m256i bad = _mm256_or_si256(_mm256_cmpgt_epi32(dwords256(least_scale), from_scales),
                _mm256_cmpgt_epi32(from_scales, dwords256(greatest_scale)));
        bad = _mm256_or_si256(bad, _mm256_cmpgt_epi32(v, greatest));
        bad = _mm256_or_si256(bad, _mm256_cmpgt_epi32(largest, dwords256(r.most)));
        bad = _mm256_or_si256(
                _mm256_andnot_si256(is_zero, bad), _mm256_cmpeq_epi32(from_scales, dwords256(e8m0_poison)));
        const __m256i below = _mm256_andnot_si256(is_zero, _mm256_cmpgt_epi32(least, v));
        return {_mm256_blendv_epi8(v, least, _mm256_or_si256(is_zero, below)), below, bad};
    }
    // Of those below: the place in a table by old scales, which has `n` from 2^`first` on.
    MXDNN_INLINE __m256i place(__m256i from_scales, int first, int n) {
        const __m256i at = _mm256_sub_epi32(from_scales, dwords256(uint32_t(127 + first)));
        return _mm256_min_epi32(_mm256_max_epi32(at, _mm256_setzero_si256()), dwords256(uint32_t(n - 1)));
    }
};
MXDNN_INLINE void store_scales(uint8_t *to, __m256i v) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(to), _mm_packus_epi16(words, words));
}
MXDNN_INLINE __m256i load_scales(const uint8_t *from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
}

// ---- codes of 8 bits ----

// In every byte of eight columns: codes grow beyond these magnitudes.
struct steps_t {
    __m256i of[recode_bytes_t::steps];

    MXDNN_INLINE __m256i codes(const steps_t &s, __m256i magnitudes, __m256i v) {
        __m256i less = _mm256_cmpgt_epi8(magnitudes, s.of[0]); // each is -1
        for (int i = 1; i < recode_bytes_t::steps; i++)
            less = _mm256_add_epi8(less, _mm256_cmpgt_epi8(magnitudes, s.of[i]));
        return _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(8)), less);
    }
};

// Stores the scales of columns, and says which have no rule.
MXDNN_INLINE __m256i find_steps(
        const recode_bytes_t &r, __m256i largest, __m256i from_scales, uint8_t *to_scales, steps_t &steps) {
    const int *const table = reinterpret_cast<const int *>(r.entries);
    const auto upper = [&](__m256i at) { return _mm256_i32gather_epi32(table + 1, at, 8); };
    __m256i at = _mm256_and_si256(largest, dwords256(recode_bytes_t::magnitudes - 1)), high = upper(at);
    const new_scales_t s = new_scales_t::of(r, largest, _mm256_srli_epi32(high, 24), from_scales);
    if (!_mm256_testz_si256(s.below, s.below)) {
        const __m256i place =
                new_scales_t::place(from_scales, -recode_bytes_t::scales_below, recode_bytes_t::scales);
        at = _mm256_blendv_epi8(at, _mm256_add_epi32(place, dwords256(recode_bytes_t::magnitudes)), s.below);
        high = upper(at);
    }
    const __m256i low = _mm256_i32gather_epi32(table, at, 8);
    for (int i = 0; i < recode_bytes_t::steps; i++) {
        const __m128i columns = _mm_setr_epi8(0, 0, 4, 4, 8, 8, 12, 12, 0, 0, 4, 4, 8, 8, 12, 12);
        steps.of[i] = _mm256_shuffle_epi8(
                i < 4 ? low : high, _mm256_add_epi8(_mm256_set1_epi8(char(i % 4)), in_both_lanes(columns)));
    }
    store_scales(to_scales, s.scales);
    return s.bad;
}

// Eight rows of n16_b4 from codes in the order of n16_b8.
MXDNN_INLINE __m256i nibbles(__m256i first, __m256i second) {
    const __m256i low = _mm256_unpacklo_epi64(first, second), high = _mm256_unpackhi_epi64(first, second);
    return _mm256_shuffle_epi8(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)),
            in_both_lanes(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)));
}

// Kernels of a few rows of a panel, whole blocks on both sides. All ones are columns without a rule.

// To f4_e2m1 in blocks of so many rows.
template <bool is_integer, int block_rows>
struct to_e2m1_t {
    static constexpr int rows = block_rows, from_bits = 8, from_blocks = 1;

    MXDNN_INLINE __m256i recode(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
            uint8_t *to, uint8_t *to_scales, bool around) {
        constexpr int vectors = rows / vector_rows;
        __m256i out[2][vectors / 2], bad = _mm256_setzero_si256();
        for (int h = 0; h < 2; h++) {
            const uint8_t *const codes = from + h * half_bytes;
            steps_t steps;
            bad = _mm256_or_si256(bad, find_steps(r, largest_of_columns<is_integer, rows>(codes),
                                               load_scales(from_scales + h * recode_lanes),
                                               to_scales + h * recode_lanes, steps));
            const auto codes_of = [&](int i) {
                const __m256i v = load256(codes + 64 * i);
                return steps_t::codes(steps, magnitudes<is_integer>(v), v);
            };
            for (int i = 0; i < vectors / 2; i++) out[h][i] = nibbles(codes_of(2 * i), codes_of(2 * i + 1));
        }
        for (int i = 0; i < vectors / 2; i++) write_two(around, to + 64 * i, out[0][i], out[1][i]);
        return bad;
    }
};

// ---- f4_e2m1 ----

// 16 rows: codes of a column are looked up in the 8 bytes at its place of the table.
MXDNN_INLINE void look_up_rows(
        const uint8_t *table, const uint32_t *places, const uint8_t *from, uint8_t *to, bool around) {
    const auto entries = [&](int column) {
        const auto entry = [&](int c) {
            return reinterpret_cast<const double *>(table + 8 * places[column + c]);
        };
        return _mm_castpd_si128(_mm_loadh_pd(_mm_load_sd(entry(0)), entry(1)));
    };
    __m256i out[2][2];
    for (int h = 0; h < 2; h++) {
        const __m256i first = load256(from + half_bytes * h), second = load256(from + 64 + half_bytes * h);
        __m256i codes[2];
        for (int upper = 0; upper < 2; upper++) {
            const int column = h * recode_lanes + 2 * upper;
            const __m256i t = _mm256_inserti128_si256(
                                  _mm256_castsi128_si256(entries(column)), entries(column + 4), 1),
                          v = columns_together(first, second, upper);
            codes[upper] = _mm256_or_si256(look_up_codes256<4, true>(&t, v),
                    _mm256_slli_epi16(look_up_codes256<4, true>(&t, _mm256_srli_epi16(v, 4)), 4));
        }
        for (int i = 0; i < 2; i++) out[i][h] = rows_together(codes[0], codes[1], i);
    }
    for (int i = 0; i < 2; i++) write_two(around, to + 64 * i, out[i][0], out[i][1]);
}
// The largest magnitudes of eight columns of 16 rows, as codes.
MXDNN_INLINE __m256i largest_nibbles(const uint8_t *codes) {
    return greatest_nibbles256<3>(codes, 2, [](__m256i v) { return v; });
}
// Of eight bytes, those at these places.
MXDNN_INLINE __m256i look_up_of_8(const uint8_t *table, __m256i places) {
    return _mm256_permutevar8x32_epi32(load_scales(table), places);
}

// To NVFP4: the largest magnitude says everything.
struct mxfp4_to_nvfp4_t {
    static constexpr int rows = int(nvfp4_block), from_bits = 4, from_blocks = 1;

    MXDNN_INLINE __m256i recode(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
            uint8_t *to, uint8_t *to_scales, bool around) {
        alignas(32) uint32_t places[reorder_lines];
        __m256i bad = _mm256_setzero_si256();
        for (int h = 0; h < 2; h++) {
            const __m256i largest = largest_nibbles(from + h * half_bytes),
                          old = load_scales(from_scales + h * recode_lanes);
            const new_scales_t s = new_scales_t::of(r, largest, look_up_of_8(r.scale, largest), old);
            // The second table begins after so many entries.
            constexpr uint32_t second = 2 * recode_bytes_t::magnitudes / 8;
            const __m256i place = new_scales_t::place(old,
                    recode_bytes_t::first_nibble_scale - recode_bytes_t::scales_below,
                    recode_bytes_t::nibble_scales);
            store256(places + h * recode_lanes,
                    _mm256_blendv_epi8(largest, _mm256_add_epi32(place, dwords256(second)), s.below));
            store_scales(to_scales + h * recode_lanes, s.scales);
            bad = _mm256_or_si256(bad, s.bad);
        }
        look_up_rows(r.code[0], places, from, to, around);
        return bad;
    }
};

// NVFP4 to f4_e2m1 in blocks of 32: by the mantissa of the old scale, and how far the exponents are apart.
struct nvfp4_to_mx_t {
    static constexpr int rows = from_rows, from_bits = 4, from_blocks = 2;

    MXDNN_INLINE __m256i recode(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
            uint8_t *to, uint8_t *to_scales, bool around) {
        constexpr int cell_bytes = int(nvfp4_block) * reorder_lines / 2;
        alignas(32) uint32_t places[2][reorder_lines];
        const __m256i zero = _mm256_setzero_si256(), seven = dwords256(7);
        __m256i bad = zero;
        for (int h = 0; h < 2; h++) {
            __m256i mantissas[2], exponents[2], most = zero, any = zero;
            for (int b = 0; b < 2; b++) {
                const __m256i scale = load_scales(from_scales + b * reorder_lines + h * recode_lanes),
                              largest = largest_nibbles(from + b * cell_bytes + h * half_bytes),
                              unused = _mm256_cmpeq_epi32(largest, zero);
                mantissas[b] = _mm256_and_si256(scale, seven);
                exponents[b] = _mm256_and_si256(scale, dwords256(0x78));
                const __m256i at = _mm256_or_si256(_mm256_slli_epi32(mantissas[b], 3), largest),
                              order = _mm256_i32gather_epi32(reinterpret_cast<const int *>(r.order), at, 1),
                              number = _mm256_add_epi32(
                                      _mm256_and_si256(order, dwords256(0xff)), exponents[b]);
                most = _mm256_max_epi32(most, _mm256_andnot_si256(unused, number));
                any = _mm256_or_si256(any, largest);
                // Those that are negative or NaN, or subnormal.
                bad = _mm256_or_si256(bad, _mm256_cmpgt_epi32(scale, dwords256(f8_e4m3_t::max_code)));
                bad = _mm256_or_si256(
                        bad, _mm256_andnot_si256(unused,
                                     _mm256_cmpgt_epi32(dwords256(1u << f8_e4m3_t::mantissa_bits), scale)));
            }
            const __m256i added = look_up_of_8(r.scale, _mm256_and_si256(most, seven)),
                          scales = _mm256_add_epi32(_mm256_srli_epi32(most, 3),
                                  _mm256_add_epi32(added, dwords256(uint32_t(r.offset))));
            store_scales(
                    to_scales + h * recode_lanes, _mm256_andnot_si256(_mm256_cmpeq_epi32(any, zero), scales));
            for (int b = 0; b < 2; b++) {
                const __m256i apart = _mm256_sub_epi32(_mm256_slli_epi32(scales, 3), exponents[b]),
                              less = _mm256_max_epi32(
                                      _mm256_add_epi32(apart, dwords256(uint32_t(r.base))), zero);
                const __m256i most_less = dwords256(8 * (recode_bytes_t::octaves - 1));
                store256(places[b] + h * recode_lanes,
                        _mm256_or_si256(mantissas[b], _mm256_min_epi32(less, most_less)));
            }
        }
        for (int b = 0; b < 2; b++)
            look_up_rows(r.entries[0], places[b], from + b * cell_bytes, to + b * cell_bytes, around);
        return bad;
    }
};

// ---- a tile of one panel ----

template <typename to_t>
bool recode_tile(const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int tile_rows, bool around) {
    alignas(64) uint8_t header[most_header_bytes] = {};
    const int header_bytes = recode_t::header_bytes(r.to, tile_rows);
    const uint8_t *codes = from + recode_t::header_bytes(r.from, tile_rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __m256i bad = _mm256_setzero_si256();
    for (int i = 0; i < tile_rows; i += from_rows, from += reorder_lines * to_t::from_blocks) {
        for (int b = 0; b < from_rows; b += to_t::rows, scales += reorder_lines) {
            bad = _mm256_or_si256(bad, to_t::recode(r, codes, from, out, scales, around));
            codes += to_t::rows * reorder_lines * to_t::from_bits / 8;
            out += to_t::rows * reorder_lines / 2;
        }
    }
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);
    return _mm256_testz_si256(bad, bad);
}

using recode_tile_t = bool (*)(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int rows, bool around);
template <bool is_integer>
recode_tile_t recode_tile_of(const block_format_t &to) {
    return to.block == from_rows ? recode_tile<to_e2m1_t<is_integer, from_rows>>
                                 : recode_tile<to_e2m1_t<is_integer, int(nvfp4_block)>>;
}

} // namespace

bool recode_bytes_of_panels_avx2(const recode_bytes_t &r, const uint8_t *from, int64_t from_panel,
        uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, write_t how) {
    const bool around = goes_around(how, to, to_panel);
    const recode_tile_t tile = r.from.scale_dt == mxdnn_f8_e4m3 ? recode_tile<nvfp4_to_mx_t>
                               : r.from.elem == mxdnn_f4_e2m1   ? recode_tile<mxfp4_to_nvfp4_t>
                               : r.from.elem == mxdnn_s8        ? recode_tile_of<true>(r.to)
                                                                : recode_tile_of<false>(r.to);
    return recode_each_panel(
            r, tile, prefetch_line, from, from_panel, to, to_panel, panels, rows, ahead, around);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
