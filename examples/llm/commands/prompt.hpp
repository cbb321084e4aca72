// SPDX-License-Identifier: Apache-2.0
// A text of the command line as tokens that a model continues.
#pragma once

#include "commands.hpp"
#include "text/text_model.hpp"

namespace llm {

struct prompt_t {
    std::vector<int32_t> tokens;
    std::vector<int32_t> ends; // tokens that end the answer
    bool shows_special;        // whether special tokens are part of the answer's text
};

// The tokeniser of the model that the command line names.
text_model_t text_model_of(const options_t &options);

// The text as it is, or in the model's chat template.
prompt_t prompt_of(const text_model_t &model, const options_t &options);

} // namespace llm
