// SPDX-License-Identifier: Apache-2.0
// Regular expressions for names that come from anywhere: the time of a search is bounded by the length of the
// name times that of the expression, whatever both are, and nothing recurses over the name.
#pragma once

#include <bitset>
#include <string>
#include <vector>

namespace patterns {

// Of ECMAScript's expressions: characters, . [a-z] [^a-z] \d \w \s \D \W \S \t \n \r, * + ? {m} {m,} {m,n}, |
// ( ) (?: ) ^ $ \b \B. Of bytes, not of characters.
class pattern_t {
public:
    // Throws std::runtime_error that says what is wrong with it and where.
    explicit pattern_t(const std::string &expression);

    // Whether some part of the name matches.
    bool is_in(const std::string &name) const;

    using set_t = std::bitset<256>;
    enum class op_t { one_of, split, begin, end, word_edge, no_word_edge, done };
    struct step_t {
        op_t op;
        set_t set;          // of one_of
        size_t next, other; // `other` of split
    };

private:
    std::vector<step_t> steps_; // from 0 on
};

} // namespace patterns
