// SPDX-License-Identifier: Apache-2.0
// An expression becomes a list of steps; a search follows all of them at once, byte by byte.
#include "patterns.hpp"

#include <stdexcept>

#include "safetensors.hpp"

namespace patterns {

namespace {

using set_t = pattern_t::set_t;
using op_t = pattern_t::op_t;
using step_t = pattern_t::step_t;

constexpr size_t max_steps = 5000, max_depth = 100, max_count = 1000;

set_t range(int from, int to) {
    set_t s;
    for (int c = from; c <= to; c++) s.set(size_t(c));
    return s;
}
set_t one(char c) { return set_t().set(static_cast<unsigned char>(c)); }
const set_t digits = range('0', '9'), words = range('a', 'z') | range('A', 'Z') | digits | one('_'),
            blanks = range('\t', '\r') | one(' ');

// Steps of a part of an expression. Places are within the part; the place behind it is `steps.size()`.
struct part_t {
    std::vector<step_t> steps;
};

class compiler_t {
public:
    explicit compiler_t(const std::string &text) : text_(text) {}
    std::vector<step_t> compile() {
        part_t p = alternatives(0);
        if (at_ < text_.size()) refuse("a ')' without '('");
        p.steps.push_back({op_t::done, {}, 0, 0});
        return std::move(p.steps);
    }

private:
    const std::string &text_;
    size_t at_ = 0;

    [[noreturn]] void refuse(const std::string &what) const {
        throw std::runtime_error(
                what + " at character " + std::to_string(at_) + " of " + safetensors::shown(text_));
    }
    bool more() const { return at_ < text_.size(); }
    bool skip(char c) {
        if (!more() || text_[at_] != c) return false;
        at_++;
        return true;
    }

    static part_t single(op_t op, const set_t &set = {}) { return {{{op, set, 1, 0}}}; }
    void append(part_t &to, const part_t &p) const {
        const size_t by = to.steps.size();
        if (by + p.steps.size() > max_steps) refuse("more than " + std::to_string(max_steps) + " steps");
        for (step_t s : p.steps) {
            s.next += by;
            s.other += by;
            to.steps.push_back(s);
        }
    }
    // a or b
    part_t either(const part_t &a, const part_t &b) const {
        part_t r{{{op_t::split, {}, 1, 0}}};
        append(r, a);
        part_t jump{{{op_t::split, {}, 0, 0}}};
        append(r, jump);
        const size_t behind_a = r.steps.size();
        append(r, b);
        r.steps[0].other = behind_a;
        r.steps[behind_a - 1].next = r.steps[behind_a - 1].other = r.steps.size();
        return r;
    }
    part_t optional(const part_t &a) const {
        part_t r{{{op_t::split, {}, 1, 0}}};
        append(r, a);
        r.steps[0].other = r.steps.size();
        return r;
    }
    part_t any_number(const part_t &a) const {
        part_t r = optional(a);
        r.steps[0].other++;
        r.steps.push_back({op_t::split, {}, 0, 0});
        return r;
    }

    part_t alternatives(size_t depth) {
        if (depth > max_depth) refuse("more than " + std::to_string(max_depth) + " '(' in one another");
        part_t p = sequence(depth);
        while (skip('|')) p = either(p, sequence(depth));
        return p;
    }
    part_t sequence(size_t depth) {
        part_t p;
        while (more() && text_[at_] != '|' && text_[at_] != ')') append(p, repeated(depth));
        return p;
    }
    part_t repeated(size_t depth) {
        part_t a = atom(depth);
        while (more()) {
            size_t least = 0, most = 0;
            bool endless = true;
            if (skip('+')) {
                least = 1;
            } else if (skip('?')) {
                most = 1;
                endless = false;
            } else if (text_[at_] == '{') {
                counts(least, most, endless);
            } else if (!skip('*')) {
                return a;
            }
            skip('?'); // the shortest match is a match, too
            part_t r;
            for (size_t i = 0; i < least; i++) append(r, a);
            if (endless) append(r, any_number(a));
            for (size_t i = least; !endless && i < most; i++) append(r, optional(a));
            a = std::move(r);
        }
        return a;
    }
    void counts(size_t &least, size_t &most, bool &endless) {
        at_++;
        least = most = count();
        endless = false;
        if (skip(',')) {
            endless = more() && text_[at_] == '}';
            if (!endless) most = count();
        }
        if (!skip('}')) refuse("a '{' that is no {m}, {m,} or {m,n}");
        if (!endless && most < least) refuse("a {m,n} with n below m");
    }
    size_t count() {
        size_t n = 0;
        if (!more() || !digits[static_cast<unsigned char>(text_[at_])])
            refuse("a '{' that is no {m}, {m,} or {m,n}");
        for (; more() && digits[static_cast<unsigned char>(text_[at_])]; at_++) {
            n = n * 10 + size_t(text_[at_] - '0');
            if (n > max_count) refuse("a count above " + std::to_string(max_count));
        }
        return n;
    }

    // What a backslash and the letter behind it stand for.
    set_t escaped() {
        if (!more()) refuse("a '\\' without a character");
        const char c = text_[at_++];
        switch (c) {
        case 'd': return digits;
        case 'D': return ~digits;
        case 'w': return words;
        case 'W': return ~words;
        case 's': return blanks;
        case 'S': return ~blanks;
        case 't': return one('\t');
        case 'n': return one('\n');
        case 'r': return one('\r');
        default:
            if (words[static_cast<unsigned char>(c)]) {
                at_--;
                refuse(std::string("\\") + c + ", which has no meaning here");
            }
            return one(c);
        }
    }
    set_t bracket() {
        const bool inverse = skip('^');
        set_t s;
        while (!skip(']')) {
            if (!more()) refuse("a '[' without ']'");
            if (text_.compare(at_, 2, "[:") == 0) refuse("a '[:', which is not known here");
            bool is_class = false;
            const int from = element(s, is_class);
            if (!is_class && at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
                at_++;
                set_t end;
                const int to = element(end, is_class);
                if (is_class || to < from) refuse("a range that does not ascend");
                s |= range(from, to);
            }
        }
        return inverse ? ~s : s;
    }
    // One element of a bracket, added to s, and its byte where it is one.
    int element(set_t &s, bool &is_class) {
        if (skip('\\')) {
            const set_t e = escaped();
            s |= e;
            is_class = e.count() != 1;
            return int(e._Find_first());
        }
        const unsigned char c = static_cast<unsigned char>(text_[at_++]);
        s.set(c);
        return c;
    }

    part_t atom(size_t depth) {
        const char c = text_[at_++];
        switch (c) {
        case '(': {
            if (skip('?') && !skip(':')) refuse("a '(?', of which only '(?:' is known,");
            part_t p = alternatives(depth + 1);
            if (!skip(')')) refuse("a '(' without ')'");
            return p;
        }
        case '[': return single(op_t::one_of, bracket());
        case '.': return single(op_t::one_of, ~(one('\n') | one('\r')));
        case '^': return single(op_t::begin);
        case '$': return single(op_t::end);
        case '*':
        case '+':
        case '?':
        case '{': at_--; refuse(std::string("a '") + c + "' with nothing before it to repeat");
        case '\\':
            if (skip('b')) return single(op_t::word_edge);
            if (skip('B')) return single(op_t::no_word_edge);
            return single(op_t::one_of, escaped());
        default: return single(op_t::one_of, one(c));
        }
    }
};

} // namespace

pattern_t::pattern_t(const std::string &expression) : steps_(compiler_t(expression).compile()) {}

bool pattern_t::is_in(const std::string &name) const {
    std::vector<size_t> now, after, open;
    std::vector<size_t> seen(steps_.size(), 0); // 1 + the place at which a step was reached last
    const auto is_word = [&](size_t i) {
        return i < name.size() && words[static_cast<unsigned char>(name[i])];
    };
    for (size_t at = 0;; at++) {
        // Everything that can be reached without a byte, from where the last byte led and from the start.
        after.clear();
        now.push_back(0);
        for (const size_t start : now) {
            open.push_back(start);
            while (!open.empty()) {
                const size_t i = open.back();
                open.pop_back();
                if (seen[i] == at + 1) continue;
                seen[i] = at + 1;
                const step_t &s = steps_[i];
                const bool is_edge = is_word(at) != (at > 0 && is_word(at - 1));
                switch (s.op) {
                case op_t::done: return true;
                case op_t::one_of:
                    if (at < name.size() && s.set[static_cast<unsigned char>(name[at])])
                        after.push_back(s.next);
                    break;
                case op_t::split:
                    open.push_back(s.other);
                    open.push_back(s.next);
                    break;
                case op_t::begin:
                    if (at == 0) open.push_back(s.next);
                    break;
                case op_t::end:
                    if (at == name.size()) open.push_back(s.next);
                    break;
                case op_t::word_edge:
                case op_t::no_word_edge:
                    if (is_edge == (s.op == op_t::word_edge)) open.push_back(s.next);
                    break;
                }
            }
        }
        if (at == name.size()) return false;
        now.swap(after);
    }
}

} // namespace patterns
