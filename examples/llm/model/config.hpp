// SPDX-License-Identifier: Apache-2.0
// What a model is made of. Files are not trusted: every number is checked before anything is computed from
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace llm {

// Rotary embedding of positions.
struct rope_t {
    enum class scaling_t { none, linear, yarn, llama3 };

    double theta = 10000;
    scaling_t scaling = scaling_t::none;
    double factor = 1;
    double original_positions = 0;          // yarn and llama3: of the model before it was extended
    double beta_fast = 32, beta_slow = 1;   // yarn
    bool truncate = true;                   // yarn: the ends of the ramp are whole numbers
    double attention_factor = 1;            // yarn: of sines and cosines
    double low_factor = 1, high_factor = 4; // llama3
    std::vector<float> divisors;            // of the frequency of each pair; empty: all are 1
    // Pairs are neighbours (2i, 2i + 1), as in GGUF files of Llama; otherwise (i, i + half).
    bool is_interleaved = false;
};

struct config_t {
    std::string family; // "gpt_oss" or "llama"
    int64_t hidden = 0, vocabulary = 0, positions = 0;
    int64_t heads = 0, kv_heads = 0, head_size = 0;
    int64_t intermediate = 0;      // of the MLP, or of an expert
    int64_t experts = 0, topk = 0; // 0: the layers have an MLP
    float norm_eps = 1e-5f;
    bool has_tied_head = false; // the head has the weights of the embedding
    bool has_sinks = false;     // attention has a learned logit per head that takes part in the softmax only
    bool has_attention_bias = false, has_mlp_bias = false;
    float swiglu_alpha = 1.702f, swiglu_limit = 7; // of experts
    rope_t rope;
    struct layer_t {
        int64_t window = 0; // positions that attention sees; 0: all
    };
    std::vector<layer_t> layers;

    int64_t qkv() const { return (heads + 2 * kv_heads) * head_size; }
};

// From config.json, whose name begins sentences. Throws std::runtime_error. Sentences have `named`(key) where
// the keys come from other words.
using key_name_t = std::function<std::string(const std::string &key)>;
config_t parse_config(const nlohmann::json &json, const std::string &path, const key_name_t &named = {});
// Of a folder, or of the folder of a safetensors file.
config_t read_config(const std::string &model);
// Throws where numbers do not go together; parse_config() has called it.
void check(const config_t &config, const std::string &path);

} // namespace llm
