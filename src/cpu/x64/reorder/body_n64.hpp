// SPDX-License-Identifier: Apache-2.0
// Codes of 64 columns to and from the steps of the n64 layouts. Sixteen rows of two columns, c and c + 8, are
// four words of the four threads that own them, 64 bytes side by side. body_n64_bits.hpp says where bits
// stand in them.
#pragma once

#include "cpu/x64/reorder/body_ahead.hpp"
#include "cpu/x64/reorder/body_n16.hpp"
#include "cpu/x64/reorder/body_n64_bits.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {
namespace {

// ---- bytes with the codes of both columns of a pair ----

MXDNN_INLINE __m256i low_nibbles(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
MXDNN_INLINE __m256i high_nibbles(__m256i v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }
// Exchanges the high half of each byte of a with the low half of that of b.
MXDNN_INLINE void exchange_halves(__m256i &a, __m256i &b) {
    const __m256i changes = low_nibbles(_mm256_xor_si256(_mm256_srli_epi16(a, 4), b));
    a = _mm256_xor_si256(a, _mm256_slli_epi16(changes, 4));
    b = _mm256_xor_si256(b, changes);
}
// The low half of each byte of a, with that of b above it.
MXDNN_INLINE __m256i joined(__m256i a, __m256i b) {
    return _mm256_or_si256(
            low_nibbles(a), _mm256_andnot_si256(_mm256_set1_epi8(15), _mm256_slli_epi16(b, 4)));
}
// The high half of each byte of b, with that of a below it.
MXDNN_INLINE __m256i joined_high(__m256i a, __m256i b) {
    return _mm256_or_si256(high_nibbles(a), _mm256_andnot_si256(_mm256_set1_epi8(15), b));
}
// Bits 4 and 5 of a, and those of b two bits higher.
MXDNN_INLINE __m256i joined_tops(__m256i a, __m256i b) {
    const __m256i top = _mm256_set1_epi8(0x30);
    return _mm256_or_si256(_mm256_and_si256(a, top), _mm256_slli_epi16(_mm256_and_si256(b, top), 2));
}
MXDNN_INLINE __m256i shuffle_lanes(__m256i v, __m128i order) {
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order));
}
// The low bytes of words of a, then of b; and the high bytes.
MXDNN_INLINE __m256i low_bytes(__m256i a, __m256i b) {
    const __m256i low = _mm256_set1_epi16(0xff);
    return _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
}
MXDNN_INLINE __m256i high_bytes(__m256i a, __m256i b) {
    return _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
}

// ---- pairs of columns as lines ----

// For a pair and 64 rows: the first vector has rows 0..15 and 32..47 in its lanes, the second one 16..31 and
// 48..63.
struct two_rows_t {
    __m256i v[2];
};

// A byte of both columns for each row, from codes a and b of them, and back. In each lane of `first` rows are
// the first eight of 16.
template <typename L, int first>
MXDNN_INLINE __m256i joined_rows(__m256i a, __m256i b) {
    if constexpr (!n64_swaps<L>) return joined(a, b);
    return joined(_mm256_blend_epi32(a, b, first), _mm256_blend_epi32(b, a, first));
}
constexpr int first_in_lane = 0x33, first_lane = 0x0f;

// One byte of both columns for each row becomes the words of four threads, and back. In words, bytes of
// thread t are those of rows 2 t, 2 t + 8, 2 t + 1, 2 t + 9, unless they are neighbours.
template <typename L>
MXDNN_INLINE void store_words_of(__m256i a, __m256i b, uint8_t *out, bool around) {
    write256(around, out, _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(a, b), 0xd8));
    write256(around, out + 32, _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(a, b), 0xd8));
}
template <typename L>
MXDNN_INLINE void store_words(const two_rows_t &bytes, uint8_t *out, bool around) {
    const __m128i order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    const auto words = [&](__m256i v) {
        if constexpr (L::id == n64_b4_t::id) return n64_b4_words<words_of_rows>(v);
        return move_bits<n64_words_t<L>::low>(n64_neighbours<L> ? v : shuffle_lanes(v, order));
    };
    store_words_of<L>(words(bytes.v[0]), words(bytes.v[1]), out, around);
}
// From bytes in the order of words.
template <typename L>
MXDNN_INLINE __m256i words_from(__m256i v) {
    if constexpr (L::id == n64_b4_t::id) return n64_b4_words<words_in_place>(v);
    return move_bits<n64_words_t<L>::low>(v);
}
template <typename L>
MXDNN_INLINE two_rows_t load_words(const uint8_t *in) {
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m256 low = _mm256_castsi256_ps(_mm256_permute4x64_epi64(load256(in), 0xd8)),
                 high = _mm256_castsi256_ps(_mm256_permute4x64_epi64(load256(in + 32), 0xd8));
    const auto rows = [&](__m256 words) {
        const __m256i v = move_bits<n64_words_t<L>::low_back>(_mm256_castps_si256(words));
        return n64_neighbours<L> ? v : shuffle_lanes(v, order);
    };
    return {{rows(_mm256_shuffle_ps(low, high, 0x88)), rows(_mm256_shuffle_ps(low, high, 0xdd))}};
}

// The top bits of both columns become the words of four threads, and back. For each row there is a byte,
// which has both in its upper half. `first` has the first eight of each 16 rows, the two of 32 rows in each
// lane, `last` the others.
MXDNN_INLINE void store_tops(__m256i first, __m256i last, uint8_t *out, bool around) {
    const __m256i registers = _mm256_or_si256(_mm256_srli_epi16(first, 4), last);
    const __m128i order = _mm_setr_epi8(9, 0, 8, 1, 11, 2, 10, 3, 13, 4, 12, 5, 15, 6, 14, 7);
    write256(around, out, interleave_dwords(n64_tops(shuffle_lanes(registers, order))));
}
MXDNN_INLINE void store_tops(const two_rows_t &bytes, uint8_t *out, bool around) {
    store_tops(_mm256_unpacklo_epi64(bytes.v[0], bytes.v[1]), _mm256_unpackhi_epi64(bytes.v[0], bytes.v[1]),
            out, around);
}
// Their bits 0 and 1, and 2 and 3. Other bits may have any value.
MXDNN_INLINE two_rows_t load_tops(const uint8_t *in) {
    const __m256i apart = _mm256_permutevar8x32_epi32(load256(in), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    const __m128i order = _mm_setr_epi8(1, 3, 5, 7, 9, 11, 13, 15, 2, 0, 6, 4, 10, 8, 14, 12);
    const __m256i v = shuffle_lanes(n64_tops_back(apart), order), high = _mm256_srli_epi16(v, 4);
    return {{_mm256_unpacklo_epi64(v, high), _mm256_unpackhi_epi64(v, high)}};
}

// 64 rows of a column. Lanes are as in two_rows_t.
MXDNN_INLINE two_rows_t load_column(const uint8_t *codes) {
    return {{load_halves(codes, codes + 32), load_halves(codes + 16, codes + 48)}};
}
MXDNN_INLINE void store_column(const two_rows_t &c, uint8_t *codes) {
    store256(codes, _mm256_permute2x128_si256(c.v[0], c.v[1], 0x20));
    store256(codes + 32, _mm256_permute2x128_si256(c.v[0], c.v[1], 0x31));
}

template <typename L>
MXDNN_INLINE void pack_pair(const uint8_t *a, const uint8_t *b, uint8_t *step, int pair, bool around) {
    uint8_t *const out = step + 64 * pair;
    if constexpr (L::bits == 8) {
        const __m256i x = load256(a), y = load256(b);
        const __m256i low = _mm256_unpacklo_epi8(x, y), high = _mm256_unpackhi_epi8(x, y);
        write256(around, out, _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(low, high), 0xd8));
        write256(around, out + 32, _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(low, high), 0xd8));
    } else {
        const two_rows_t x = load_column(a), y = load_column(b);
        const auto both = [&](int i) { return joined_rows<L, first_in_lane>(x.v[i], y.v[i]); };
        store_words<L>({{both(0), both(1)}}, out, around);
        if constexpr (L::bits == 6)
            store_tops({{joined_tops(x.v[0], y.v[0]), joined_tops(x.v[1], y.v[1])}},
                    step + n64_step_bytes + 32 * pair, around);
    }
}
template <typename L>
MXDNN_INLINE void unpack_pair(const uint8_t *step, int pair, uint8_t *a, uint8_t *b) {
    const uint8_t *const in = step + 64 * pair;
    if constexpr (L::bits == 8) {
        const __m256 x = _mm256_castsi256_ps(_mm256_permute4x64_epi64(load256(in), 0xd8)),
                     y = _mm256_castsi256_ps(_mm256_permute4x64_epi64(load256(in + 32), 0xd8));
        const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88)),
                      high = _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd));
        store256(a, low_bytes(low, high));
        store256(b, high_bytes(low, high));
    } else {
        const two_rows_t w = load_words<L>(in);
        two_rows_t x, y;
        for (int i = 0; i < 2; i++) {
            const __m256i low = low_nibbles(w.v[i]), high = high_nibbles(w.v[i]);
            x.v[i] = n64_swaps<L> ? _mm256_blend_epi32(low, high, first_in_lane) : low;
            y.v[i] = n64_swaps<L> ? _mm256_blend_epi32(high, low, first_in_lane) : high;
        }
        if constexpr (L::bits == 6) {
            const two_rows_t t = load_tops(step + n64_step_bytes + 32 * pair);
            const __m256i top = _mm256_set1_epi8(0x30);
            for (int i = 0; i < 2; i++) {
                x.v[i] = _mm256_or_si256(x.v[i], _mm256_and_si256(_mm256_slli_epi16(t.v[i], 4), top));
                y.v[i] = _mm256_or_si256(y.v[i], _mm256_and_si256(_mm256_slli_epi16(t.v[i], 2), top));
            }
        }
        store_column(x, a);
        store_column(y, b);
    }
}

constexpr int n64_rows(int bits) { return bits == 8 ? 32 : 64; } // of a step
constexpr int n64_bytes(int bits) { return n64_rows(bits) * n64_columns * bits / 8; }

// Calls body(row, step) for the steps of some tiles.
template <typename L, typename F>
MXDNN_INLINE void for_n64_steps(const code_tiles_t &t, F &&body) {
    const int64_t gap = t.tile_bytes - t.tile_rows / n64_rows(L::bits) * n64_bytes(L::bits);
    uint8_t *step = t.codes;
    int left = t.tile_rows; // of the tile; one loop, since most tiles are one step
    for (int r = 0; r < t.rows; r += n64_rows(L::bits), step += n64_bytes(L::bits)) {
        if (left == 0) {
            step += gap;
            left = t.tile_rows;
        }
        left -= n64_rows(L::bits);
        body(r, step);
    }
}

MXDNN_INLINE void fetch_lines(const uint8_t *a, const uint8_t *b) {
    _mm_prefetch(reinterpret_cast<const char *>(a), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char *>(b), _MM_HINT_T1);
}
// Calls body(column, column in the pair, step, pair) for pairs of columns of codes. A byte has `per_byte`
// codes. For lines in memory, two pairs go through all steps, so that lines are read in runs of whole cache
// lines. A step is written in whole cache lines, too; the top bits of two pairs are one of them. Lines in
// cache are not prefetched, and go step by step, with constants in registers.
template <typename L, int per_byte, typename F>
MXDNN_INLINE void pack_pairs(
        const uint8_t *codes, int64_t pitch, const code_tiles_t &to, int64_t ahead, F &&body) {
    const auto column = [&](int p) { return codes + n64_column(p) * pitch; };
    if (!ahead)
        return for_n64_steps<L>(to, [&](int r, uint8_t *step) {
            for (int p = 0; p < n64_pairs; p += 8) {
                const uint8_t *a = column(p) + r / per_byte, *b = a + 8 * pitch;
                for (int i = 0; i < 8; i++, a += pitch, b += pitch) body(a, b, step, p + i);
            }
        });
    for (int p = 0; p < n64_pairs; p += 2) {
        const uint8_t *const a = column(p), *const b = a + 8 * pitch, *const next_a = column(p + 1),
                             *const next_b = next_a + 8 * pitch;
        for_n64_steps<L>(to, [&](int r, uint8_t *step) {
            const int64_t at = r / per_byte, then = at + ahead;
            fetch_lines(a + then, b + then);
            fetch_lines(next_a + then, next_b + then);
            body(a + at, b + at, step, p);
            body(next_a + at, next_b + at, step, p + 1);
        });
    }
}

template <typename L>
void n64_pack(const uint8_t *codes, int64_t pitch, const code_tiles_t &to, int64_t ahead, write_t how) {
    const bool around = goes_around(how, to.codes);
    pack_pairs<L, 1>(codes, pitch, to, ahead, [&](const uint8_t *a, const uint8_t *b, uint8_t *step, int p) {
        pack_pair<L>(a, b, step, p, around);
    });
}
// The words of a pair in a later step. Without one these are being read anyway.
template <typename L>
MXDNN_INLINE void fetch_words(const uint8_t *step, int64_t ahead, int pair) {
    prefetch_line(step + ahead + 64 * pair);
    if (L::bits == 6 && pair % 2 == 0) prefetch_line(step + ahead + n64_step_bytes + 32 * pair);
}
// Step by step: a few hundred bytes of each line are in cache.
template <typename L>
void n64_unpack(const code_tiles_t &from, int64_t ahead, uint8_t *codes, int64_t pitch) {
    for_n64_steps<L>(from, [&](int r, const uint8_t *step) {
        for (int p = 0; p < n64_pairs; p++) {
            fetch_words<L>(step, ahead, p);
            uint8_t *a = codes + n64_column(p) * pitch + r;
            unpack_pair<L>(step, p, a, a + 8 * pitch);
        }
    });
}

// Columns of two codes in a byte, as plain memory has them.
template <typename L>
void n64_pack_nibbles(
        const uint8_t *nibbles, int64_t pitch, const code_tiles_t &to, int64_t ahead, write_t how) {
    const bool around = goes_around(how, to.codes);
    pack_pairs<L, 2>(
            nibbles, pitch, to, ahead, [&](const uint8_t *a, const uint8_t *b, uint8_t *step, int p) {
                __m256i even = load256(a), odd = load256(b);
                exchange_halves(even, odd);
                store_words<L>({{_mm256_unpacklo_epi8(even, odd), _mm256_unpackhi_epi8(even, odd)}},
                        step + 64 * p, around);
            });
}
template <typename L>
void n64_unpack_nibbles(const code_tiles_t &from, int64_t ahead, uint8_t *nibbles, int64_t pitch) {
    for_n64_steps<L>(from, [&](int r, const uint8_t *step) {
        for (int p = 0; p < n64_pairs; p++) {
            fetch_words<L>(step, ahead, p);
            const two_rows_t w = load_words<L>(step + 64 * p);
            __m256i even = low_bytes(w.v[0], w.v[1]), odd = high_bytes(w.v[0], w.v[1]);
            uint8_t *const at = nibbles + n64_column(p) * pitch + r / 2;
            exchange_halves(even, odd);
            store256(at, even);
            store256(at + 8 * pitch, odd);
        }
    });
}

// ---- Rows of 16 columns ----

// The four rows of thread t in the low lanes, of t + 1 in the high lanes.
struct thread_rows_t {
    __m256i v[4];
};
template <typename L>
MXDNN_INLINE thread_rows_t load_thread_rows(const uint8_t *codes, int64_t pitch, int t) {
    thread_rows_t x;
    for (int i = 0; i < 4; i++)
        x.v[i] = load_halves(codes + n64_row<L>(t, i) * pitch, codes + n64_row<L>(t + 1, i) * pitch);
    return x;
}
template <typename L>
MXDNN_INLINE void store_thread_rows(const thread_rows_t &x, uint8_t *codes, int64_t pitch, int t) {
    for (int i = 0; i < 4; i++) {
        store128(codes + n64_row<L>(t, i) * pitch, _mm256_castsi256_si128(x.v[i]));
        store128(codes + n64_row<L>(t + 1, i) * pitch, _mm256_extracti128_si256(x.v[i], 1));
    }
}

// Columns 0..7 of two rows, and columns 8..15.
struct column_pairs_t {
    __m256i first, second;
};
MXDNN_INLINE column_pairs_t column_halves(__m256i a, __m256i b) {
    return {_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)};
}
// One dword for each of eight pairs of columns: the first four pairs and the last four. The low half has
// bytes of `a` and `b` of the first row, the high half those of the second.
MXDNN_INLINE column_pairs_t dwords_of(__m256i a, __m256i b) {
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    return {_mm256_unpacklo_epi16(low, high), _mm256_unpackhi_epi16(low, high)};
}
// The inverse: a and b.
MXDNN_INLINE column_pairs_t bytes_of(const column_pairs_t &dwords) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    const __m256i first = _mm256_packus_epi32(
                          _mm256_and_si256(dwords.first, low), _mm256_and_si256(dwords.second, low)),
                  second = _mm256_packus_epi32(
                          _mm256_srli_epi32(dwords.first, 16), _mm256_srli_epi32(dwords.second, 16));
    return {low_bytes(first, second), high_bytes(first, second)};
}

// The four dwords of a load of one thread, for eight pairs of columns: the first four and the last four.
struct thread_words_t {
    four_t first, second;
};

// Threads t and t + 1 of each pair of columns, in the order of the pairs.
MXDNN_INLINE void store_thread_words(const thread_words_t &w, uint8_t *out, int t) {
    const four_t a = transpose32(w.first), b = transpose32(w.second);
    for (int c = 0; c < 4; c++) {
        store256(out + 64 * c + 16 * t, a.v[c]);
        store256(out + 64 * (c + 4) + 16 * t, b.v[c]);
    }
}
MXDNN_INLINE thread_words_t load_thread_words(const uint8_t *in, int t) {
    four_t a, b;
    for (int c = 0; c < 4; c++) {
        a.v[c] = load256(in + 64 * c + 16 * t);
        b.v[c] = load256(in + 64 * (c + 4) + 16 * t);
    }
    return {transpose32(a), transpose32(b)};
}

// The top words of the first 32 rows and the last, of threads t and t + 1 of each pair of columns.
MXDNN_INLINE void store_top_words(const __m256i *w, uint8_t *out, int t) {
    const __m256i a = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(w[0], w[1]), 0xd8),
                  b = _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(w[0], w[1]), 0xd8);
    store128(out + 8 * t, _mm256_castsi256_si128(a));
    store128(out + 32 + 8 * t, _mm256_extracti128_si256(a, 1));
    store128(out + 64 + 8 * t, _mm256_castsi256_si128(b));
    store128(out + 96 + 8 * t, _mm256_extracti128_si256(b, 1));
}
MXDNN_INLINE void load_top_words(const uint8_t *in, int t, __m256i *w) {
    const __m256 a = _mm256_castsi256_ps(
                         _mm256_permute4x64_epi64(load_halves(in + 8 * t, in + 32 + 8 * t), 0xd8)),
                 b = _mm256_castsi256_ps(
                         _mm256_permute4x64_epi64(load_halves(in + 64 + 8 * t, in + 96 + 8 * t), 0xd8));
    w[0] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    w[1] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
}

// A step of 16 columns, 512 bytes of words and 256 of top words; threads t and t + 1.
template <typename L>
MXDNN_INLINE void pack_threads(const uint8_t *codes, int64_t pitch, uint8_t *out, uint8_t *tops, int t) {
    thread_words_t w;
    __m256i registers[4]; // of the top bits
    for (int k = 0; k < n64_rows(L::bits) / 16; k++) {
        const thread_rows_t x = load_thread_rows<L>(codes + 16 * k * pitch, pitch, t);
        const column_pairs_t p = column_halves(x.v[0], x.v[1]), q = column_halves(x.v[2], x.v[3]);
        if constexpr (L::bits == 8) {
            const column_pairs_t a = dwords_of(p.first, p.second), b = dwords_of(q.first, q.second);
            w.first.v[2 * k] = a.first;
            w.first.v[2 * k + 1] = b.first;
            w.second.v[2 * k] = a.second;
            w.second.v[2 * k + 1] = b.second;
        } else {
            const __m256i first = n64_swaps<L> ? joined(p.second, p.first) : joined(p.first, p.second);
            const column_pairs_t d = dwords_of(first, joined(q.first, q.second));
            w.first.v[k] = words_from<L>(d.first);
            w.second.v[k] = words_from<L>(d.second);
            if constexpr (L::bits == 6)
                registers[k] = _mm256_or_si256(
                        _mm256_srli_epi16(joined_tops(p.first, p.second), 4), joined_tops(q.first, q.second));
        }
    }
    store_thread_words(w, out, t);
    if constexpr (L::bits == 6) {
        const __m128i turned = _mm_setr_epi8(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14);
        __m256i first[2], second[2];
        for (int i = 0; i < 2; i++) {
            const column_pairs_t d = dwords_of(registers[2 * i], registers[2 * i + 1]);
            first[i] = n64_tops(shuffle_lanes(d.first, turned));
            second[i] = n64_tops(shuffle_lanes(d.second, turned));
        }
        store_top_words(first, tops, t);
        store_top_words(second, tops + 128, t);
    }
}
template <typename L>
MXDNN_INLINE void unpack_threads(
        const uint8_t *in, const uint8_t *tops, uint8_t *codes, int64_t pitch, int t) {
    const thread_words_t w = load_thread_words(in, t);
    __m256i registers[4];
    if constexpr (L::bits == 6) {
        __m256i first[2], second[2];
        load_top_words(tops, t, first);
        load_top_words(tops + 128, t, second);
        const __m128i turned = _mm_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
        const auto back = [&](__m256i v) { return shuffle_lanes(n64_tops_back(v), turned); };
        for (int i = 0; i < 2; i++) {
            const column_pairs_t b = bytes_of({back(first[i]), back(second[i])});
            registers[2 * i] = b.first;
            registers[2 * i + 1] = b.second;
        }
    }
    for (int k = 0; k < n64_rows(L::bits) / 16; k++) {
        column_pairs_t p, q;
        if constexpr (L::bits == 8) {
            p = bytes_of({w.first.v[2 * k], w.second.v[2 * k]});
            q = bytes_of({w.first.v[2 * k + 1], w.second.v[2 * k + 1]});
        } else {
            const column_pairs_t b = bytes_of({move_bits<n64_words_t<L>::low_back>(w.first.v[k]),
                    move_bits<n64_words_t<L>::low_back>(w.second.v[k])});
            p = n64_swaps<L> ? column_pairs_t{high_nibbles(b.first), low_nibbles(b.first)}
                             : column_pairs_t{low_nibbles(b.first), high_nibbles(b.first)};
            q = {low_nibbles(b.second), high_nibbles(b.second)};
            if constexpr (L::bits == 6) {
                const __m256i top = _mm256_set1_epi8(0x30), r = registers[k];
                const auto add = [&](__m256i &to, __m256i bits) {
                    to = _mm256_or_si256(to, _mm256_and_si256(bits, top));
                };
                add(p.first, _mm256_slli_epi16(r, 4));
                add(p.second, _mm256_slli_epi16(r, 2));
                add(q.first, r);
                add(q.second, _mm256_srli_epi16(r, 2));
            }
        }
        const column_pairs_t a = column_halves(p.first, p.second), b = column_halves(q.first, q.second);
        store_thread_rows<L>({{a.first, a.second, b.first, b.second}}, codes + 16 * k * pitch, pitch, t);
    }
}

template <typename L>
void n64_pack_rows(const uint8_t *codes, int64_t pitch, int rows, uint8_t *out, write_t how) {
    const bool around = goes_around(how, out);
    alignas(64) uint8_t words[512], tops[256];
    for (int r = 0; r < rows; r += n64_rows(L::bits), out += n64_bytes(L::bits))
        for (int g = 0; g < n64_columns / 16; g++) {
            const uint8_t *const from = codes + r * pitch + 16 * g;
            for (int t = 0; t < 4; t += 2) pack_threads<L>(from, pitch, words, tops, t);
            for (int i = 0; i < 512; i += 64) write_line(around, out + 512 * g + i, words + i);
            for (int i = 0; L::bits == 6 && i < 256; i += 64)
                write_line(around, out + n64_step_bytes + 256 * g + i, tops + i);
        }
}
template <typename L>
void n64_unpack_rows(const uint8_t *in, int rows, uint8_t *codes, int64_t pitch) {
    for (int r = 0; r < rows; r += n64_rows(L::bits), in += n64_bytes(L::bits))
        for (int g = 0; g < n64_columns / 16; g++)
            for (int t = 0; t < 4; t += 2)
                unpack_threads<L>(
                        in + 512 * g, in + n64_step_bytes + 256 * g, codes + r * pitch + 16 * g, pitch, t);
}

} // namespace
} // namespace x64
} // namespace impl
} // namespace mxdnn
