// SPDX-License-Identifier: Apache-2.0
// What the files of a model say of text.
#pragma once

#include <string>
#include <vector>

#include "tokenizer.hpp"

namespace llm {

struct text_model_t {
    tokenizer_t tokenizer;
    std::string chat_template; // empty: there is none
    std::vector<int32_t> ends; // tokens that end a text
};

// Of a GGUF file, or of a folder with tokenizer.json and what else is there of tokenizer_config.json,
// chat_template.jinja, generation_config.json and config.json.
text_model_t read_text_model(const std::string &path);

} // namespace llm
