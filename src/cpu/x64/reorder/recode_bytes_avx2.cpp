// SPDX-License-Identifier: Apache-2.0
// Packed formats to others, eight columns in a vector of AVX2. Here: codes of 6 and 8 bits to f4_e2m1.
#include "cpu/x64/reorder/recode_bytes.hpp"

// Of what the headers have, some functions are used.
#pragma GCC diagnostic ignored "-Wunused-function"
#include "cpu/x64/reorder/body_recode_int4.hpp"
#include "cpu/x64/reorder/body_recode_to_int4.hpp"
#include "cpu/x64/reorder/body_recode_to_mx.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

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

// Kernels of a few rows of a panel, whole blocks on both sides. All ones are columns without a rule.

// To f4_e2m1 in blocks of so many rows.
template <bool is_integer, int block_rows>
struct to_e2m1_t {
    static constexpr int rows = block_rows, bits = 4, from_bits = 8, from_blocks = 1;

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
            out += to_t::rows * reorder_lines * to_t::bits / 8;
        }
    }
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);
    return _mm256_testz_si256(bad, bad);
}

using recode_tile_t = bool (*)(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int rows, bool around);
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

recode_tile_t recode_tile_of_int4_to(const block_format_t &to) {
    constexpr signs_t bit = signs_t::of_number;
    if (to.scale_dt == mxdnn_f8_e4m3) return recode_tile_of_int4<4, bit, int(nvfp4_block)>;
    if (to.elem == mxdnn_s8) return recode_tile_of_int4<8, signs_t::number_of_number, from_rows>;
    const int bits = data_type_info(to.elem)->bits;
    return bits == 4   ? recode_tile_of_int4<4, bit, from_rows>
           : bits == 6 ? recode_tile_of_int4<6, bit, from_rows>
                       : recode_tile_of_int4<8, bit, from_rows>;
}
recode_tile_t recode_tile_of_f4(const block_format_t &from, const block_format_t &to) {
    const bool is_mx = from.scale_dt == mxdnn_e8m0;
    if (to.elem == mxdnn_s4) return is_mx ? recode_tile_f4_to_int4<true> : recode_tile_f4_to_int4<false>;
    if (is_mx) return recode_tile<mxfp4_to_nvfp4_t>;
    if (to.elem == mxdnn_s8) return recode_tile<nvfp4_to_mx_t<8, signs_t::number>>;
    const int bits = data_type_info(to.elem)->bits;
    return bits == 4   ? recode_tile<nvfp4_to_mx_t<4, signs_t::bit>>
           : bits == 6 ? recode_tile<nvfp4_to_mx_t<6, signs_t::bit>>
                       : recode_tile<nvfp4_to_mx_t<8, signs_t::bit>>;
}

} // namespace

bool recode_bytes_of_panels_avx2(const recode_bytes_t &r, const uint8_t *from, int64_t from_panel,
        uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, write_t how) {
    const bool around = goes_around(how, to, to_panel);
    const recode_tile_t tile = r.from.elem == mxdnn_s4        ? recode_tile_of_int4_to(r.to)
                               : r.from.elem == mxdnn_f4_e2m1 ? recode_tile_of_f4(r.from, r.to)
                               : r.from.elem == mxdnn_s8      ? recode_tile_of<true>(r.to)
                                                              : recode_tile_of<false>(r.to);
    return recode_each_panel(
            r, tile, prefetch_line, from, from_panel, to, to_panel, panels, rows, ahead, around);
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
