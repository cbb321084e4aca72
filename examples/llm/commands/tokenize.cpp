// SPDX-License-Identifier: Apache-2.0
// Prints the tokens that the model gets for a text.
#include <cstdio>

#include "prompt.hpp"

namespace llm {

void tokenize(const options_t &o) {
    const prompt_t p = prompt_of(text_model_of(o), o);
    for (size_t i = 0; i < p.tokens.size(); i++) printf("%s%d", i ? "," : "", p.tokens[i]);
    printf("\n");
}

} // namespace llm
