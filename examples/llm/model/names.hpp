// SPDX-License-Identifier: Apache-2.0
// The names that tensors have in checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace llm {

// Names of one kind of checkpoint; # stands for the number of a layer, null for what it does not have.
struct names_t {
    const char *embedding, *final_norm, *head;
    const char *attention_norm, *mlp_norm;
    struct linear_t {
        const char *weight, *bias;
    };
    linear_t qkv, q, k, v; // one of all three, or three
    linear_t attention_out;
    const char *sinks;
    linear_t gate, up, down; // of an MLP
    linear_t router;
    linear_t gate_up_experts; // one of both, which two may stand for
    linear_t gate_experts, up_experts, down_experts;
    bool is_interleaved; // rows of gate and up take turns in gate_up_experts; otherwise up follows gate
};

// The one whose embedding there is. Throws std::runtime_error, which begins with `path`.
const names_t &find_names(const std::function<bool(const std::string &)> &has, const std::string &path);

// The name of a tensor of a layer.
std::string of_layer(const char *name, size_t layer);

} // namespace llm
