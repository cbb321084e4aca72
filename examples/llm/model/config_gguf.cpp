// SPDX-License-Identifier: Apache-2.0
// The metadata have other words for what config.json says: it is written in the words of config.json, and
// read and checked as such.
#include "config_gguf.hpp"

#include <stdexcept>

namespace llm {

using nlohmann::json;

namespace {

struct word_t {
    const char *gguf, *json; // after "llama."
    bool is_number;          // or a whole one
};
constexpr word_t words[] = {
        {"embedding_length", "hidden_size", false},
        {"block_count", "num_hidden_layers", false},
        {"feed_forward_length", "intermediate_size", false},
        {"attention.head_count", "num_attention_heads", false},
        {"attention.head_count_kv", "num_key_value_heads", false},
        {"attention.key_length", "head_dim", false},
        {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true},
        {"context_length", "max_position_embeddings", false},
        {"rope.freq_base", "rope_theta", true},
        {"vocab_size", "vocab_size", false},
};

} // namespace

config_t read_gguf_config(const gguf::file_t &file) {
    const std::string architecture(file.get("general.architecture").string());
    if (architecture != "llama")
        throw std::runtime_error(file.name() + ": the architecture is '" + architecture.substr(0, 40)
                                 + "'; GGUF files of 'llama' can be run");
    json j = {{"model_type", "llama"}};
    for (const word_t &w : words) {
        const gguf::value_t *v = file.find(architecture + "." + w.gguf);
        if (!v || v->is_array()) continue;
        if (w.is_number)
            j[w.json] = v->number();
        else if (const int64_t n = v->integer(); n >= 0)
            j[w.json] = uint64_t(n);
        else
            throw std::runtime_error(file.name() + ": '" + architecture + "." + w.gguf + "' is negative");
    }
    if (file.find(architecture + ".rope.scaling.type"))
        if (const auto kind = file.get(architecture + ".rope.scaling.type").string(); kind != "none")
            throw std::runtime_error(file.name() + ": positions are scaled by '"
                                     + std::string(kind.substr(0, 40))
                                     + "'; only files without scaling can be run");
    if (!j.contains("vocab_size"))
        if (const gguf::value_t *tokens = file.find("tokenizer.ggml.tokens"))
            j["vocab_size"] = tokens->size();
    j["tie_word_embeddings"] = file.find_tensor("output.weight") == nullptr;
    config_t c = parse_config(j, file.name());
    // Rows of queries and keys are stored in pairs.
    c.rope.is_interleaved = true;
    return c;
}

} // namespace llm
