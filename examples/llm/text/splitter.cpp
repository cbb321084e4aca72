// SPDX-License-Identifier: Apache-2.0
#include "splitter.hpp"

#include <iterator>
#include <vector>

#include "common/container/utf8.hpp"
#include "unicode/unicode.hpp"

namespace llm {

namespace {

namespace utf8 = mxdnn::impl::utf8;
using contractions_t = pattern_t::contractions_t;
using words_t = pattern_t::words_t;

// clang-format off
const pattern_t patterns[] = {
    // name      contractions                    words                       digits  after     line ends
    {"gpt-2",    contractions_t::first,          words_t::letters,           0,      "",       false},
    {"llama-3",  contractions_t::first_any_case, words_t::any_before,        3,      "\r\n",   true},
    {"qwen2",    contractions_t::first_any_case, words_t::any_before,        1,      "\r\n",   true},
    {"qwen3.5",  contractions_t::first_any_case, words_t::any_before_marked, 1,      "\r\n",   true},
    {"o200k",    contractions_t::after_words,    words_t::cased,             3,      "\r\n/",  true},
    {"tekken",   contractions_t::none,           words_t::cased,             1,      "\r\n/",  true},
};
// clang-format on

} // namespace

std::string regex(const pattern_t &p) {
    const std::string contracted = "'s|'t|'re|'ve|'m|'ll|'d", before = "[^\\r\\n\\p{L}\\p{N}]?";
    std::string s;
    if (p.contractions == contractions_t::first) s += contracted + "|";
    if (p.contractions == contractions_t::first_any_case) s += "(?i:" + contracted + ")|";
    switch (p.words) {
    case words_t::letters: s += " ?\\p{L}+|"; break;
    case words_t::any_before: s += before + "\\p{L}+|"; break;
    case words_t::any_before_marked: s += before + "[\\p{L}\\p{M}]+|"; break;
    case words_t::cased: {
        const std::string upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]",
                          lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
        const std::string after =
                p.contractions == contractions_t::after_words ? "(?i:" + contracted + ")?|" : "|";
        s += before + upper + "*" + lower + "+" + after + before + upper + "+" + lower + "*" + after;
        break;
    }
    }
    s += p.digits == 0   ? " ?\\p{N}+|"
         : p.digits == 1 ? "\\p{N}|"
                         : "\\p{N}{1," + std::to_string(p.digits) + "}|";
    s += p.words == words_t::any_before_marked ? " ?[^\\s\\p{L}\\p{M}\\p{N}]+" : " ?[^\\s\\p{L}\\p{N}]+";
    const std::string_view tail = p.punctuation;
    if (!tail.empty()) s += tail == "\r\n" ? "[\\r\\n]*" : "[\\r\\n/]*";
    s += p.is_line_end ? "|\\s*[\\r\\n]+" : "";
    return s + "|\\s+(?!\\S)|\\s+";
}

const pattern_t *pattern_by_regex(const std::string &expression) {
    for (const pattern_t &p : patterns)
        if (regex(p) == expression) return &p;
    return nullptr;
}

const pattern_t *pattern_by_name(std::string_view name) {
    for (const pattern_t &p : patterns)
        if (p.name == name) return &p;
    return nullptr;
}

namespace {

enum class kind_t : uint8_t { upper, lower, letter, mark, number, other, space, line_end };

kind_t kind_of(uint32_t c) {
    if (c == utf8::invalid) return kind_t::other;
    if (c == '\r' || c == '\n') return kind_t::line_end;
    if (unicode::is_white_space(c)) return kind_t::space;
    return kind_t(unicode::kind(c));
}
static_assert(int(kind_t::other) == int(unicode::kind_t::other), "the first kinds are those of unicode");

constexpr uint32_t one(kind_t k) { return uint32_t(1) << int(k); }

// Sets of kinds, named after the classes of the expressions.
constexpr uint32_t L = one(kind_t::upper) | one(kind_t::lower) | one(kind_t::letter), M = one(kind_t::mark);
constexpr uint32_t N = one(kind_t::number), line_end = one(kind_t::line_end),
                   S = one(kind_t::space) | line_end;
constexpr uint32_t upper = one(kind_t::upper) | one(kind_t::letter) | M;
constexpr uint32_t lower = one(kind_t::lower) | one(kind_t::letter) | M;
constexpr uint32_t not_before_word = L | N | line_end;

// A text as a row of characters. One that lies past its end is of no kind.
class chars_t {
public:
    explicit chars_t(std::string_view text) : text_(text) {
        const auto *begin = reinterpret_cast<const unsigned char *>(text.data()), *p = begin,
                   *end = p + text.size();
        kinds_.reserve(text.size());
        at_.reserve(text.size() + 1);
        while (p < end) {
            at_.push_back(size_t(p - begin));
            kinds_.push_back(kind_of(utf8::next(p, end)));
        }
        at_.push_back(text.size());
    }

    size_t size() const { return kinds_.size(); }
    bool is(size_t i, uint32_t kinds) const { return i < size() && (one(kinds_[i]) & kinds); }
    bool is_char(size_t i, char c) const { return i < size() && text_[at_[i]] == c; }
    // Where the characters of these kinds end that begin at i; at most so many, 0: all.
    size_t after(size_t i, uint32_t kinds, size_t most = 0) const {
        const size_t last = most ? i + most : size();
        while (i < last && is(i, kinds)) i++;
        return i;
    }
    std::string_view piece(size_t begin, size_t end) const {
        return text_.substr(at_[begin], at_[end] - at_[begin]);
    }

private:
    std::string_view text_;
    std::vector<size_t> at_;
    std::vector<kind_t> kinds_;
};

// What follows matches one alternative at i and returns where the match ends, or i if there is none.

size_t contraction(const chars_t &t, size_t i, bool any_case) {
    if (!t.is_char(i, '\'')) return i;
    // The long s is an s of another case.
    if (any_case && i + 1 < t.size() && t.piece(i + 1, i + 2) == "\u017f") return i + 2;
    const auto has = [&](size_t at, char c) {
        return t.is_char(at, c) || (any_case && t.is_char(at, char(c - ('a' - 'A'))));
    };
    for (const char *end : {"s", "t", "re", "ve", "m", "ll", "d"})
        if (has(i + 1, end[0]) && (!end[1] || has(i + 2, end[1]))) return i + (end[1] ? 3 : 2);
    return i;
}

// [upper]*[lower]+|[upper]+[lower]*; the first greedily, then with a shorter upper part.
size_t cased_lower_last(const chars_t &t, size_t i) {
    const size_t run = t.after(i, upper);
    if (t.is(run, lower)) return t.after(run, lower);
    for (size_t end = run; end > i; end--)
        if (t.is(end - 1, lower)) return end;
    return i;
}

size_t cased_word(const chars_t &t, size_t i, bool is_prefixed) {
    for (const bool lower_last : {true, false})
        for (const size_t from : {is_prefixed ? i + 1 : i, i}) {
            const size_t run = t.after(from, upper);
            const size_t end = lower_last    ? cased_lower_last(t, from)
                               : run == from ? from
                                             : t.after(run, lower);
            if (end > from) return end;
        }
    return i;
}

size_t word(const pattern_t &p, const chars_t &t, size_t i) {
    if (p.words == words_t::letters) {
        const size_t from = t.is_char(i, ' ') ? i + 1 : i, end = t.after(from, L);
        return end > from ? end : i;
    }
    const bool is_prefixed = i < t.size() && !t.is(i, not_before_word);
    if (p.words == words_t::cased) {
        const size_t end = cased_word(t, i, is_prefixed);
        return end > i && p.contractions == contractions_t::after_words ? contraction(t, end, true) : end;
    }
    const uint32_t letters = p.words == words_t::any_before_marked ? L | M : L;
    const size_t from = is_prefixed ? i + 1 : i, end = t.after(from, letters);
    if (end > from) return end;
    return t.after(i, letters); // a mark alone
}

size_t numbers(const pattern_t &p, const chars_t &t, size_t i) {
    if (p.digits == 0) {
        const size_t from = t.is_char(i, ' ') ? i + 1 : i, end = t.after(from, N);
        return end > from ? end : i;
    }
    return t.after(i, N, size_t(p.digits));
}

size_t punctuation(const pattern_t &p, const chars_t &t, size_t i) {
    const uint32_t some = one(kind_t::other) | (p.words == words_t::any_before_marked ? 0 : M);
    const size_t from = t.is_char(i, ' ') ? i + 1 : i;
    size_t end = t.after(from, some);
    if (end == from) return i;
    for (const char *c = p.punctuation; *c;) {
        if (t.is_char(end, *c)) {
            end++;
            c = p.punctuation;
        } else {
            c++;
        }
    }
    return end;
}

// White space up to its last line end; all of it at the end of the text; or all but the last one, which
// belongs to what follows.
size_t white_space(const pattern_t &p, const chars_t &t, size_t i) {
    const size_t run = t.after(i, S);
    if (p.is_line_end)
        for (size_t end = run; end > i; end--)
            if (t.is(end - 1, line_end)) return end;
    return run == t.size() || run == i + 1 ? run : run - 1;
}

size_t match(const pattern_t &p, const chars_t &t, size_t i) {
    const bool any_case = p.contractions == contractions_t::first_any_case;
    if (any_case || p.contractions == contractions_t::first)
        if (const size_t end = contraction(t, i, any_case); end > i) return end;
    for (const auto alternative : {word, numbers, punctuation})
        if (const size_t end = alternative(p, t, i); end > i) return end;
    return white_space(p, t, i);
}

} // namespace

void split(const pattern_t &pattern, std::string_view text, const piece_sink_t &sink) {
    const chars_t t(text);
    for (size_t i = 0; i < t.size();) {
        const size_t end = match(pattern, t, i);
        sink(t.piece(i, end));
        i = end;
    }
}

void split_numbers(size_t most, std::string_view text, const piece_sink_t &sink) {
    const chars_t t(text);
    for (size_t i = 0; i < t.size();) {
        size_t end = t.after(i, ~N);
        if (end == i) end = t.after(i, N, most);
        sink(t.piece(i, end));
        i = end;
    }
}

} // namespace llm
