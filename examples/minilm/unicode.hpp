// SPDX-License-Identifier: Apache-2.0
// The few properties of code points that an uncased BERT tokenizer asks for.
#pragma once

#include <cstdint>

namespace minilm {

bool is_space(uint32_t c);
bool is_control(uint32_t c);     // also private use; tab and line ends are spaces
bool is_punctuation(uint32_t c); // every ASCII symbol counts
bool is_cjk(uint32_t c);         // ideographs, each of which is a word

// Lower case without accents: canonical decomposition, nonspacing marks dropped, lower case. Writes what is
// left of c, 0 to 3 code points, and returns how many.
int fold(uint32_t c, uint32_t out[3]);

} // namespace minilm
