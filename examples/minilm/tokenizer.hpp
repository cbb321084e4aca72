// SPDX-License-Identifier: Apache-2.0
// WordPiece for uncased BERT models: text to token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace minilm {

class tokenizer_t {
public:
    // One piece per line, the id is the line number from 0; throws std::runtime_error with a sentence when
    // the file cannot be read or is no such vocabulary.
    explicit tokenizer_t(const std::string &vocab_path);
    static tokenizer_t from_text(std::string vocabulary);

    // [CLS], the pieces of `text`, [SEP]; what is beyond `max_tokens` (at least 2) is cut off before [SEP].
    // Names of special tokens within the text are ordinary text. Bytes that are not UTF-8 are dropped.
    std::vector<int32_t> encode(std::string_view text, size_t max_tokens = 256) const;

    // The words that WordPiece then splits: cleaned, folded, cut at spaces and around punctuation.
    static std::vector<std::string> words(std::string_view text);

    size_t size() const { return pieces_.size(); }
    std::string_view piece(int32_t id) const { return pieces_.at(size_t(id)); }
    int32_t pad() const { return pad_; }

private:
    tokenizer_t() = default;
    void index(const std::string &name);
    int32_t special(const char *piece, const std::string &name) const;
    void split(std::string_view word, std::vector<int32_t> &ids) const;

    std::unique_ptr<const std::string> text_; // the views below point into it
    std::vector<std::string_view> pieces_;
    std::unordered_map<std::string_view, int32_t> first_, inner_; // pieces that begin a word, and ##pieces
    int32_t pad_ = 0, unk_ = 0, cls_ = 0, sep_ = 0;
};

} // namespace minilm
