// SPDX-License-Identifier: Apache-2.0
// The metadata have other words for what config.json says: it is written in the words of config.json, and
// read and checked as such.
#include "config_gguf.hpp"

#include <cmath>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "common/gguf_blocks.hpp"
#include "common/safetensors.hpp"

namespace llm {

using nlohmann::json;
using safetensors::shown;

namespace {

struct word_t {
    const char *gguf, *json; // after the name of the architecture
    bool is_number;          // or a whole one
};
constexpr word_t words[] = {
        {"embedding_length", "hidden_size", false},
        {"block_count", "num_hidden_layers", false},
        {"feed_forward_length", "intermediate_size", false},
        {"expert_feed_forward_length", "intermediate_size", false},
        {"attention.head_count", "num_attention_heads", false},
        {"attention.head_count_kv", "num_key_value_heads", false},
        {"attention.key_length", "head_dim", false},
        {"attention.sliding_window", "sliding_window", false},
        {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true},
        {"expert_count", "num_local_experts", false},
        {"expert_used_count", "num_experts_per_tok", false},
        {"context_length", "max_position_embeddings", false},
        {"rope.freq_base", "rope_theta", true},
        {"vocab_size", "vocab_size", false},
};
constexpr word_t rope_words[] = {
        {"rope.scaling.factor", "factor", true},
        {"rope.scaling.original_context_length", "original_max_position_embeddings", false},
        {"rope.scaling.yarn_beta_fast", "beta_fast", true},
        {"rope.scaling.yarn_beta_slow", "beta_slow", true},
};

struct architecture_t {
    const char *gguf, *model_type;
    bool is_interleaved; // rows of queries and keys are stored in pairs
    bool truncates;      // ends of the ramp of YaRN
};
constexpr architecture_t architectures[] = {
        {"llama", "llama", true, true},
        {"gpt-oss", "gpt_oss", false, false},
};

class gguf_reader_t {
public:
    explicit gguf_reader_t(const gguf::file_t &file)
        : file_(file), name_(file.get("general.architecture").string()), is_(find()) {}

    config_t read() const;

private:
    const gguf::file_t &file_;
    const std::string name_;
    const architecture_t &is_;

    [[noreturn]] void refuse(const std::string &why) const {
        throw std::runtime_error(file_.name() + ": " + why);
    }
    const architecture_t &find() const {
        std::string known;
        for (const architecture_t &a : architectures) {
            if (name_ == a.gguf) return a;
            known += (known.empty() ? "'" : ", '") + std::string(a.gguf) + "'";
        }
        refuse("the architecture is " + shown(name_) + "; GGUF files of " + known + " can be run");
    }
    std::string key(const char *word) const { return name_ + "." + word; }
    const gguf::value_t *find(const char *word) const { return file_.find(key(word)); }

    // What it says goes into `to`, if it is there.
    void put(const word_t &w, json &to) const;
    json rope_scaling() const;
    void check_rope(const config_t &c) const;
    std::vector<float> divisors(int64_t pairs) const;
};

void gguf_reader_t::put(const word_t &w, json &to) const {
    const gguf::value_t *v = find(w.gguf);
    if (!v) return;
    if (v->is_array())
        refuse("'" + key(w.gguf) + "' is an array; models whose layers differ in it cannot be run");
    if (w.is_number)
        to[w.json] = v->number();
    else
        to[w.json] = v->type() == gguf::type_t::u64 ? json(v->unsigned_integer()) : json(v->integer());
}

json gguf_reader_t::rope_scaling() const {
    const gguf::value_t *v = find("rope.scaling.type");
    const std::string kind(v ? v->string() : "none");
    if (kind == "none") return json::object();
    if (kind != "linear" && kind != "yarn")
        refuse("'" + key("rope.scaling.type") + "' is " + shown(kind) + "; known are none, linear and yarn");
    json j = {{"rope_type", kind}, {"truncate", is_.truncates}};
    for (const word_t &w : rope_words) put(w, j);
    if (kind == "yarn" && !j.contains("original_max_position_embeddings"))
        refuse("there is no '" + key("rope.scaling.original_context_length") + "', which yarn needs");
    for (const char *other :
            {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_ext_factor"})
        if (const gguf::value_t *f = find(other); f && f->number() != 1)
            refuse("'" + key(other) + "' is " + json(f->number()).dump() + "; models with 1 can be run");
    return j;
}

// What is taken for granted of the rotation.
void gguf_reader_t::check_rope(const config_t &c) const {
    for (const char *word : {"rope.dimension_count", "attention.value_length"})
        if (const gguf::value_t *v = find(word); v && v->integer() != c.head_size)
            refuse("'" + key(word) + "' is " + std::to_string(v->integer()) + "; models with "
                    + std::to_string(c.head_size) + ", the size of a head, can be run");
}

// Of the frequencies, in files of Llama 3.1 and later.
std::vector<float> gguf_reader_t::divisors(int64_t pairs) const {
    const gguf::tensor_t *t = file_.find_tensor("rope_freqs.weight");
    if (!t) return {};
    if (t->dims != std::vector<int64_t>{pairs} || std::string(t->element->name) != "F32")
        refuse("tensor 'rope_freqs.weight' is not F32 [" + std::to_string(pairs) + "]");
    std::vector<float> all(static_cast<size_t>(pairs));
    file_.read(*t, 0, t->size, all.data());
    for (const float d : all)
        if (!(std::isfinite(d) && d > 0))
            refuse("tensor 'rope_freqs.weight' has a number that is not above 0");
    return all;
}

config_t gguf_reader_t::read() const {
    json j = {{"model_type", is_.model_type}};
    for (const word_t &w : words) put(w, j);
    if (!j.contains("vocab_size"))
        if (const gguf::value_t *tokens = file_.find("tokenizer.ggml.tokens"))
            j["vocab_size"] = tokens->size();
    if (const json scaling = rope_scaling(); !scaling.empty()) j["rope_scaling"] = scaling;
    j["tie_word_embeddings"] = file_.find_tensor("output.weight") == nullptr;
    config_t c = parse_config(j, file_.name(), [this](const std::string &named) {
        // The last one that is there, or the first one.
        std::string text;
        const auto look = [&](const word_t &w) {
            if (named == w.json && (text.empty() || find(w.gguf))) text = key(w.gguf);
        };
        for (const word_t &w : words) look(w);
        for (const word_t &w : rope_words) look(w);
        return text.empty() ? named : text;
    });
    check_rope(c);
    c.rope.is_interleaved = is_.is_interleaved;
    c.rope.divisors = divisors(c.head_size / 2);
    return c;
}

} // namespace

config_t read_gguf_config(const gguf::file_t &file) { return gguf_reader_t(file).read(); }

} // namespace llm
