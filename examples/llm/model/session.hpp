// SPDX-License-Identifier: Apache-2.0
// Sequences that a model continues, with their cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model.hpp"
#include "routes.hpp"

namespace llm {

class session_t {
public:
    // Sequences of up to `context` tokens. The model outlives it.
    session_t(model_t &model, int64_t sequences, int64_t context);

    struct input_t {
        int64_t sequence;
        std::vector<int32_t> tokens;
    };
    // Of the last token of each input, or of all.
    enum class wanted_t { none, last, all };
    // Takes the logits that follow a token: `vocabulary` numbers, which are there during the call.
    using take_t = std::function<void(int64_t sequence, int64_t position, const float *logits)>;

    // Continues sequences by tokens, of any number, a sequence at most once in a call. Throws
    // std::runtime_error for a token that there is none of, where a sequence would exceed the context, and
    // for logits that are no finite numbers.
    void feed(const std::vector<input_t> &inputs, wanted_t wanted, const take_t &take);

    // Continues all sequences by their most likely tokens, of which `tokens` are the first. The tokens stay
    // in memory of the engine from step to step. Throws as feed() does. Where they are asked for, adds up the
    // experts that layers have chosen and the bytes of these, which takes longer.
    struct chosen_t {
        int64_t experts = 0;
        size_t bytes = 0;
    };
    std::vector<int32_t> decode(
            const std::vector<int32_t> &tokens, int64_t steps, chosen_t *chosen = nullptr);

    int64_t length(int64_t sequence) const { return lengths_[size_t(sequence)]; }
    int64_t context() const { return context_; }
    // Tokens of prompts have the experts of `routes` from then on, which it outlives.
    void follow(routes_t &routes) { routes_ = &routes; }
    // Forgets tokens after the first `length`, which must be none.
    void clear();
    // Of the engine's memory.
    size_t cache_bytes() const { return attention_->bytes(); }
    // That the next step reads, if it continues all sequences by a token.
    size_t cache_bytes_for_step() const;

private:
    model_t &m_;
    engine_t &e_;
    const int64_t context_;
    std::vector<int64_t> lengths_;
    std::unique_ptr<attention_t> attention_;
    buffer_t tokens_, sequences_, positions_, index_, x_, h_, qkv_, attended_, hidden_, gate_, router_;
    buffer_t picked_, normed_, logits_, chosen_;
    batch_t batch_;
    std::function<void()> step_;
    routes_t *routes_ = nullptr;

    void check(const std::vector<input_t> &inputs) const;
    void set_rows(const std::vector<int32_t> &tokens, const std::vector<int32_t> &sequences,
            const std::vector<int32_t> &positions);
    // From tokens to the rows after the last layer.
    void run_layers(chosen_t *chosen = nullptr);
    void run_layer(size_t index);
    // Logits of rows after the last layer.
    void run_head(int64_t rows, const float *x);
    void decode_step(chosen_t *chosen = nullptr);
};

} // namespace llm
