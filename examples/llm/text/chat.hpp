// SPDX-License-Identifier: Apache-2.0
// Conversations as the text that a model was trained on. Models describe it by a template in a language of
// its own; here the templates of known families are recognised and written by hand.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

struct message_t {
    std::string role, content; // role: system, user or assistant
};

struct chat_format_t {
    const char *name;
    // A template is of this format if it has all of `has` and none of `lacks`.
    std::vector<const char *> has, lacks;
    // The text of the messages, and the beginning of the answer. Some formats tell the model the date.
    std::string (*render)(const chat_format_t &, const std::vector<message_t> &, const std::tm &today);
    std::vector<const char *> ends; // tokens that end an answer
    bool shows_special;             // the answer has parts, which special tokens name
    const char *system;             // what the system says where the messages do not; nullptr: nothing
};

// Throws std::runtime_error where the template is empty or of no known format; `what` begins the sentence.
const chat_format_t &find_chat_format(std::string_view chat_template, std::string_view what);

} // namespace llm
