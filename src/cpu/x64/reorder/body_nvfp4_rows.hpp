// SPDX-License-Identifier: Apache-2.0
// Rows of bf16 to NVFP4 without a global scale. Each element of a vector has another scale, so tables cannot
// be looked up by byte shuffles. But under every scale a half octave has the same bound: that of 0.75 times
// the scale, or 1.25, 2.5 and 5 times, or 1.75 and 3.5 times. The last positions before these are three bytes
// of a column, which depend on the mantissa of its scale only.
#pragma once

#include "cpu/x64/reorder/body_block_rows.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Tables by half octaves, and by the low bits of a scale, which are its mantissa and another one.
struct nvfp4_rows_tables_t {
    using bounds_t = e2m1_bounds_t;
    static constexpr int kinds = 3, interval = bounds_t::interval;
    static constexpr int of_code[bounds_t::codes] = {0, 0, 0, 1, 2, 1, 2, 1}; // the kind of a code's bound
    // Half octaves are counted from the number behind an eighth of the scale on: 0.25 times the scale is the
    // last number before one of them.
    static constexpr int first_of_scale = 1 - bounds_t::below * interval;
    // Added to a position, with saturation: those of half octaves of a kind lie side by side, those without a
    // bound are beyond all.
    static constexpr int8_t added[16] = {
            127, 127, 127, 127, -128, -64, 0, 64, 0, 64, 0, 127, 127, 127, 127, 127};
    // Less the number of kinds that are below.
    static constexpr int8_t code[16] = {-3, -3, -2, -2, 1, 1, 1, 1, 3, 3, 5, 4, 4, 4, 4, 4};
    int8_t last[kinds][16];

    constexpr nvfp4_rows_tables_t() : last() {
        for (int m = 0; m < 16; m++)
            for (int c = 2; c < bounds_t::codes; c++) {
                const int at = distance(m, c);
                last[of_code[c]][m] = int8_t(added[at / interval] + at % interval - 1);
            }
    }
    // Whether all numbers get their codes.
    constexpr bool suits() const {
        for (int m = 0; m < 16; m++)
            for (int d = 0, c = 0; d < (bounds_t::below + 6) * interval; d++) {
                while (c + 1 < bounds_t::codes && d >= distance(m, c + 1)) c++;
                const int sum = d % interval + added[d / interval], at = sum < 127 ? sum : 127;
                int found = code[d / interval];
                for (const auto &l : last) found += at > l[m];
                if (found != c) return false;
            }
        return true;
    }

private:
    static constexpr int distance(int m, int c) {
        const float scale = 1 + float(m % 8) / 8;
        return bounds_t::least(scale, c) - bounds_t::bits(scale) - first_of_scale;
    }
};
constexpr nvfp4_rows_tables_t nvfp4_rows_tables;
static_assert(nvfp4_rows_tables.suits());
MXDNN_INLINE __m256i table16(const int8_t *t) { return table16(reinterpret_cast<const uint8_t *>(t)); }

// What elements of up to reorder_max_lines columns are compared with. Bytes are in the order of packing.
struct nvfp4_columns_t {
    alignas(32) uint16_t first[reorder_max_lines];
    alignas(32) uint8_t last[nvfp4_rows_tables_t::kinds][reorder_max_lines];

    void set(int l, __m256i scales) {
        constexpr int shift = 7 - f8_e4m3_t::mantissa_bits; // from a scale to the bits of bf16
        constexpr int of_zero = ((127 - f8_e4m3_t::bias) << 7) + nvfp4_rows_tables_t::first_of_scale;
        const auto first_of = [](__m256i words) {
            return _mm256_add_epi16(_mm256_slli_epi16(words, shift), _mm256_set1_epi16(short(of_zero)));
        };
        const __m256i zero = _mm256_setzero_si256();
        store256(first + l, first_of(_mm256_unpacklo_epi8(scales, zero)));
        store256(first + l + 16, first_of(_mm256_unpackhi_epi8(scales, zero)));
        for (int k = 0; k < nvfp4_rows_tables_t::kinds; k++)
            store256(last[k] + l, _mm256_shuffle_epi8(table16(nvfp4_rows_tables.last[k]), scales));
    }
    // 32 elements.
    MXDNN_INLINE __m256i encode(const nvfp4_columns_t &q, const uint16_t *x, int l) {
        const __m256i a = load256(x), b = load256(x + 16);
        const e2m1_places_t p = e2m1_places(a, b, load256(q.first + l), load256(q.first + l + 16));
        const __m256i at = _mm256_adds_epi8(
                p.position, _mm256_shuffle_epi8(table16(nvfp4_rows_tables_t::added), p.interval));
        __m256i c = _mm256_shuffle_epi8(table16(nvfp4_rows_tables_t::code), p.interval);
        for (const auto &last : q.last) c = _mm256_sub_epi8(c, _mm256_cmpgt_epi8(at, load256(last + l)));
        return source_bf16_t::in_order(with_signs_e2m1(c, a, b));
    }
};

// All rows of `lines` lines, or of q.lines if that is 0.
template <int lines>
void encode_nvfp4_rows(const rows_t &q, const nvfp4_columns_t &columns) {
    const uint8_t *x = q.src, *next = q.next;
    uint8_t *codes = q.codes;
    const int64_t row_bytes = q.row_bytes, pitch = q.pitch;
    const int n = lines ? lines : q.lines;
    const auto row = [&](auto fetches) __attribute__((always_inline)) {
        for (int l = 0; l < n; l += encode_step) {
            if (decltype(fetches)::value) fetch_row<2 * encode_step>(next + 2 * l);
            __m256i v = nvfp4_columns_t::encode(columns, reinterpret_cast<const uint16_t *>(x) + l, l);
            __asm__ volatile("" : "+x"(v) : : "memory"); // one after the other
            store256(codes + l, v);
        }
    };
    for (int r = 0; r < q.rows; r++, x += row_bytes, next += row_bytes, codes += pitch)
        rows_t::is_fetched_early(r) ? row(std::false_type()) : row(std::true_type());
}

// The scales of `lines` blocks are stored. Whether there is a block whose scale has no bounds.
bool quantise_nvfp4_rows(const rows_t &q, uint8_t *scales, int lines) {
    alignas(32) uint16_t most[reorder_max_lines];
    alignas(32) uint8_t c[reorder_max_lines];
    largest_magnitudes_of_rows<source_bf16_t>(q, [&](int l, __m256i v) { store256(most + l, v); });
    nvfp4_columns_t columns;
    __m256i largest = _mm256_setzero_si256();
    for (int l = 0; l < q.lines; l += encode_step) {
        const __m256i s = nvfp4_scales_of(load256(most + l), load256(most + l + 16));
        largest = _mm256_max_epu8(largest, s);
        store256(c + l, source_bf16_t::in_order(s));
        columns.set(l, s);
    }
    __builtin_memcpy(scales, c, size_t(lines));
    q.lines == reorder_max_lines ? encode_nvfp4_rows<reorder_max_lines>(q, columns)
                                 : encode_nvfp4_rows<0>(q, columns);
    return nvfp4_is_beyond(largest);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
