// SPDX-License-Identifier: Apache-2.0
// The alphabet in which byte-level tokenizers write bytes: one printable character for each.
#pragma once

#include <string>
#include <string_view>

namespace llm {

// The bytes that a text in the alphabet stands for; false where a character is none of the alphabet.
bool bytes_of_alphabet(std::string_view text, std::string &bytes);

} // namespace llm
