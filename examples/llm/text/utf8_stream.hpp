// SPDX-License-Identifier: Apache-2.0
// Bytes of tokens as text, while they come: a character is passed on when it is whole.
#pragma once

#include <string>
#include <string_view>

namespace llm {

class utf8_stream_t {
public:
    // The text that these bytes complete. What can never become UTF-8 is U+FFFD.
    std::string put(std::string_view bytes);
    // What is left at the end, which is no whole character.
    std::string finish();

private:
    std::string take(bool is_last);

    std::string held_; // the beginning of a character
};

} // namespace llm
