// SPDX-License-Identifier: Apache-2.0
// Blocks that stand side by side: the rows of a block each of many lines.
#pragma once

#include "cpu/x64/reorder/body_lines.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

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

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
