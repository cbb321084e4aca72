// SPDX-License-Identifier: Apache-2.0
// Where the bits of codes stand in the words of the n64 layouts, and how they get there: masks and shifts,
// which come from the layout's map.
#pragma once

#include "common/layouts/layout_list.hpp"
#include "cpu/x64/reorder/body_simd.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

constexpr int n64_columns = 64, n64_pairs = n64_columns / 2;
constexpr int n64_step_bytes = 2048; // one 16-byte load of every thread
// The first column of a pair; the other one is 8 further.
constexpr int n64_column(int pair) { return pair / 8 * 16 + pair % 8; }

// ---- bits of a word ----

// Bits that move together: to the left or, with a negative shift, to the right.
struct bit_move_t {
    uint32_t mask = 0;
    int shift = 0;
};
struct bit_moves_t {
    bit_move_t move[32] = {};
    int n = 0;

    constexpr void add(int from, int to) {
        const uint32_t bit = 1u << from;
        for (int i = 0; i < n; i++)
            if (move[i].shift == to - from) {
                move[i].mask |= bit;
                return;
            }
        move[n++] = {bit, to - from};
    }
    constexpr bit_moves_t back() const {
        bit_moves_t b;
        b.n = n;
        for (int i = 0; i < n; i++) {
            const int s = move[i].shift;
            b.move[i] = {s < 0 ? move[i].mask >> -s : move[i].mask << s, -s};
        }
        return b;
    }
};

// The position of bit b of the code of (k, n) in the first thread's words, in bits from its first byte of a
// plane.
template <typename L>
constexpr int n64_bit(int64_t k, int64_t n, int b, int64_t plane = 0) {
    packed_shape_t s;
    s.K = s.N = n64_columns;
    s.block = 64;
    s.bits = L::bits;
    const bit_pos_t p = L::elem_bit(s, k, n, b);
    return int(p.byte - L::codes(s, 0, 0) - plane) * 8 + p.bit;
}

// Whether a thread has four neighbours of sixteen rows, not two pairs eight rows apart.
template <typename L>
constexpr bool n64_neighbours = L::id == n64_f4_t::id;
// Row i of thread t: two of the first register pair (i = 0, 1), two of the second.
template <typename L>
constexpr int n64_row(int t, int i) {
    return n64_neighbours<L> ? 4 * t + i % 2 * 2 + i / 2 : 2 * t + i % 2 + i / 2 * 8;
}

// Whether, in a byte of both columns of a pair, the second one comes first in the first eight of 16 rows.
// Words of n64_b6 have it so.
template <typename L>
constexpr bool n64_swaps = L::id == n64_b6_t::id;
// From 4-bit codes: register r of the low halves is at bit 4 r, that of the high halves at 16 + 4 r, except
// that registers 0 and 1 may be swapped.
template <typename L>
constexpr bit_moves_t n64_low_moves() {
    bit_moves_t m;
    for (int half = 0; half < 2; half++)
        for (int r = 0; r < 4; r++)
            for (int b = 0; b < 4; b++)
                m.add(16 * half + 4 * (n64_swaps<L> && r < 2 ? r ^ 1 : r) + b,
                        n64_bit<L>(n64_row<L>(0, r / 2 * 2 + half), r % 2 * 8, b));
    return m;
}
// From the top two bits of 6-bit codes. A byte has those of four registers. The bytes of the first and the
// second 16 rows are in the low half, then in the high half. Even bits move 8 to the left, odd ones 14,
// around the word. So words are turned by a byte first, and odd bits by 6.
constexpr bool are_turned_tops() {
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++)
            for (int r = 0; r < 4; r++)
                for (int b = 0; b < 2; b++) {
                    const int from = 16 * half + 8 * i + 2 * r + b,
                              to = n64_bit<n64_b6_t>(
                                      16 * i + r / 2 * 8 + half, r % 2 * 8, 4 + b, n64_step_bytes);
                    if (to != (from + (b ? 14 : 8)) % 32) return false;
                }
    return true;
}
static_assert(are_turned_tops());
MXDNN_INLINE __m256i odd_bits_of(__m256i even, __m256i odd) {
    const __m256i evens = _mm256_set1_epi8(0x55);
    return _mm256_or_si256(_mm256_and_si256(even, evens), _mm256_andnot_si256(evens, odd));
}
// From words that were turned to the left by a byte; and back to such words.
MXDNN_INLINE __m256i n64_tops(__m256i v) {
    return odd_bits_of(v, _mm256_or_si256(_mm256_slli_epi32(v, 6), _mm256_srli_epi32(v, 26)));
}
MXDNN_INLINE __m256i n64_tops_back(__m256i v) {
    return odd_bits_of(v, _mm256_or_si256(_mm256_srli_epi32(v, 6), _mm256_slli_epi32(v, 26)));
}

// The moves of a layout, for words of four bits per code.
template <typename L>
struct n64_words_t {
    static constexpr bit_moves_t low = n64_low_moves<L>(), low_back = low.back();
};

template <const bit_moves_t &m, int i>
MXDNN_INLINE __m256i moved_bits(__m256i v) {
    constexpr uint32_t mask = m.move[i].mask;
    constexpr int shift = m.move[i].shift;
    const __m256i x = mask == ~0u ? v : _mm256_and_si256(v, _mm256_set1_epi32(int(mask)));
    if constexpr (shift < 0)
        return _mm256_srli_epi32(x, -shift);
    else if constexpr (shift > 0)
        return _mm256_slli_epi32(x, shift);
    else
        return x;
}
template <const bit_moves_t &m, int i = 0>
MXDNN_INLINE __m256i move_bits(__m256i v) {
    if constexpr (i + 1 == m.n)
        return moved_bits<m, i>(v);
    else
        return _mm256_or_si256(moved_bits<m, i>(v), move_bits<m, i + 1>(v));
}

// ---- the words of n64_b4 ----

// A byte that stands in a word twice is moved to two places by one shift. So three orders of the word's bytes
// and shifts by 2, 4 and -4 do what needs seven moves otherwise. A byte has the codes of registers 0 and 1,
// or of 2 and 3: those of the low half, then those of the high half.
struct n64_b4_steps_t {
    static constexpr int orders = 3, steps = 5;
    static constexpr int byte[orders][4] = {{2, 0, 0, 2}, {3, 1, 1, 3}, {1, 1, 3, 3}};
    static constexpr int order[steps] = {0, 1, 2, 0, 0}, shift[steps] = {-2, -2, 0, 4, -4};
    uint32_t mask[steps]; // before the shift
    int moved;            // bits

    constexpr n64_b4_steps_t() : mask(), moved() {
        uint32_t done = 0;
        for (int s = 0; s < steps; s++)
            for (int at = 0; at < 32; at++) {
                const int from = byte[order[s]][at / 8] * 8 + at % 8, to = at + shift[s];
                if (to < 0 || to > 31 || done >> from & 1 || target(from) != to) continue;
                mask[s] |= 1u << at;
                done |= 1u << from;
                moved++;
            }
    }
    static constexpr int target(int from) {
        const bit_moves_t m = n64_low_moves<n64_b4_t>();
        for (int i = 0; i < m.n; i++)
            if (m.move[i].mask >> from & 1) return from + m.move[i].shift;
        return -1;
    }
    // Order k of bytes that make words in the order `first`.
    struct order_t {
        alignas(16) int8_t index[16];
    };
    static constexpr order_t of(int k, const int (&first)[16]) {
        order_t o = {};
        for (int i = 0; i < 16; i++) o.index[i] = int8_t(first[i / 4 * 4 + byte[k][i % 4]]);
        return o;
    }
};

// `first` is the order in which bytes of v make words.
template <const int (&first)[16]>
MXDNN_INLINE __m256i n64_b4_words(__m256i v) {
    static constexpr n64_b4_steps_t steps;
    static_assert(steps.moved == 32);
    static constexpr n64_b4_steps_t::order_t orders[3] = {
            n64_b4_steps_t::of(0, first), n64_b4_steps_t::of(1, first), n64_b4_steps_t::of(2, first)};
    const auto ordered = [&](int k) {
        return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(load128(orders[k].index)));
    };
    const auto some = [&](__m256i x, int s) {
        return _mm256_and_si256(x, _mm256_set1_epi32(int(steps.mask[s])));
    };
    const __m256i x = ordered(0), y = ordered(1), z = ordered(2);
    const __m256i right = _mm256_srli_epi32(_mm256_or_si256(some(x, 0), some(y, 1)), 2),
                  signs = _mm256_or_si256(_mm256_slli_epi32(some(x, 3), 4), _mm256_srli_epi32(some(x, 4), 4));
    return _mm256_or_si256(_mm256_or_si256(right, some(z, 2)), signs);
}
constexpr int words_of_rows[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15},
              words_in_place[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
