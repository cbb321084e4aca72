// SPDX-License-Identifier: Apache-2.0
// The tokenizer in a GGUF file: arrays of tokens, their types and merges, and the name of what cuts the text.
#include <stdexcept>

#include "common/safetensors.hpp"
#include "tokenizer_files.hpp"

namespace llm {

using safetensors::shown;
using parts_t = tokenizer_parts_t;
using stage_kind_t = parts_t::stage_t::kind_t;

namespace {

// Names of tokenizer.ggml.pre.
struct pre_t {
    const char *name, *pattern;
    bool cuts_digits;    // each number is a piece, before the pattern
    bool ignores_merges; // a piece that is a token is that token
    bool has_beginning;  // where the file does not say whether a text begins with a token
};
const pre_t pres[] = {
        {"gpt-2", "gpt-2", false, false, false},
        {"smollm", "gpt-2", true, false, false},
        {"starcoder", "gpt-2", true, false, false},
        {"refact", "gpt-2", true, false, false},
        {"llama-bpe", "llama-3", false, true, true},
        {"llama3", "llama-3", false, true, true},
        {"llama-v3", "llama-3", false, true, true},
        {"qwen2", "qwen2", false, false, false},
        {"qwen35", "qwen3.5", false, false, false},
        {"gpt-4o", "o200k", false, false, false},
        {"llama4", "o200k", false, false, true},
        {"tekken", "tekken", false, true, true},
};

const pre_t &find_pre(std::string_view name, const std::string &what) {
    std::string known;
    for (const pre_t &p : pres) {
        if (p.name == name) return p;
        known += (known.empty() ? "" : ", ") + std::string(p.name);
    }
    throw std::runtime_error(
            what + " has the pre-tokenizer " + shown(std::string(name)) + "; known are " + known);
}

// Of tokenizer.ggml.token_type.
enum token_type_t : int64_t { normal = 1, unknown, control, user_defined, unused, byte };

} // namespace

tokenizer_t read_tokenizer(const gguf::file_t &file) {
    const std::string what = "the tokenizer of " + file.name();
    const auto string = [&](const char *key) { return std::string(file.get(key).string()); };
    if (const std::string model = string("tokenizer.ggml.model"); model != "gpt2")
        throw std::runtime_error(
                what + " is of the kind " + shown(model) + "; only byte-level BPE (gpt2) is known");
    const pre_t &pre = find_pre(string("tokenizer.ggml.pre"), what);

    const gguf::value_t &tokens = file.get("tokenizer.ggml.tokens"),
                        &merges = file.get("tokenizer.ggml.merges");
    const gguf::value_t *types = file.find("tokenizer.ggml.token_type");
    if (!tokens.is_array() || !merges.is_array()
            || (types && (!types->is_array() || types->size() != tokens.size())))
        throw std::runtime_error(
                what + " needs arrays of tokens and merges, and a type for each token or for none");

    parts_t parts;
    for (size_t i = 0; i < tokens.size(); i++) {
        const int64_t type = types ? types->integer(i) : normal;
        const std::string text(tokens.string(i));
        if (type == control || type == user_defined) {
            parts_t::added_t added;
            added.text = text;
            added.id = int64_t(i);
            added.is_special = type == control;
            parts.added.push_back(std::move(added));
        } else {
            parts.vocabulary.push_back({text, int64_t(i)});
        }
    }
    for (size_t i = 0; i < merges.size(); i++) {
        // A token of its own does not begin with a space, but may have one in it.
        const std::string text(merges.string(i));
        const size_t space = text.find(' ', 1);
        if (space == text.npos)
            throw std::runtime_error(what + " has the merge " + shown(text) + ", which is not two tokens");
        parts.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    if (pre.cuts_digits) parts.stages.push_back({stage_kind_t::numbers, nullptr, 1});
    parts.stages.push_back({stage_kind_t::pattern, pattern_by_name(pre.pattern)});
    parts.ignores_merges = pre.ignores_merges;

    const auto framed = [&](const char *flag, const char *id, bool by_default, std::vector<int64_t> &ids) {
        const gguf::value_t *says = file.find(flag);
        if (says ? says->boolean() : by_default) ids.push_back(file.get(id).integer());
    };
    framed("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", pre.has_beginning, parts.before);
    framed("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false, parts.after);
    return {parts, what};
}

} // namespace llm
