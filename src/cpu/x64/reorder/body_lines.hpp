// SPDX-License-Identifier: Apache-2.0
// Lines of f32, bf16 or f16, four at a time: measure their blocks, and encode them once their scales are
// known.
#pragma once

#include "cpu/x64/reorder/body_families.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// Up to four lines of whole blocks. Blocks from `stored_blocks` on are padding. Lines 2 and 3 follow `apart`
// lines after lines 0 and 1.
struct four_lines_t {
    const uint8_t *src;
    const uint8_t *next; // lines to prefetch meanwhile
    int64_t line_bytes;
    int apart = 2;
    int lines, n, stored_blocks;
    uint8_t *scales, *zero_points; // those of the first block and line
    int params_pitch;
    uint8_t *codes; // one byte each, or half a byte
    int64_t pitch;
    bool nibbles;
    write_t how;

    int64_t offset(int l) const { return (l / 2 * apart + l % 2) * line_bytes; }
    template <typename raw_t>
    MXDNN_INLINE const raw_t *line(const four_lines_t &q, int l) {
        return reinterpret_cast<const raw_t *>(q.src + q.offset(l));
    }
};

// ---- measuring ----

template <size_t bytes>
MXDNN_INLINE void prefetch(const uint8_t *p) {
    for (size_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char *>(p + i), _MM_HINT_T0);
}
// The next lines are prefetched all the time: some while lines are measured, the others while they are
// encoded.
constexpr int fetched_by_encoders = 3;

// Calls body(i, v). v are eight vectors that block(x) makes of blocks i and i + 1 of four lines. Lines that
// do not exist are replaced by existing ones.
template <typename S, bool fetches, typename F, typename B>
MXDNN_INLINE void for_block_pairs(const four_lines_t &q, int block, F &&vector_of, B &&body) {
    constexpr int size = int(sizeof(typename S::raw_t));
    const int blocks = q.n / block;
    const typename S::raw_t *x[4];
    for (int l = 0; l < 4; l++) x[l] = four_lines_t::line<typename S::raw_t>(q, l < q.lines ? l : 0);
    // The second block is `apart` elements after the first.
    const auto measure = [&](int i, int64_t apart) __attribute__((always_inline)) {
        __m256i v[8];
        if (fetches)
            for (int l = fetched_by_encoders; l < 4; l++)
                for (int64_t k = 0; k < block + apart; k += 64 / size)
                    prefetch<64>(q.next + q.offset(l) + (int64_t(i) * block + k) * size);
        for (int j = 0; j < 8; j++) v[j] = vector_of(x[j & 3] + int64_t(i) * block + (j >> 2) * apart);
        body(i, v);
    };
    int i = 0;
    for (; i + 1 < blocks; i += 2) measure(i, block);
    if (i < blocks) measure(i, 0);
}

template <typename S>
MXDNN_INLINE void measure_amax_of(blocks_t &b, const four_lines_t &q, int block) {
    for_block_pairs<S, true>(
            q, block,
            [=](const typename S::raw_t *x) {
                __m256i m = S::template magnitudes<false>(x);
                for (int j = 16; j < block; j += 16) m = S::larger(m, S::template magnitudes<false>(x + j));
                return m;
            },
            [&](int i, const __m256i *v) { store256(b.amax + 4 * i, S::largest(v)); });
}

template <typename S>
void measure_amax(blocks_t &b, const four_lines_t &q, int block) {
    if (block == nvfp4_block) return measure_amax_of<S>(b, q, int(nvfp4_block));
    if (block == mx_block) return measure_amax_of<S>(b, q, int(mx_block));
    measure_amax_of<S>(b, q, block);
}

// For u4: how far a block reaches above 0, or below it.
template <typename S, bool negate>
MXDNN_INLINE void measure_reach_of(float *out, const four_lines_t &q, int block) {
    for_block_pairs<S, negate>(
            q, block,
            [=](const typename S::raw_t *x) {
                __m256i most = _mm256_setzero_si256();
                for (int j = 0; j < block; j += S::lanes)
                    most = S::larger_number(most, S::numbers(x + j, negate));
                return most;
            },
            [&](int i, const __m256i *v) { store256(out + 4 * i, S::largest(v)); });
}

template <typename S>
void measure_reach(blocks_t &b, const four_lines_t &q, int block) {
    const auto measure = [&](int n) {
        measure_reach_of<S, true>(b.below, q, n);
        measure_reach_of<S, false>(b.above, q, n);
    };
    constexpr int usual = 32; // a block that needs no loop
    block == usual ? measure(usual) : measure(block);
}

// NaN is above every number, on one side.
MXDNN_INLINE void reach_to_amax(blocks_t &b, int n) {
    for_blocks(n, [&](int i) { b.amax[i] = max_of(f32_bits(b.below[i]), f32_bits(b.above[i])); });
}

// For minima: the least and the greatest element.
template <typename S>
void measure_range(blocks_t &b, const four_lines_t &q, int block) {
    for (int l = 0; l < 4; l++) {
        const auto *x = four_lines_t::line<typename S::raw_t>(q, l < q.lines ? l : 0);
        for (int i = 0; i < q.n / block; i++, x += block) {
            f32x32_t y = S::load(x);
            __m256 least = y.v[0], most = y.v[0];
            __m256i magnitude = _mm256_setzero_si256();
            for (int j = 0; j < block; j += encode_step) {
                y = S::load(x + j);
                for (const __m256 &v : y.v) {
                    least = _mm256_min_ps(least, v);
                    most = _mm256_max_ps(most, v);
                    magnitude = _mm256_max_epu32(magnitude,
                            _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(int(magnitude_mask))));
                }
            }
            alignas(32) float lows[8], highs[8];
            alignas(32) uint32_t bits[8];
            store256(lows, _mm256_castps_si256(least));
            store256(highs, _mm256_castps_si256(most));
            store256(bits, magnitude);
            for (int j = 1; j < 8; j++) {
                lows[0] = min_of(lows[0], lows[j]);
                highs[0] = max_of(highs[0], highs[j]);
                bits[0] = max_of(bits[0], bits[j]);
            }
            b.below[4 * i + l] = lows[0];
            b.above[4 * i + l] = highs[0];
            b.amax[4 * i + l] = bits[0];
        }
    }
}

template <typename S>
__attribute__((noinline)) void measure(blocks_t &b, const four_lines_t &q, const block_format_t &f) {
    if (f.zp == zero_point_kind_t::minimum) return measure_range<S>(b, q, f.block);
    if (f.elem != mxdnn_u4) return measure_amax<S>(b, q, f.block);
    measure_reach<S>(b, q, f.block);
    reach_to_amax(b, q.n / f.block * 4);
}

// ---- encoding ----

// Blocks of one line that encode() cannot encode: one byte for each code, or half a byte.
template <typename S, typename F>
__attribute__((noinline)) void encode_specials(const four_lines_t &q, const blocks_t &b, int block, int line,
        const typename S::raw_t *x, uint8_t *codes) {
    alignas(32) uint8_t c[reorder_max_block];
    for (int i = 0; i < q.stored_blocks; i++, x += block) {
        if (!q.nibbles) {
            F::template encode_special<S>(x, b, 4 * i + line, block, codes + i * block);
            continue;
        }
        uint8_t *out = codes + i * block / 2;
        for (int j = 0; j < block; j++) c[j] = out[j / 2] >> (j % 2 * 4) & 15;
        F::template encode_special<S>(x, b, 4 * i + line, block, c);
        for (int j = 0; j < block; j += 2) out[j / 2] = uint8_t(c[j] | c[j + 1] << 4);
    }
}

template <typename S, typename F, bool any>
void encode(const four_lines_t &q, const block_format_t &f, const blocks_t &b, bool special) {
    using raw_t = typename S::raw_t;
    constexpr int line_bytes = encode_step * int(sizeof(raw_t));
    const bool around = goes_around(q.how, q.codes, q.pitch);
    constexpr int64_t usual = F::block; // 0 if it varies
    const int block = usual ? int(usual) : f.block, shift = bits_of_block(block);
    const int64_t n = q.n;
    for (int l = 0; l < q.lines; l++) {
        const raw_t *x = four_lines_t::line<raw_t>(q, l);
        const uint8_t *ahead = q.next + q.offset(l);
        uint8_t *c = q.codes + l * q.pitch;
        // `at` is that of the block of x[k] if blocks are alike. Other blocks have whole steps.
        const auto codes = [&](int64_t k, int64_t at) {
            if (l < fetched_by_encoders) prefetch<line_bytes>(ahead + k * int64_t(sizeof(raw_t)));
            const int64_t i = usual ? at : (k >> shift) * 4 + l;
            return F::template encode<S, any>(
                    x + k, line_params_of_t{b, i, usual && usual < encode_step ? i + 4 : i});
        };
        constexpr int64_t step = usual ? 4 * encode_step / usual : 0;
        int64_t at = l;
        if (q.nibbles)
            for (int64_t k = 0; k < n; k += 2 * encode_step, at += 2 * step) {
                const __m256i low = join_nibbles(codes(k, at)),
                              high = join_nibbles(codes(k + encode_step, at + step));
                write256(around, c + k / 2, F::template nibbles_in_order<S>(_mm256_packus_epi16(low, high)));
            }
        else
            for (int64_t k = 0; k < n; k += encode_step, at += step)
                write256(around, c + k, F::template in_order<S>(codes(k, at)));
        if (special) encode_specials<S, F>(q, b, block, l, x, c);
    }
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
