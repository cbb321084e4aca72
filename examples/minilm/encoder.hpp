// SPDX-License-Identifier: Apache-2.0
// The BERT encoder with mean pooling: token ids to sentence embeddings.
#pragma once

#include <memory>
#include <vector>

#include "linear.hpp"
#include "model.hpp"

namespace minilm {

using tokens_t = std::vector<int32_t>;

class encoder_t {
public:
    // Takes the linear layers from `linears`; both must outlive the encoder.
    encoder_t(const model_t &model, linears_t &linears);

    // One embedding of length 1 per sentence, `hidden` floats each. The sentences lie in the activations one
    // after the other, so a batch needs no padding and no mask: only attention and pooling know where one
    // ends.
    std::vector<float> embed(const std::vector<tokens_t> &sentences);

    // All linear layers once, on whatever the activations hold: what the speed comparison times.
    void run_linears(int64_t rows);

private:
    const model_t &model_;
    bool bf16_;
    struct layer_t {
        std::unique_ptr<linear_t> query, key, value, attention, intermediate, output;
    };
    std::vector<layer_t> layers_;
    std::vector<float> x_, q_, k_, v_, context_, wide_, y_;
    std::vector<uint16_t> source_;

    void resize(int64_t rows);
    // The matrix as the linear layers want it: itself, or a copy in bf16 that lasts until the next call.
    const void *source(const std::vector<float> &matrix, int64_t count);
};

} // namespace minilm
