// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <stdexcept>

namespace llm {

namespace {

constexpr names_t::linear_t none = {nullptr, nullptr};

constexpr names_t hugging_face = {
        "model.embed_tokens.weight",
        "model.norm.weight",
        "lm_head.weight",
        "model.layers.#.input_layernorm.weight",
        "model.layers.#.post_attention_layernorm.weight",
        none,
        {"model.layers.#.self_attn.q_proj.weight", "model.layers.#.self_attn.q_proj.bias"},
        {"model.layers.#.self_attn.k_proj.weight", "model.layers.#.self_attn.k_proj.bias"},
        {"model.layers.#.self_attn.v_proj.weight", "model.layers.#.self_attn.v_proj.bias"},
        {"model.layers.#.self_attn.o_proj.weight", "model.layers.#.self_attn.o_proj.bias"},
        "model.layers.#.self_attn.sinks",
        {"model.layers.#.mlp.gate_proj.weight", "model.layers.#.mlp.gate_proj.bias"},
        {"model.layers.#.mlp.up_proj.weight", "model.layers.#.mlp.up_proj.bias"},
        {"model.layers.#.mlp.down_proj.weight", "model.layers.#.mlp.down_proj.bias"},
        {"model.layers.#.mlp.router.weight", "model.layers.#.mlp.router.bias"},
        {"model.layers.#.mlp.experts.gate_up_proj", "model.layers.#.mlp.experts.gate_up_proj_bias"},
        none,
        none,
        {"model.layers.#.mlp.experts.down_proj", "model.layers.#.mlp.experts.down_proj_bias"},
        true,
};

// The original release of gpt-oss.
constexpr names_t original = {
        "embedding.weight",
        "norm.scale",
        "unembedding.weight",
        "block.#.attn.norm.scale",
        "block.#.mlp.norm.scale",
        {"block.#.attn.qkv.weight", "block.#.attn.qkv.bias"},
        none,
        none,
        none,
        {"block.#.attn.out.weight", "block.#.attn.out.bias"},
        "block.#.attn.sinks",
        none,
        none,
        none,
        {"block.#.mlp.gate.weight", "block.#.mlp.gate.bias"},
        {"block.#.mlp.mlp1_weight", "block.#.mlp.mlp1_bias"},
        none,
        none,
        {"block.#.mlp.mlp2_weight", "block.#.mlp.mlp2_bias"},
        true,
};

constexpr names_t gguf = {
        "token_embd.weight",
        "output_norm.weight",
        "output.weight",
        "blk.#.attn_norm.weight",
        "blk.#.ffn_norm.weight",
        none,
        {"blk.#.attn_q.weight", "blk.#.attn_q.bias"},
        {"blk.#.attn_k.weight", "blk.#.attn_k.bias"},
        {"blk.#.attn_v.weight", "blk.#.attn_v.bias"},
        {"blk.#.attn_output.weight", "blk.#.attn_output.bias"},
        "blk.#.attn_sinks.weight",
        {"blk.#.ffn_gate.weight", "blk.#.ffn_gate.bias"},
        {"blk.#.ffn_up.weight", "blk.#.ffn_up.bias"},
        {"blk.#.ffn_down.weight", "blk.#.ffn_down.bias"},
        {"blk.#.ffn_gate_inp.weight", "blk.#.ffn_gate_inp.bias"},
        {"blk.#.ffn_gate_up_exps.weight", "blk.#.ffn_gate_up_exps.bias"},
        {"blk.#.ffn_gate_exps.weight", "blk.#.ffn_gate_exps.bias"},
        {"blk.#.ffn_up_exps.weight", "blk.#.ffn_up_exps.bias"},
        {"blk.#.ffn_down_exps.weight", "blk.#.ffn_down_exps.bias"},
        false,
};

// gpt-oss has the norm before its experts under another name.
constexpr names_t gguf_gpt_oss = [] {
    names_t n = gguf;
    n.mlp_norm = "blk.#.post_attention_norm.weight";
    return n;
}();

} // namespace

const names_t &find_names(const std::function<bool(const std::string &)> &has, const std::string &path) {
    std::string known;
    for (const names_t *n : {&hugging_face, &original, &gguf}) {
        if (has(n->embedding))
            return n == &gguf && has(of_layer(gguf_gpt_oss.mlp_norm, 0)) ? gguf_gpt_oss : *n;
        known += (known.empty() ? "" : ", ") + std::string(n->embedding);
    }
    throw std::runtime_error(path + " has no embedding; known names of it are " + known);
}

std::string of_layer(const char *name, size_t layer) {
    std::string s = name;
    if (const size_t at = s.find('#'); at != s.npos) s.replace(at, 1, std::to_string(layer));
    return s;
}

} // namespace llm
