// SPDX-License-Identifier: Apache-2.0
// What byte-level tokenizers do with a text before they merge: cut it into pieces. The patterns that models
// use are regular expressions of one family; its members are described, recognised and matched here, without
// a general engine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace llm {

// A pattern of the family. Its alternatives are tried in the order of the members.
struct pattern_t {
    enum class contractions_t {
        none,
        first,          // 's, 't, 're ... before anything else
        first_any_case, // the same, also 'S
        after_words     // of any case, as the end of a word
    };
    enum class words_t {
        letters,           // with at most one space before them
        any_before,        // with at most one character before them that is no letter, number or line end
        any_before_marked, // the same, and combining marks count as letters
        cased              // the same, and a new word begins where lower case ends
    };

    const char *name;
    contractions_t contractions;
    words_t words;
    int digits;              // at most so many numbers in a piece; 0: any number, with a space before them
    const char *punctuation; // what may follow punctuation: "", "\r\n" or "\r\n/"
    bool is_line_end;        // white space up to a line end is a piece
};

// The pattern as a regular expression, as tokenizer.json has it.
std::string regex(const pattern_t &pattern);

// By the expression, or by the name; nullptr: there is no such pattern.
const pattern_t *pattern_by_regex(const std::string &expression);
const pattern_t *pattern_by_name(std::string_view name);

// Called with each piece in order; together they are the text.
using piece_sink_t = std::function<void(std::string_view)>;

// Cuts by a pattern, in time linear in the text. Bytes that are not UTF-8 count as punctuation.
void split(const pattern_t &pattern, std::string_view text, const piece_sink_t &sink);

// Numbers stand apart from the rest, at most `most` in a piece; 0: all in a row.
void split_numbers(size_t most, std::string_view text, const piece_sink_t &sink);

} // namespace llm
