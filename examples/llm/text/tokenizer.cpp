// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "byte_alphabet.hpp"
#include "common/container/utf8.hpp"
#include "common/safetensors.hpp"
#include "unicode/unicode.hpp"

namespace llm {

namespace utf8 = mxdnn::impl::utf8;
using safetensors::shown;
using parts_t = tokenizer_parts_t;

namespace {

constexpr int64_t max_ids = int64_t(1) << 22;
constexpr size_t max_added_bytes = 256; // bounds the time per character of a text
constexpr size_t max_stages = 32;       // each is a call within that of the one before

uint64_t pair(int32_t left, int32_t right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }

// Where the white space begins that ends at `at`; not before `first`.
size_t white_space_before(std::string_view text, size_t first, size_t at) {
    while (at > first) {
        size_t begin = at - 1;
        while (begin > first && (text[begin] & 0xc0) == 0x80) begin--;
        const auto *p = reinterpret_cast<const unsigned char *>(text.data()) + begin;
        const auto *end = reinterpret_cast<const unsigned char *>(text.data()) + at;
        if (!unicode::is_white_space(utf8::next(p, end)) || p != end) break;
        at = begin;
    }
    return at;
}

size_t white_space_after(std::string_view text, size_t at) {
    const auto *begin = reinterpret_cast<const unsigned char *>(text.data()), *p = begin + at;
    const auto *end = begin + text.size();
    while (p < end) {
        const auto *next = p;
        if (!unicode::is_white_space(utf8::next(next, end))) break;
        p = next;
    }
    return size_t(p - begin);
}

} // namespace

tokenizer_t::tokenizer_t(const parts_t &parts, const std::string &what)
    : what_(what), stages_(parts.stages), fuses_unknown_(parts.fuses_unknown),
      ignores_merges_(parts.ignores_merges), is_nfc_(parts.is_nfc) {
    if (stages_.size() > max_stages)
        throw std::runtime_error(what_ + " cuts texts in " + std::to_string(stages_.size())
                                 + " stages; it may have " + std::to_string(max_stages));
    add_vocabulary(parts);
    add_merges(parts);
    add_added(parts);
    if (parts.unknown != -1) unknown_ = checked(parts.unknown, "the unknown token");
    for (int64_t id : parts.before) before_.push_back(checked(id, "what stands before a text"));
    for (int64_t id : parts.after) after_.push_back(checked(id, "what stands after a text"));
}

int32_t tokenizer_t::checked(int64_t id, const char *of) const {
    if (id < 0 || id >= size() || !tokens_[size_t(id)].is_there)
        throw std::runtime_error(what_ + " has no token " + std::to_string(id) + ", the id of " + of);
    return int32_t(id);
}

void tokenizer_t::add_vocabulary(const parts_t &parts) {
    if (parts.vocabulary.empty()) throw std::runtime_error(what_ + " has no tokens");
    int64_t last = 0;
    const auto check_id = [&](const std::string &text, int64_t id) {
        if (id < 0 || id >= max_ids)
            throw std::runtime_error(what_ + " gives the token " + shown(text) + " the id "
                                     + std::to_string(id) + "; ids are from 0 to "
                                     + std::to_string(max_ids - 1));
        last = std::max(last, id);
    };
    for (const auto &t : parts.vocabulary) check_id(t.text, t.id);
    for (const auto &t : parts.added) check_id(t.text, t.id);
    tokens_.resize(size_t(last) + 1);

    std::fill(std::begin(byte_ids_), std::end(byte_ids_), -1);
    by_bytes_.reserve(parts.vocabulary.size());
    for (const auto &t : parts.vocabulary) {
        token_t &token = tokens_[size_t(t.id)];
        if (token.is_there)
            throw std::runtime_error(what_ + " has two tokens of the id " + std::to_string(t.id)
                                     + ", the second is " + shown(t.text));
        token.is_there = true;
        if (!bytes_of_alphabet(t.text, token.bytes)) {
            token.bytes = t.text; // no piece of a text becomes this one
            continue;
        }
        if (!by_bytes_.emplace(token.bytes, int32_t(t.id)).second)
            throw std::runtime_error(what_ + " has the token " + shown(t.text) + " twice");
        if (token.bytes.size() == 1) byte_ids_[uint8_t(token.bytes[0])] = int32_t(t.id);
    }
}

void tokenizer_t::add_merges(const parts_t &parts) {
    merges_.reserve(parts.merges.size());
    for (size_t rank = 0; rank < parts.merges.size(); rank++) {
        const std::string &left = parts.merges[rank].first, &right = parts.merges[rank].second;
        const auto refuse = [&](const std::string &why) {
            throw std::runtime_error(what_ + ": merge " + std::to_string(rank) + " of " + shown(left)
                                     + " and " + shown(right) + " " + why);
        };
        std::string bytes[2];
        int32_t ids[3];
        for (int i = 0; i < 2; i++) {
            const std::string &text = i ? right : left;
            const auto it = bytes_of_alphabet(text, bytes[i]) ? by_bytes_.find(bytes[i]) : by_bytes_.end();
            if (it == by_bytes_.end()) refuse("names " + shown(text) + ", which is no token");
            ids[i] = it->second;
        }
        const auto it = by_bytes_.find(bytes[0] + bytes[1]);
        if (it == by_bytes_.end()) refuse("makes what is no token");
        if (!merges_.emplace(pair(ids[0], ids[1]), merge_t{int32_t(rank), it->second}).second)
            refuse("is there twice");
    }
}

void tokenizer_t::add_added(const parts_t &parts) {
    for (const auto &a : parts.added) {
        if (a.text.empty() || a.text.size() > max_added_bytes)
            throw std::runtime_error(what_ + ": the added token " + std::to_string(a.id) + " has "
                                     + std::to_string(a.text.size()) + " bytes; it may have 1 to "
                                     + std::to_string(max_added_bytes));
        token_t &token = tokens_[size_t(a.id)];
        // It may be in the vocabulary too, as itself.
        std::string bytes;
        const bool is_same =
                token.bytes == a.text || (bytes_of_alphabet(a.text, bytes) && token.bytes == bytes);
        if (token.is_there && !is_same)
            throw std::runtime_error(what_ + " has two tokens of the id " + std::to_string(a.id)
                                     + ", the second is " + shown(a.text));
        if (!added_.emplace(a.text, int32_t(a.id)).second)
            throw std::runtime_error(what_ + " adds the token " + shown(a.text) + " twice");
        token.is_there = true;
        token.is_special = a.is_special;
        token.bytes = a.is_normalized && is_nfc_ ? unicode::nfc(a.text) : a.text;
        (a.is_normalized ? normalized_ : raw_).insert(token.bytes, a);
    }
}

void tokenizer_t::added_tree_t::insert(std::string_view text, const parts_t::added_t &token) {
    uint32_t node = 0;
    for (char c : text) {
        const auto [it, is_new] = next.emplace(uint64_t(node) << 8 | uint8_t(c), nodes);
        if (is_new) nodes++;
        node = it->second;
    }
    ends[node] = {int32_t(token.id), token.takes_left, token.takes_right};
}

size_t tokenizer_t::added_tree_t::match(std::string_view text, size_t at, end_t &end) const {
    uint32_t node = 0;
    size_t length = 0;
    for (size_t i = at; i < text.size(); i++) {
        const auto it = next.find(uint64_t(node) << 8 | uint8_t(text[i]));
        if (it == next.end()) break;
        node = it->second;
        if (const auto e = ends.find(node); e != ends.end()) {
            end = e->second;
            length = i + 1 - at;
        }
    }
    return length;
}

template <typename F>
void tokenizer_t::cut_at_added(
        const added_tree_t &tree, std::string_view text, std::vector<int32_t> &ids, F &&rest) const {
    size_t done = 0; // what lies before is in ids
    for (size_t at = 0; !tree.ends.empty() && at < text.size();) {
        added_tree_t::end_t end;
        const size_t length = tree.match(text, at, end);
        if (length == 0) {
            at++;
            continue;
        }
        const size_t begin = end.takes_left ? white_space_before(text, done, at) : at;
        if (begin > done) rest(text.substr(done, begin - done));
        ids.push_back(end.id);
        at += length;
        done = at = end.takes_right ? white_space_after(text, at) : at;
    }
    if (done < text.size()) rest(text.substr(done));
}

std::vector<int32_t> tokenizer_t::encode(std::string_view text, bool is_framed) const {
    std::vector<int32_t> ids;
    if (is_framed) ids = before_;
    cut_at_added(raw_, text, ids, [&](std::string_view part) {
        std::string composed;
        if (is_nfc_) part = composed = unicode::nfc(part);
        cut_at_added(normalized_, part, ids, [&](std::string_view words) { encode_piece(words, 0, ids); });
    });
    if (is_framed) ids.insert(ids.end(), after_.begin(), after_.end());
    return ids;
}

void tokenizer_t::encode_piece(std::string_view piece, size_t stage, std::vector<int32_t> &ids) const {
    if (stage == stages_.size()) return merge(piece, ids);
    const parts_t::stage_t &s = stages_[stage];
    const auto next = [&](std::string_view part) { encode_piece(part, stage + 1, ids); };
    switch (s.kind) {
    case parts_t::stage_t::kind_t::pattern: return split(*s.pattern, piece, next);
    case parts_t::stage_t::kind_t::numbers: return split_numbers(s.digits, piece, next);
    case parts_t::stage_t::kind_t::space_before:
        return next(piece.empty() || piece[0] == ' ' ? std::string(piece) : ' ' + std::string(piece));
    }
}

// The pair with the lowest rank is merged first, of several the leftmost; a queue knows the pairs.
void tokenizer_t::merge(std::string_view piece, std::vector<int32_t> &ids) const {
    if (ignores_merges_) {
        if (const auto it = by_bytes_.find(std::string(piece)); it != by_bytes_.end()) {
            ids.push_back(it->second);
            return;
        }
    }
    constexpr size_t none = size_t(-1);
    struct symbol_t {
        int32_t id; // -1: joined to the one before
        size_t before, next;
    };
    std::vector<symbol_t> symbols;
    symbols.reserve(piece.size());
    bool was_unknown = false;
    for (char c : piece) {
        int32_t id = byte_ids_[uint8_t(c)];
        const bool is_unknown = id < 0;
        if (is_unknown && (unknown_ < 0 || (was_unknown && fuses_unknown_))) continue;
        if (is_unknown) id = unknown_;
        was_unknown = is_unknown;
        symbols.push_back({id, symbols.size() - 1, symbols.size() + 1});
    }
    if (symbols.empty()) return;
    symbols.back().next = none;

    struct candidate_t {
        int32_t rank;
        size_t at;
        int32_t id;
        bool operator<(const candidate_t &o) const { return std::tie(rank, at) > std::tie(o.rank, o.at); }
    };
    std::priority_queue<candidate_t> queue;
    const auto merged = [&](size_t at) {
        const size_t next = symbols[at].next;
        return next == none ? merges_.end() : merges_.find(pair(symbols[at].id, symbols[next].id));
    };
    const auto consider = [&](size_t at) {
        if (const auto it = merged(at); it != merges_.end()) queue.push({it->second.rank, at, it->second.id});
    };
    for (size_t i = 0; i < symbols.size(); i++) consider(i);
    while (!queue.empty()) {
        const candidate_t best = queue.top();
        queue.pop();
        symbol_t &left = symbols[best.at];
        if (left.id < 0) continue;
        const auto it = merged(best.at);
        if (it == merges_.end() || it->second.id != best.id) continue; // a neighbour has changed
        symbol_t &right = symbols[left.next];
        left.id = best.id;
        left.next = right.next;
        right.id = -1;
        if (left.next != none) symbols[left.next].before = best.at;
        if (left.before != none) consider(left.before);
        consider(best.at);
    }
    for (size_t i = 0; i != none; i = symbols[i].next) ids.push_back(symbols[i].id);
}

std::string_view tokenizer_t::bytes(int32_t id) const {
    return id >= 0 && id < size() ? std::string_view(tokens_[size_t(id)].bytes) : std::string_view();
}

std::string tokenizer_t::decode(const std::vector<int32_t> &ids) const {
    std::string text;
    for (int32_t id : ids) text += bytes(id);
    return text;
}

bool tokenizer_t::is_special(int32_t id) const {
    return id >= 0 && id < size() && tokens_[size_t(id)].is_special;
}

int32_t tokenizer_t::find(std::string_view text) const {
    const auto it = added_.find(std::string(text));
    return it == added_.end() ? -1 : it->second;
}

} // namespace llm
