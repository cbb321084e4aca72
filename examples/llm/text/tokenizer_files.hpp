// SPDX-License-Identifier: Apache-2.0
// Where tokenizers come from. What this program does not do (other models than byte-level BPE, patterns that
// it does not know) is refused with a sentence.
#pragma once

#include <string>

#include "common/gguf.hpp"
#include "tokenizer.hpp"

namespace llm {

// A file tokenizer.json of Hugging Face.
tokenizer_t read_tokenizer_json(const std::string &path);
tokenizer_parts_t parse_tokenizer_json(const std::string &text, const std::string &what);

// The metadata of a GGUF file.
tokenizer_t read_tokenizer(const gguf::file_t &file);

} // namespace llm
