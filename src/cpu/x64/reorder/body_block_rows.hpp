// SPDX-License-Identifier: Apache-2.0
// Blocks that stand side by side: the rows of a block each of many lines.
#pragma once

#include <type_traits>

#include "cpu/x64/reorder/body_lines.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Rows of a block for each of up to reorder_max_lines lines, padded to a multiple of 32.
struct rows_t {
    const uint8_t *src;
    int64_t row_bytes;
    int rows, lines;
    uint8_t *codes;
    int64_t pitch;
    const uint8_t
            *next; // rows to prefetch meanwhile: each begins on another page, which hardware does not follow

    // Some are prefetched while rows are measured, most while they are encoded, which takes longer.
    static constexpr bool is_fetched_early(int row) { return row % 4 == 3; }
};

// To the second level: rows a power of two apart share so few sets of the first that it does not hold a
// block.
template <int bytes>
MXDNN_INLINE void fetch_row(const uint8_t *p) {
    for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char *>(p + i), _MM_HINT_T1);
}

// The reduction larger(previous, elements) over all rows of n vectors, from vector `first` on. Calls
// store(line, vector).
template <typename S, int n, bool fetches, typename F, typename T>
MXDNN_INLINE void largest_of_rows(const rows_t &q, int first, F &&larger, T &&store) {
    constexpr int bytes = int(sizeof(__m256i));
    __m256i most[n];
    for (int v = 0; v < n; v++) most[v] = _mm256_setzero_si256();
    const uint8_t *p = q.src + first * bytes;
    for (int r = 0; r < q.rows; r++, p += q.row_bytes) {
        if (fetches && rows_t::is_fetched_early(r))
            fetch_row<n * bytes>(q.next + first * bytes + r * q.row_bytes);
        for (int v = 0; v < n; v++) {
            most[v] = larger(most[v], reinterpret_cast<const typename S::raw_t *>(p + v * bytes));
            __asm__("" : "+x"(most[v])); // stays in its register
        }
    }
    for (int v = 0; v < n; v++) store((first + v) * S::lanes, most[v]);
}
template <typename S, bool fetches, typename F, typename T>
MXDNN_INLINE void largest_of_rows(const rows_t &q, F &&larger, T &&store) {
    constexpr int few = encode_step / S::lanes, many = 8; // as many as registers hold
    const int vectors = q.lines / S::lanes;
    int v = 0;
    for (; v + many <= vectors; v += many) largest_of_rows<S, many, fetches>(q, v, larger, store);
    for (; v < vectors; v += few) largest_of_rows<S, few, fetches>(q, v, larger, store);
}
template <typename S, typename T>
MXDNN_INLINE void largest_magnitudes_of_rows(const rows_t &q, T &&store) {
    largest_of_rows<S, true>(
            q,
            [](__m256i most, const typename S::raw_t *x) { return S::larger(most, S::lane_magnitudes(x)); },
            store);
}

template <typename S>
__attribute__((noinline)) void measure_rows(blocks_t &b, const rows_t &q, const block_format_t &f) {
    using raw_t = typename S::raw_t;
    if (f.elem != mxdnn_u4)
        return largest_magnitudes_of_rows<S>(q, [&](int l, __m256i v) { S::store_bits(b.amax + l, v); });
    const auto reach = [&](auto negative, float *out) {
        constexpr bool negate = decltype(negative)::value;
        largest_of_rows<S, negate>(
                q, [](__m256i most, const raw_t *x) { return S::larger_number(most, S::numbers(x, negate)); },
                [&](int l, __m256i v) { S::store_bits(reinterpret_cast<uint32_t *>(out) + l, v); });
    };
    reach(std::false_type(), b.above);
    reach(std::true_type(), b.below);
    reach_to_amax(b, q.lines);
}

// Parameters of lines, in the order in which encoders take them: those that the family of a format uses.
struct params_of_lines_t {
    alignas(32) uint16_t shifts[reorder_max_lines];
    alignas(32) float factors[reorder_max_lines], divisors[reorder_max_lines];
    alignas(32) int32_t wide_zero_points[reorder_max_lines];
    alignas(32) uint8_t zero_points[reorder_max_lines];

    template <typename S, typename F>
    static void fill(params_of_lines_t &p, const blocks_t &b, int lines) {
        constexpr bool is_affine = F::block == 0;
        if (F::by_shifts) {
            for (int l = 0; l < lines; l++) p.shifts[l] = uint16_t(b.shift[l]);
            return;
        }
        for (int l = 0; l < lines; l += encode_step) {
            F::template put_in_order<S>(b.factor + l, p.factors + l);
            if (!is_affine) continue;
            S::put_in_order(b.divisor + l, p.divisors + l);
            int32_t *const w = p.wide_zero_points + l;
            S::put_in_order(reinterpret_cast<const float *>(b.zp + l), reinterpret_cast<float *>(w));
            store256(p.zero_points + l,
                    pack_signed(load256(w), load256(w + 8), load256(w + 16), load256(w + 24)));
        }
    }
};
// Those of 32 of them.
struct lane_params_t {
    const params_of_lines_t &p;
    int l;

    __m256i shift(int v) const { return load256(p.shifts + l + 16 * v); }
    __m256 factor(int v) const { return _mm256_loadu_ps(p.factors + l + 8 * v); }
    __m256 divisor(int v) const { return _mm256_loadu_ps(p.divisors + l + 8 * v); }
    __m256 zero(int) const { return _mm256_setzero_ps(); }
    __m256i zero_point(int v) const { return load256(p.wide_zero_points + l + 8 * v); }
    __m256i zero_point_bytes() const { return load256(p.zero_points + l); }
};

// All rows of `lines` lines from `first` on, in a loop that has no variable but the row; of all lines, in a
// loop over these, if that is 0.
template <typename S, typename F, int lines>
MXDNN_INLINE void encode_rows(const rows_t &q, const params_of_lines_t &p, int first) {
    using raw_t = typename S::raw_t;
    constexpr int size = int(sizeof(raw_t));
    const uint8_t *x = q.src + first * size, *next = q.next + first * size;
    uint8_t *c = q.codes + first;
    const int64_t row_bytes = q.row_bytes, pitch = q.pitch;
    for (int r = 0; r < q.rows; r++, x += row_bytes, next += row_bytes, c += pitch) {
        const bool fetches = !rows_t::is_fetched_early(r);
        for (int l = 0; l < (lines ? lines : q.lines); l += encode_step) {
            if (fetches) fetch_row<encode_step * size>(next + l * size);
            __m256i v = F::template in_order<S>(F::template encode<S, false>(
                    reinterpret_cast<const raw_t *>(x) + l, lane_params_t{p, first + l}));
            // One after the other: registers do not suffice for more.
            __asm__ volatile("" : "+x"(v) : : "memory");
            store256(c + l, v);
        }
    }
}
template <typename S, typename F>
void encode_rows(const rows_t &q, const blocks_t &b) {
    params_of_lines_t p;
    params_of_lines_t::fill<S, F>(p, b, q.lines);
    // Unrolled, these gain nothing in cache and lose a tenth from memory.
    if (F::block == nvfp4_block) return encode_rows<S, F, 0>(q, p, 0);
    if (q.lines == reorder_max_lines) return encode_rows<S, F, reorder_max_lines>(q, p, 0);
    for (int l = 0; l < q.lines; l += encode_step) encode_rows<S, F, encode_step>(q, p, l);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
