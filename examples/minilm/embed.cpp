// SPDX-License-Identifier: Apache-2.0
// Embeddings as text.
#include <cstdio>

#include "commands.hpp"
#include "encoder.hpp"
#include "linear_mxdnn.hpp"
#include "tokenizer.hpp"

namespace minilm {

void print_embeddings(
        const options_t &options, const std::string &file, const std::vector<std::string> &texts) {
    const model_t model(options.model, file);
    const tokenizer_t tokenizer(options.model + "/vocab.txt");
    std::vector<tokens_t> sentences;
    sentences.reserve(texts.size());
    for (const auto &t : texts) sentences.push_back(tokenizer.encode(t));
    std::unique_ptr<linears_t> linears;
    if (file.empty())
        linears = plain_linears(baseline_t::f32);
    else
        linears = std::make_unique<mxdnn_linears_t>(
                mxdnn::engine(mxdnn::engine::kind::cpu, 0), model.file, mxdnn_likes_bf16());
    encoder_t encoder(model, *linears);
    const std::vector<float> e = encoder.embed(sentences);
    const size_t h = e.size() / sentences.size();
    for (size_t i = 0; i < e.size(); i++) printf("%.7g%c", double(e[i]), (i + 1) % h ? ' ' : '\n');
}

} // namespace minilm
