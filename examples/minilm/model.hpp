// SPDX-License-Identifier: Apache-2.0
// A BERT encoder's configuration and where its weights lie in the mapped file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mxdnn/mxdnn_container.hpp>

namespace minilm {

struct config_t {
    int64_t hidden, intermediate, layers, heads, vocabulary, positions;
    float eps;
};

struct layer_norm_t {
    const float *gamma, *beta;
};

// A linear layer, y = x w^T + bias. In a file of packed weights `weight` is null: the bytes there are
// mxdnn's.
struct linear_spec_t {
    std::string name; // of the weight tensor
    int64_t in, out;
    const float *weight; // [out, in]
    const float *bias;
    bool gelu; // follows the layer
};

struct model_t {
    // Reads DIR/config.json and maps the weights: `file` if given, else DIR/model.safetensors. Throws
    // std::runtime_error with a sentence that names the file and the tensor.
    explicit model_t(const std::string &dir, const std::string &file = "");

    std::string path;
    mxdnn::container file;
    config_t config;
    const float *words, *positions, *types; // embedding tables; the first row of `types` is used
    layer_norm_t embedding_norm;
    struct layer_t {
        linear_spec_t query, key, value, attention, intermediate, output;
        layer_norm_t attention_norm, output_norm;
    };
    std::vector<layer_t> layers;

    // The linear layers in the order in which they run.
    std::vector<const linear_spec_t *> linears() const;
    int64_t linear_weights() const; // how many numbers they hold together

private:
    const float *floats(const std::string &name, const std::vector<int64_t> &shape) const;
    linear_spec_t linear(const std::string &name, int64_t in, int64_t out, bool gelu = false) const;
    layer_norm_t norm(const std::string &name) const;
};

} // namespace minilm
