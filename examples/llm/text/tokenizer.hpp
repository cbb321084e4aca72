// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE: text to token ids and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "splitter.hpp"

namespace llm {

// What a file says of a tokenizer. It is not trusted: tokenizer_t checks it.
struct tokenizer_parts_t {
    struct token_t {
        std::string text; // in the alphabet of bytes, where a space is U+0120
        int64_t id;
    };
    // Matched in the text as it is, before anything else.
    struct added_t {
        std::string text;
        int64_t id;
        bool is_special = false;    // an order to the model, not text
        bool takes_left = false;    // with white space before it
        bool takes_right = false;   // with white space behind it
        bool is_normalized = false; // matched in the normalised text
    };
    // Applied one after the other, each to every piece that the one before made.
    struct stage_t {
        enum class kind_t { pattern, numbers, space_before };
        kind_t kind;
        const pattern_t *pattern = nullptr; // pattern
        size_t digits = 0;                  // numbers: at most so many in a piece; 0: any number
    };

    std::vector<token_t> vocabulary;
    std::vector<std::pair<std::string, std::string>> merges; // the first is done first
    std::vector<added_t> added;
    std::vector<stage_t> stages;
    std::vector<int64_t> before, after; // ids around every text
    int64_t unknown = -1;               // id of a byte without a token; -1: such bytes are dropped
    bool fuses_unknown = false;         // unknown bytes in a row are one token
    bool ignores_merges = false;        // a piece that is a token is that token
    bool is_nfc = false;                // the text is normalised first
};

class tokenizer_t {
public:
    // Throws std::runtime_error with a sentence where the parts contradict each other; `what` begins it.
    tokenizer_t(const tokenizer_parts_t &parts, const std::string &what);

    // Special tokens are found by their text. `is_framed`: with what the tokenizer puts around a text (a
    // token for its beginning, say).
    std::vector<int32_t> encode(std::string_view text, bool is_framed) const;

    // The bytes of a token; none for an id that has none. Bytes of several tokens may make one character:
    // utf8_stream_t (utf8_stream.hpp) makes text of them.
    std::string_view bytes(int32_t id) const;
    std::string decode(const std::vector<int32_t> &ids) const;
    bool is_special(int32_t id) const;
    int32_t find(std::string_view text) const; // an added token; -1: there is none

    // Ids are below this.
    int32_t size() const { return int32_t(tokens_.size()); }

private:
    struct token_t {
        std::string bytes;
        bool is_there = false, is_special = false;
    };
    struct merge_t {
        int32_t rank, id;
    };
    // A tree of the texts of added tokens.
    struct added_tree_t {
        struct end_t {
            int32_t id;
            bool takes_left, takes_right;
        };
        void insert(std::string_view text, const tokenizer_parts_t::added_t &token);
        // The longest text at `at`: its length (0: none) and what it is.
        size_t match(std::string_view text, size_t at, end_t &end) const;

        std::unordered_map<uint64_t, uint32_t> next; // node and byte to node; the root is 0
        std::unordered_map<uint32_t, end_t> ends;
        uint32_t nodes = 1;
    };

    void add_vocabulary(const tokenizer_parts_t &parts);
    void add_merges(const tokenizer_parts_t &parts);
    void add_added(const tokenizer_parts_t &parts);
    int32_t checked(int64_t id, const char *of) const;
    template <typename F>
    void cut_at_added(
            const added_tree_t &tree, std::string_view text, std::vector<int32_t> &ids, F &&rest) const;
    void encode_piece(std::string_view piece, size_t stage, std::vector<int32_t> &ids) const;
    void merge(std::string_view piece, std::vector<int32_t> &ids) const;

    std::string what_;
    std::vector<token_t> tokens_;
    std::unordered_map<std::string, int32_t> by_bytes_; // tokens that merging can make
    std::unordered_map<uint64_t, merge_t> merges_;      // by a pair of ids
    int32_t byte_ids_[256];                             // -1: the byte has no token
    added_tree_t raw_, normalized_;
    std::unordered_map<std::string, int32_t> added_;
    std::vector<tokenizer_parts_t::stage_t> stages_;
    std::vector<int32_t> before_, after_;
    int32_t unknown_ = -1;
    bool fuses_unknown_, ignores_merges_, is_nfc_;
};

} // namespace llm
