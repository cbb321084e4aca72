// SPDX-License-Identifier: Apache-2.0
// A model in memory of an engine: embedding, layers, head.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "engine/engine.hpp"
#include "engine/routing.hpp"
#include "tensors.hpp"
#include "weights.hpp"

namespace llm {

struct load_options_t {
    std::string engine = "cpu";
    std::string encoding = "stored"; // of MLPs and experts
    std::string dense;      // of attention and head; empty: f32 or bf16 as `encoding` says, else stored
    std::string head;       // of the head; empty: as `dense`
    int64_t max_rows = 512; // of a step
};

// One layer of a decoder. Both families have attention; one has an MLP after it, the other experts.
struct layer_t {
    buffer_t attention_norm, mlp_norm, sinks;
    struct part_t {
        std::unique_ptr<linear_t> linear;
        int64_t column; // of the result, where it begins
    };
    std::vector<part_t> qkv;
    std::unique_ptr<linear_t> attention_out; // adds
    // The first is both gate and up where there is no second.
    std::unique_ptr<linear_t> gate, up, down;
    std::unique_ptr<linear_t> router;
    std::unique_ptr<experts_t> experts;
    std::vector<buffer_t> biases;
};

struct model_t {
    config_t config;
    std::unique_ptr<tensors_t> tensors; // which the embedding may read
    std::unique_ptr<engine_t> engine;
    std::unique_ptr<table_t> embedding;
    std::vector<layer_t> layers;
    buffer_t final_norm;
    std::unique_ptr<linear_t> head;
    int64_t max_rows = 0;

    // Of weights that are in the engine's memory.
    size_t bytes() const;
    // Of the linear layers, which every step reads.
    size_t linear_bytes() const;
    // Calls f(linear or experts) for all layers with weights.
    void for_linears(const std::function<void(const linear_t &)> &f) const;
};

// `progress` is called with the number of layers that are done. Throws std::runtime_error where the files are
// not those of a model; nothing is computed before.
model_t load(const std::string &path, const load_options_t &options,
        const std::function<void(size_t done, size_t all)> &progress = {});

} // namespace llm
