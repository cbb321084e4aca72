// SPDX-License-Identifier: Apache-2.0
// Words by Unicode properties, then pieces by longest match.
#include "tokenizer.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "common/container/safetensors_format.hpp"
#include "common/container/utf8.hpp"
#include "unicode/unicode.hpp"

namespace minilm {

namespace utf8 = mxdnn::impl::utf8;

namespace {
constexpr size_t max_word_chars = 100; // longer words are unknown, as BERT has it
}

tokenizer_t::tokenizer_t(const std::string &vocab_path) {
    std::ifstream file(vocab_path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " + vocab_path + ": " + strerror(errno));
    text_ = std::make_unique<const std::string>(
            std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (file.bad()) throw std::runtime_error("cannot read " + vocab_path);
    index(vocab_path);
}

tokenizer_t tokenizer_t::from_text(std::string vocabulary) {
    tokenizer_t t;
    t.text_ = std::make_unique<const std::string>(std::move(vocabulary));
    t.index("the vocabulary");
    return t;
}

void tokenizer_t::index(const std::string &name) {
    std::string_view rest = *text_;
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        std::string_view piece = rest.substr(0, end);
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
        if (!piece.empty() && piece.back() == '\r') piece.remove_suffix(1);
        const int32_t id = int32_t(pieces_.size());
        pieces_.push_back(piece);
        const bool inner = piece.size() > 2 && piece.substr(0, 2) == "##";
        if (!(inner ? inner_.emplace(piece.substr(2), id) : first_.emplace(piece, id)).second)
            throw std::runtime_error(name + " has the piece "
                                     + mxdnn::impl::safetensors::shown(std::string(piece))
                                     + " twice, the second time in line " + std::to_string(id + 1));
    }
    pad_ = special("[PAD]", name);
    unk_ = special("[UNK]", name);
    cls_ = special("[CLS]", name);
    sep_ = special("[SEP]", name);
}

int32_t tokenizer_t::special(const char *piece, const std::string &name) const {
    const auto it = first_.find(piece);
    if (it == first_.end())
        throw std::runtime_error(name + " is not a BERT vocabulary: it has no line '" + piece + "'");
    return it->second;
}

std::vector<std::string> tokenizer_t::words(std::string_view text) {
    std::vector<std::string> words;
    bool open = false; // whether the last word may grow
    const auto alone = [&](const std::string &word) {
        words.push_back(word);
        open = false;
    };
    const auto *p = reinterpret_cast<const unsigned char *>(text.data()), *end = p + text.size();
    while (p < end) {
        const uint32_t c = utf8::next(p, end);
        if (c == utf8::invalid || c == 0 || c == 0xfffd || unicode::is_control(c)) continue;
        if (unicode::is_space(c)) {
            open = false;
            continue;
        }
        uint32_t folded[3];
        const int n = unicode::fold(c, folded);
        const bool cjk = unicode::is_cjk(c);
        for (int i = 0; i < n; i++) {
            std::string s;
            utf8::append(s, folded[i]);
            if (cjk || unicode::is_punctuation(folded[i])) {
                alone(s);
            } else if (open) {
                words.back() += s;
            } else {
                words.push_back(s);
                open = true;
            }
        }
    }
    return words;
}

void tokenizer_t::split(std::string_view word, std::vector<int32_t> &ids) const {
    const size_t before = ids.size();
    size_t chars = 0;
    for (char c : word) chars += (c & 0xc0) != 0x80;
    const auto *pieces = &first_;
    while (!word.empty() && chars <= max_word_chars) {
        size_t n = word.size();
        auto it = pieces->find(word);
        while (it == pieces->end() && n > 1) {
            n--;
            // A cut inside a code point is never a piece; skipping it saves the look-up.
            while (n > 1 && (word[n] & 0xc0) == 0x80) n--;
            it = pieces->find(word.substr(0, n));
        }
        if (it == pieces->end()) break;
        ids.push_back(it->second);
        word.remove_prefix(n);
        pieces = &inner_;
    }
    if (word.empty()) return;
    ids.resize(before); // one piece unknown makes the word unknown
    ids.push_back(unk_);
}

std::vector<int32_t> tokenizer_t::encode(std::string_view text, size_t max_tokens) const {
    std::vector<int32_t> ids = {cls_};
    for (const std::string &word : words(text)) {
        split(word, ids);
        if (ids.size() >= max_tokens) break;
    }
    if (max_tokens < 2) max_tokens = 2;
    if (ids.size() > max_tokens - 1) ids.resize(max_tokens - 1);
    ids.push_back(sep_);
    return ids;
}

} // namespace minilm
