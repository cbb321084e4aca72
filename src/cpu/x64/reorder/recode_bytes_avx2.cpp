// SPDX-License-Identifier: Apache-2.0
// Codes of 8 bits to f4_e2m1, eight columns at a time.
#include "cpu/x64/reorder/recode_bytes.hpp"

// Of what the headers have, some functions are used.
#pragma GCC diagnostic ignored "-Wunused-function"
#include "cpu/x64/reorder/body_ahead.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int from_rows = mx_block; // of a block
constexpr int vector_rows = 4;      // of a vector of n16_b8, and twice as many of n16_b4
constexpr int half_columns = reorder_lines / 2, half_bytes = 32; // of a vector, each half of the columns
constexpr int most_header_bytes = recode_t::most_rows / int(nvfp4_block) * reorder_lines;
// With these scales values are far from the ends of f32.
constexpr uint32_t least_scale = 27, greatest_scale = 227;

MXDNN_INLINE __m256i dwords(uint32_t x) { return _mm256_set1_epi32(int(x)); }
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

// Eight columns under their new scales.
struct columns_t {
    __m256i reached[recode_bytes_t::steps]; // in every byte of a column: codes grow beyond these magnitudes
    __m256i bad;                            // all ones: there is no rule

    // Stores the scales.
    MXDNN_INLINE columns_t of(
            const recode_bytes_t &r, __m256i largest, __m256i from_scales, uint8_t *to_scales) {
        const __m256i is_zero = _mm256_cmpeq_epi32(largest, _mm256_setzero_si256());
        __m256i at = _mm256_and_si256(largest, dwords(recode_bytes_t::magnitudes - 1));
        entries_t e(r, at);
        const __m256i units = _mm256_mullo_epi32(from_scales, dwords(uint32_t(r.unit))),
                      added = _mm256_add_epi32(_mm256_srli_epi32(e.v[1], 24), dwords(uint32_t(r.offset))),
                      scales = _mm256_add_epi32(units, added);
        // Those have the least scale because theirs would be smaller.
        const __m256i below =
                _mm256_andnot_si256(is_zero, _mm256_cmpgt_epi32(dwords(uint32_t(r.least)), scales));
        if (!_mm256_testz_si256(below, below)) {
            constexpr uint32_t first = 127 - recode_bytes_t::scales_below, n = recode_bytes_t::scales;
            const __m256i place = _mm256_min_epi32(
                    _mm256_max_epi32(_mm256_sub_epi32(from_scales, dwords(first)), _mm256_setzero_si256()),
                    dwords(n - 1));
            at = _mm256_blendv_epi8(at, _mm256_add_epi32(place, dwords(recode_bytes_t::magnitudes)), below);
            e = entries_t(r, at);
        }
        columns_t c;
        for (int i = 0; i < recode_bytes_t::steps; i++) {
            const __m128i columns = _mm_setr_epi8(0, 0, 4, 4, 8, 8, 12, 12, 0, 0, 4, 4, 8, 8, 12, 12);
            c.reached[i] = _mm256_shuffle_epi8(
                    e.v[i / 4], _mm256_add_epi8(_mm256_set1_epi8(char(i % 4)), in_both_lanes(columns)));
        }
        const auto outside = [](__m256i v, uint32_t least, uint32_t greatest) {
            return _mm256_or_si256(
                    _mm256_cmpgt_epi32(dwords(least), v), _mm256_cmpgt_epi32(v, dwords(greatest)));
        };
        c.bad = _mm256_or_si256(outside(from_scales, least_scale, greatest_scale),
                _mm256_cmpgt_epi32(scales, dwords(uint32_t(r.greatest))));
        c.bad = _mm256_or_si256(c.bad, _mm256_cmpgt_epi32(largest, dwords(r.most)));
        c.bad = _mm256_or_si256(
                _mm256_andnot_si256(is_zero, c.bad), _mm256_cmpeq_epi32(from_scales, dwords(e8m0_poison)));
        const __m256i v =
                _mm256_blendv_epi8(scales, dwords(uint32_t(r.least)), _mm256_or_si256(is_zero, below));
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i *>(to_scales), _mm_packus_epi16(words, words));
        return c;
    }
    MXDNN_INLINE __m256i codes(const columns_t &c, __m256i magnitudes, __m256i v) {
        __m256i less = _mm256_cmpgt_epi8(magnitudes, c.reached[0]); // each is -1
        for (int i = 1; i < recode_bytes_t::steps; i++)
            less = _mm256_add_epi8(less, _mm256_cmpgt_epi8(magnitudes, c.reached[i]));
        return _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(8)), less);
    }

private:
    // Those of eight places in the table.
    struct entries_t {
        __m256i v[2];
        entries_t(const recode_bytes_t &r, __m256i at) {
            const int *const table = reinterpret_cast<const int *>(r.entries);
            v[0] = _mm256_i32gather_epi32(table, at, 8);
            v[1] = _mm256_i32gather_epi32(table + 1, at, 8);
        }
    };
};

// Eight rows of n16_b4 from codes in the order of n16_b8.
MXDNN_INLINE __m256i nibbles(__m256i first, __m256i second) {
    const __m256i low = _mm256_unpacklo_epi64(first, second), high = _mm256_unpackhi_epi64(first, second);
    return _mm256_shuffle_epi8(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)),
            in_both_lanes(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)));
}

// A new block of `rows` rows. All ones are columns without a rule.
template <bool is_integer, int rows>
MXDNN_INLINE __m256i recode_block(const recode_bytes_t &r, const uint8_t *from, const uint8_t *from_scales,
        uint8_t *to, uint8_t *to_scales, bool around) {
    constexpr int vectors = rows / vector_rows;
    __m256i out[2][vectors / 2], bad = _mm256_setzero_si256();
    for (int h = 0; h < 2; h++) {
        const uint8_t *const codes = from + h * half_bytes;
        const __m256i largest = largest_of_columns<is_integer, rows>(codes);
        const __m256i old = _mm256_cvtepu8_epi32(
                _mm_loadl_epi64(reinterpret_cast<const __m128i *>(from_scales + h * half_columns)));
        const columns_t c = columns_t::of(r, largest, old, to_scales + h * half_columns);
        bad = _mm256_or_si256(bad, c.bad);
        const auto codes_of = [&](int i) {
            const __m256i v = load256(codes + 64 * i);
            return columns_t::codes(c, magnitudes<is_integer>(v), v);
        };
        for (int i = 0; i < vectors / 2; i++) out[h][i] = nibbles(codes_of(2 * i), codes_of(2 * i + 1));
    }
    for (int i = 0; i < vectors / 2; i++)
        for (int h = 0; h < 2; h++) write256(around, to + 64 * i + h * half_bytes, out[h][i]);
    return bad;
}

template <bool is_integer, int block_rows>
bool recode_tile(const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int rows, bool around) {
    alignas(64) uint8_t header[most_header_bytes] = {};
    const int header_bytes = recode_t::header_bytes(r.to, rows);
    const uint8_t *codes = from + recode_t::header_bytes(r.from, rows);
    uint8_t *out = to + header_bytes, *scales = header;
    __m256i bad = _mm256_setzero_si256();
    for (int row = 0; row < rows; row += block_rows, scales += reorder_lines) {
        bad = _mm256_or_si256(bad, recode_block<is_integer, block_rows>(r, codes,
                                           from + row / from_rows * reorder_lines, out, scales, around));
        codes += block_rows * reorder_lines;
        out += block_rows * reorder_lines / 2;
    }
    for (int i = 0; i < header_bytes; i += 64) write_line(around, to + i, header + i);
    return _mm256_testz_si256(bad, bad);
}

using recode_tile_t = bool (*)(
        const recode_bytes_t &r, const uint8_t *from, uint8_t *to, int rows, bool around);
template <bool is_integer>
recode_tile_t recode_tile_of(const block_format_t &to) {
    return to.block == from_rows ? recode_tile<is_integer, from_rows>
                                 : recode_tile<is_integer, int(nvfp4_block)>;
}

} // namespace

bool recode_bytes_of_panels_avx2(const recode_bytes_t &r, const uint8_t *from, int64_t from_panel,
        uint8_t *to, int64_t to_panel, int panels, int rows, int64_t ahead, write_t how) {
    const bool around = goes_around(how, to, to_panel);
    const recode_tile_t tile =
            r.from.elem == mxdnn_s8 ? recode_tile_of<true>(r.to) : recode_tile_of<false>(r.to);
    const int bytes = recode_t::header_bytes(r.from, rows) + rows * reorder_lines;
    for (int p = 0; p < panels; p++, from += from_panel, to += to_panel) {
        for (int i = 0; i < bytes; i += 64) prefetch_line(from + ahead + i);
        if (!tile(r, from, to, rows, around)) return false;
    }
    return true;
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
