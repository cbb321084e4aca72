// SPDX-License-Identifier: Apache-2.0
// Properties of code points that tokenizers ask for, and normalisation. The tables are of Unicode 16.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace unicode {

// What an uncased BERT tokenizer asks for.
bool is_space(uint32_t c);
bool is_control(uint32_t c);     // also private use; tab and line ends are spaces
bool is_punctuation(uint32_t c); // every ASCII symbol counts
bool is_cjk(uint32_t c);         // ideographs, each of which is a word

// Lower case without accents: canonical decomposition, nonspacing marks dropped, lower case. Writes what is
// left of c, 0 to 3 code points, and returns how many.
int fold(uint32_t c, uint32_t out[3]);

// What the patterns of byte-level tokenizers ask for: \p{Lu}\p{Lt}, \p{Ll}, \p{Lm}\p{Lo}, \p{M}, \p{N}.
enum class kind_t : uint8_t { upper, lower, letter, mark, number, other };
kind_t kind(uint32_t c);
bool is_white_space(uint32_t c); // \s: the property White_Space

// Canonical composition (NFC). Bytes that are not UTF-8 stay as they are.
std::string nfc(std::string_view text);

} // namespace unicode
