// SPDX-License-Identifier: Apache-2.0
// The order of operations of BERT; the work is in ops.cpp and behind linear_t.
#include "encoder.hpp"

#include <algorithm>
#include <stdexcept>

#include "ops.hpp"

namespace minilm {

encoder_t::encoder_t(const model_t &model, linears_t &linears) : model_(model), bf16_(linears.bf16_source()) {
    for (const auto &l : model.layers)
        layers_.push_back({linears.make(l.query), linears.make(l.key), linears.make(l.value),
                linears.make(l.attention), linears.make(l.intermediate), linears.make(l.output)});
}

void encoder_t::resize(int64_t rows) {
    const size_t narrow = size_t(rows * model_.config.hidden),
                 wide = size_t(rows * model_.config.intermediate);
    if (x_.size() >= narrow) return;
    for (auto *m : {&x_, &q_, &k_, &v_, &context_, &y_}) m->resize(narrow);
    wide_.resize(wide);
    if (bf16_) source_.resize(std::max(narrow, wide));
}

const void *encoder_t::source(const std::vector<float> &matrix, int64_t count) {
    if (!bf16_) return matrix.data();
    to_bf16(count, matrix.data(), source_.data());
    return source_.data();
}

std::vector<float> encoder_t::embed(const std::vector<tokens_t> &sentences) {
    const config_t &c = model_.config;
    const int64_t h = c.hidden, head = h / c.heads, count = int64_t(sentences.size());
    std::vector<int64_t> first = {0}; // row of each sentence, then the number of rows
    for (const auto &s : sentences) {
        if (s.empty() || int64_t(s.size()) > c.positions)
            throw std::runtime_error("a sentence has " + std::to_string(s.size())
                                     + " tokens; this model takes 1 to " + std::to_string(c.positions));
        first.push_back(first.back() + int64_t(s.size()));
    }
    const int64_t rows = first.back();
    resize(rows);

    for (int64_t s = 0; s < count; s++)
        for (int64_t t = 0; t < first[size_t(s) + 1] - first[size_t(s)]; t++) {
            const int32_t id = sentences[size_t(s)][size_t(t)];
            if (id < 0 || id >= c.vocabulary)
                throw std::runtime_error("token " + std::to_string(id)
                                         + " is not in the model's vocabulary of "
                                         + std::to_string(c.vocabulary));
            float *x = &x_[size_t((first[size_t(s)] + t) * h)];
            for (int64_t i = 0; i < h; i++)
                x[i] = model_.words[id * h + i] + model_.positions[t * h + i] + model_.types[i];
        }
    const auto norm = [&](const std::vector<float> &x, const float *residual, const layer_norm_t &n) {
        add_layer_norm(rows, h, x.data(), residual, n.gamma, n.beta, c.eps, x_.data());
    };
    norm(x_, nullptr, model_.embedding_norm);

    for (size_t i = 0; i < layers_.size(); i++) {
        const layer_t &l = layers_[i];
        const void *x = source(x_, rows * h);
        l.query->run(rows, x, q_.data());
        l.key->run(rows, x, k_.data());
        l.value->run(rows, x, v_.data());
        parallel(count * c.heads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; j++) {
                const int64_t s = j / c.heads, at = first[size_t(s)] * h + j % c.heads * head;
                attention(first[size_t(s) + 1] - first[size_t(s)], head, h, &q_[size_t(at)], &k_[size_t(at)],
                        &v_[size_t(at)], &context_[size_t(at)]);
            }
        });
        l.attention->run(rows, source(context_, rows * h), y_.data());
        norm(y_, x_.data(), model_.layers[i].attention_norm);
        l.intermediate->run(rows, source(x_, rows * h), wide_.data());
        l.output->run(rows, source(wide_, rows * c.intermediate), y_.data());
        norm(y_, x_.data(), model_.layers[i].output_norm);
    }

    std::vector<float> embeddings(size_t(count * h));
    for (int64_t s = 0; s < count; s++) {
        float *e = &embeddings[size_t(s * h)];
        for (int64_t r = first[size_t(s)]; r < first[size_t(s) + 1]; r++)
            for (int64_t i = 0; i < h; i++) e[i] += x_[size_t(r * h + i)];
        normalise(h, e); // of the sum: the mean's length cancels out
    }
    return embeddings;
}

void encoder_t::run_linears(int64_t rows) {
    resize(rows);
    const void *narrow = bf16_ ? static_cast<const void *>(source_.data()) : x_.data();
    const void *wide = bf16_ ? static_cast<const void *>(source_.data()) : wide_.data();
    for (const auto &l : layers_) {
        l.query->run(rows, narrow, q_.data());
        l.key->run(rows, narrow, k_.data());
        l.value->run(rows, narrow, v_.data());
        l.attention->run(rows, narrow, y_.data());
        l.intermediate->run(rows, narrow, wide_.data());
        l.output->run(rows, wide, y_.data());
    }
}

} // namespace minilm
