// SPDX-License-Identifier: Apache-2.0
// Looks code points up in the tables made by make_tables.py.
#include "unicode.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/container/utf8.hpp"

namespace unicode {

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

// Kinds of the tables: those of kind_t, and two for cases in turns.
enum kind_row_kind_t : uint8_t {
    upper = uint8_t(kind_t::upper),
    lower = uint8_t(kind_t::lower),
    letter = uint8_t(kind_t::letter),
    mark = uint8_t(kind_t::mark),
    number = uint8_t(kind_t::number),
    other = uint8_t(kind_t::other),
    even_upper,
    even_lower
};
struct kind_row_t {
    uint32_t first;
    kind_row_kind_t kind;
};
struct combining_t {
    uint32_t first, last, order;
};
struct decomposition_t {
    uint32_t first, a, b;
};
struct composition_t {
    uint32_t a, b, composed;
};

#include "tables.inc"

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

kind_t kind(uint32_t c) {
    if (c < 0x80) {
        if (c >= 'a' && c <= 'z') return kind_t::lower;
        if (c >= 'A' && c <= 'Z') return kind_t::upper;
        return c >= '0' && c <= '9' ? kind_t::number : kind_t::other;
    }
    if (c > 0x10ffff) return kind_t::other;
    const kind_row_kind_t k = row_before(kinds, c)->kind;
    if (k < even_upper) return kind_t(k);
    return (k == even_upper) == (c % 2 == 0) ? kind_t::upper : kind_t::lower;
}

bool is_white_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029
           || c == 0x202f || c == 0x205f || c == 0x3000;
}

namespace {

constexpr uint32_t hangul = 0xac00, lead = 0x1100, vowel = 0x1161, tail = 0x11a7; // the first of each
constexpr uint32_t leads = 19, vowels = 21, tails = 28;
constexpr uint32_t raw_byte = 0x110000; // a byte that is no UTF-8 stands as a code point from here on

uint32_t combining_class(uint32_t c) {
    const combining_t *r = row_before(combining_classes, c);
    return r && c <= r->last ? r->order : 0;
}

void decompose(uint32_t c, std::vector<uint32_t> &out) {
    if (c >= hangul && c < hangul + leads * vowels * tails) {
        const uint32_t s = c - hangul;
        out.insert(out.end(), {lead + s / (vowels * tails), vowel + s / tails % vowels});
        if (s % tails) out.push_back(tail + s % tails);
        return;
    }
    const decomposition_t *d = row_before(decompositions, c);
    if (!d || d->first != c) {
        out.push_back(c);
        return;
    }
    decompose(d->a, out);
    if (d->b) decompose(d->b, out);
}

// What a and b compose to, or 0.
uint32_t compose(uint32_t a, uint32_t b) {
    if (a >= lead && a < lead + leads && b >= vowel && b < vowel + vowels)
        return hangul + ((a - lead) * vowels + (b - vowel)) * tails;
    if (a >= hangul && a < hangul + leads * vowels * tails && (a - hangul) % tails == 0 && b > tail
            && b < tail + tails)
        return a + (b - tail);
    const auto *end = compositions + std::size(compositions);
    const auto *r = std::lower_bound(
            compositions, end, composition_t{a, b, 0}, [](const composition_t &x, const composition_t &y) {
                return x.a != y.a ? x.a < y.a : x.b < y.b;
            });
    return r != end && r->a == a && r->b == b ? r->composed : 0;
}

} // namespace

std::string nfc(std::string_view text) {
    namespace utf8 = mxdnn::impl::utf8;
    constexpr unsigned char first_lead_byte = 0xcc; // of U+0300; what is below is NFC
    const auto is_plain = [](char c) { return static_cast<unsigned char>(c) < first_lead_byte; };
    if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);

    std::vector<uint32_t> chars;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data()), *end = p + text.size();
    while (p < end) {
        const unsigned char byte = *p;
        const uint32_t c = utf8::next(p, end);
        if (c == utf8::invalid)
            chars.push_back(raw_byte + byte);
        else
            decompose(c, chars);
    }
    // Marks in a row stand in the order of their classes.
    for (size_t i = 0; i < chars.size();) {
        size_t last = i;
        while (last < chars.size() && combining_class(chars[last])) last++;
        std::stable_sort(chars.begin() + ptrdiff_t(i), chars.begin() + ptrdiff_t(last),
                [](uint32_t a, uint32_t b) { return combining_class(a) < combining_class(b); });
        i = last + 1;
    }
    // A mark joins the starter before it unless a mark of its class, or a starter, stands in between.
    size_t n = 0, starter = chars.size();
    uint32_t before = 0; // class of the last one kept
    for (uint32_t c : chars) {
        const uint32_t order = combining_class(c);
        const bool is_free = starter < n && (n == starter + 1 || before < order);
        if (const uint32_t composed = is_free ? compose(chars[starter], c) : 0) {
            chars[starter] = composed;
            continue;
        }
        if (order == 0) starter = n;
        before = order;
        chars[n++] = c;
    }
    chars.resize(n);
    std::string out;
    out.reserve(text.size());
    for (uint32_t c : chars) {
        if (c >= raw_byte)
            out += char(c - raw_byte);
        else
            utf8::append(out, c);
    }
    return out;
}

} // namespace unicode
