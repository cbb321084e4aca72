// SPDX-License-Identifier: Apache-2.0
// Looks code points up in the tables made by make_unicode_tables.py.
#include "unicode.hpp"

#include <algorithm>

namespace minilm {

namespace {

struct range_t {
    uint32_t first, last;
};
struct fold_run_t {
    uint32_t first, count, step, to, to_step;
};
struct fold_pair_t {
    uint32_t first, a, b;
};

#include "unicode_tables.inc"

// The last row that begins at or before c, or nullptr.
template <class Row, size_t n>
const Row *row_before(const Row (&rows)[n], uint32_t c) {
    const Row *after =
            std::upper_bound(rows, rows + n, c, [](uint32_t v, const Row &r) { return v < r.first; });
    return after == rows ? nullptr : after - 1;
}

template <size_t n>
bool in(const range_t (&ranges)[n], uint32_t c) {
    const range_t *r = row_before(ranges, c);
    return r && c <= r->last;
}

} // namespace

bool is_space(uint32_t c) {
    return c < 0x80 ? c == ' ' || c == '\t' || c == '\n' || c == '\r' : in(spaces, c);
}
bool is_control(uint32_t c) { return !is_space(c) && (c < 0x80 ? c < 0x20 || c == 0x7f : in(controls, c)); }
bool is_punctuation(uint32_t c) { return in(punctuation, c); }

bool is_cjk(uint32_t c) {
    static constexpr range_t ranges[] = {{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff},
            {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf},
            {0x2f800, 0x2fa1f}};
    return in(ranges, c);
}

int fold(uint32_t c, uint32_t out[3]) {
    out[0] = c;
    if (c < 0x80) {
        if (c >= 'A' && c <= 'Z') out[0] = c + ('a' - 'A');
        return 1;
    }
    if (c >= 0xac00 && c < 0xac00 + 19 * 21 * 28) { // a Hangul syllable is a lead, a vowel and perhaps a tail
        const uint32_t s = c - 0xac00;
        out[0] = 0x1100 + s / (21 * 28);
        out[1] = 0x1161 + s / 28 % 21;
        out[2] = 0x11a7 + s % 28;
        return s % 28 ? 3 : 2;
    }
    if (in(marks, c)) return 0;
    if (const fold_pair_t *p = row_before(fold_pairs, c); p && p->first == c) {
        out[0] = p->a;
        out[1] = p->b;
        return 2;
    }
    if (const fold_run_t *r = row_before(fold_runs, c)) {
        const uint32_t i = (c - r->first) / r->step;
        if ((c - r->first) % r->step == 0 && i < r->count) out[0] = r->to + i * r->to_step;
    }
    return 1;
}

} // namespace minilm
