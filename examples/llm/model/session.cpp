// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "engine/cpu/loops.hpp"

namespace llm {

namespace {

constexpr int64_t head_rows = 64; // logits that are there at once

[[noreturn]] void refuse_logits(int64_t sequence, int64_t position) {
    throw std::runtime_error("the model computed no probabilities: of the logits that follow position "
                             + std::to_string(position) + " of sequence " + std::to_string(sequence)
                             + ", one is NaN or infinite");
}

} // namespace

session_t::session_t(model_t &model, int64_t sequences, int64_t context)
    : m_(model), e_(*model.engine), context_(context), lengths_(size_t(sequences), 0) {
    const config_t &c = m_.config;
    if (context > c.positions)
        throw std::runtime_error("a context of " + std::to_string(context) + " is more than the "
                                 + std::to_string(c.positions) + " positions of the model");
    if (sequences > m_.max_rows)
        throw std::runtime_error(std::to_string(sequences) + " sequences are more than the "
                                 + std::to_string(m_.max_rows) + " rows of a step");
    attention_ = e_.attention(c, sequences, context, m_.max_rows);
    const size_t rows = size_t(m_.max_rows), act = e_.activation_size(),
                 picked = size_t(std::max(head_rows, sequences));
    tokens_ = e_.allocate(rows * 4);
    sequences_ = e_.allocate(rows * 4);
    positions_ = e_.allocate(rows * 4);
    index_ = e_.allocate(rows * 4);
    x_ = e_.allocate(rows * size_t(c.hidden) * 4);
    h_ = e_.allocate(rows * size_t(c.hidden) * act);
    qkv_ = e_.allocate(rows * size_t(c.qkv()) * 4);
    attended_ = e_.allocate(rows * size_t(c.heads * c.head_size) * act);
    if (c.experts) {
        router_ = e_.allocate(rows * size_t(c.experts) * 4);
    } else {
        hidden_ = e_.allocate(rows * size_t(c.intermediate) * act);
        gate_ = e_.allocate(rows * size_t(c.intermediate) * 4);
    }
    picked_ = e_.allocate(picked * size_t(c.hidden) * 4);
    normed_ = e_.allocate(picked * size_t(c.hidden) * act);
    logits_ = e_.allocate(picked * size_t(c.vocabulary) * 4);
}

void session_t::clear() { std::fill(lengths_.begin(), lengths_.end(), 0); }

size_t session_t::cache_bytes_for_step() const {
    size_t n = 0;
    for (const int64_t l : lengths_) n += attention_->bytes_for_row(l + 1);
    return n;
}

void session_t::check(const std::vector<input_t> &inputs) const {
    std::set<int64_t> seen;
    for (const input_t &in : inputs) {
        if (in.sequence < 0 || in.sequence >= int64_t(lengths_.size()))
            throw std::runtime_error("there is no sequence " + std::to_string(in.sequence) + "; there are "
                                     + std::to_string(lengths_.size()));
        if (!seen.insert(in.sequence).second)
            throw std::runtime_error(
                    "sequence " + std::to_string(in.sequence) + " is continued twice in a call");
        if (in.tokens.size() > size_t(context_ - lengths_[size_t(in.sequence)]))
            throw std::runtime_error(std::to_string(in.tokens.size()) + " tokens after "
                                     + std::to_string(lengths_[size_t(in.sequence)])
                                     + " exceed the context of " + std::to_string(context_)
                                     + "; --context sets another one");
        for (const int32_t t : in.tokens)
            if (t < 0 || t >= m_.config.vocabulary)
                throw std::runtime_error("there is no token " + std::to_string(t) + "; they are 0 to "
                                         + std::to_string(m_.config.vocabulary - 1));
    }
}

void session_t::set_rows(const std::vector<int32_t> &tokens, const std::vector<int32_t> &sequences,
        const std::vector<int32_t> &positions) {
    batch_.rows = int64_t(tokens.size());
    batch_.tokens = tokens_.as<int32_t>();
    batch_.sequences = sequences_.as<int32_t>();
    batch_.positions = positions_.as<int32_t>();
    e_.write(tokens_.as<void>(), tokens.data(), tokens.size() * 4);
    e_.write(sequences_.as<void>(), sequences.data(), sequences.size() * 4);
    e_.write(positions_.as<void>(), positions.data(), positions.size() * 4);
}

void session_t::feed(const std::vector<input_t> &inputs, wanted_t wanted, const take_t &take) {
    check(inputs);
    size_t input = 0, at = 0;
    while (input < inputs.size()) {
        // As many rows as a step has.
        std::vector<int32_t> tokens, sequences, positions, picked;
        batch_.spans.clear();
        while (input < inputs.size() && int64_t(tokens.size()) < m_.max_rows) {
            const input_t &in = inputs[input];
            const size_t n = std::min(in.tokens.size() - at, size_t(m_.max_rows) - tokens.size());
            int64_t &length = lengths_[size_t(in.sequence)];
            if (n) batch_.spans.push_back({in.sequence, int64_t(tokens.size()), int64_t(n), length});
            for (size_t i = 0; i < n; i++, at++) {
                const bool is_last = at + 1 == in.tokens.size();
                if (wanted == wanted_t::all || (wanted == wanted_t::last && is_last))
                    picked.push_back(int32_t(tokens.size()));
                tokens.push_back(in.tokens[at]);
                sequences.push_back(int32_t(in.sequence));
                positions.push_back(int32_t(length++));
            }
            if (at == in.tokens.size()) input++, at = 0;
        }
        if (tokens.empty()) continue;
        set_rows(tokens, sequences, positions);
        run_layers();
        std::vector<float> logits(size_t(m_.config.vocabulary));
        for (size_t first = 0; first < picked.size(); first += size_t(head_rows)) {
            const size_t n = std::min(picked.size() - first, size_t(head_rows));
            e_.write(index_.as<void>(), picked.data() + first, n * 4);
            e_.take_rows(
                    int64_t(n), m_.config.hidden, x_.as<float>(), index_.as<int32_t>(), picked_.as<float>());
            run_head(int64_t(n), picked_.as<float>());
            for (size_t i = 0; i < n; i++) {
                e_.read(logits.data(), logits_.as<float>() + i * logits.size(), logits.size() * 4);
                const size_t row = size_t(picked[first + i]);
                if (!loops().is_finite(int64_t(logits.size()), logits.data()))
                    refuse_logits(sequences[row], positions[row]);
                take(sequences[row], positions[row], logits.data());
            }
        }
    }
}

void session_t::run_layers(chosen_t *chosen) {
    m_.embedding->look_up(batch_, x_.as<float>());
    for (size_t i = 0; i < m_.layers.size(); i++) {
        run_layer(i);
        if (!chosen || !m_.layers[i].experts) continue;
        const experts_t &e = *m_.layers[i].experts;
        const int64_t count = e.chosen();
        chosen->experts += count;
        chosen->bytes += size_t(count) * e.bytes_of_expert();
    }
}

void session_t::run_layer(size_t index) {
    layer_t &l = m_.layers[index];
    const config_t &c = m_.config;
    const int64_t rows = batch_.rows;
    float *x = x_.as<float>();
    void *h = h_.as<void>();

    const norm_t before_attention = {x, l.attention_norm.as<float>(), c.norm_eps};
    if (l.qkv.size() > 1
            || !l.qkv[0].linear->run_with_norm(rows, before_attention, nullptr, qkv_.as<void>())) {
        e_.rms_norm(rows, c.hidden, before_attention, h);
        for (const layer_t::part_t &p : l.qkv) p.linear->run(rows, h, qkv_.as<float>() + p.column);
    }
    attention_->run(index, batch_, qkv_.as<float>(), l.sinks.as<float>(), attended_.as<void>());
    l.attention_out->run(rows, attended_.as<void>(), x);

    const norm_t before_mlp = {x, l.mlp_norm.as<float>(), c.norm_eps};
    if (l.experts) {
        if (!l.router->run_with_norm(rows, before_mlp, h, router_.as<void>())) {
            e_.rms_norm(rows, c.hidden, before_mlp, h);
            l.router->run(rows, h, router_.as<void>());
        }
        if (routes_) routes_->apply(e_, index, batch_, router_.as<float>());
        l.experts->run(rows, h, router_.as<float>(), x);
        return;
    }
    e_.rms_norm(rows, c.hidden, before_mlp, h);
    if (l.up) {
        l.gate->run(rows, h, gate_.as<void>());
        l.up->run(rows, h, hidden_.as<void>(), gate_.as<float>());
    } else {
        l.gate->run(rows, h, hidden_.as<void>());
    }
    l.down->run(rows, hidden_.as<void>(), x);
}

void session_t::run_head(int64_t rows, const float *x) {
    const config_t &c = m_.config;
    e_.rms_norm(rows, c.hidden, {x, m_.final_norm.as<float>(), c.norm_eps}, normed_.as<void>());
    m_.head->run(rows, normed_.as<void>(), logits_.as<void>());
}

void session_t::decode_step(chosen_t *chosen) {
    run_layers(chosen);
    run_head(batch_.rows, x_.as<float>());
    e_.largest(batch_.rows, m_.config.vocabulary, logits_.as<float>(), tokens_.as<int32_t>());
    e_.increment(batch_.rows, positions_.as<int32_t>());
}

std::vector<int32_t> session_t::decode(const std::vector<int32_t> &tokens, int64_t steps, chosen_t *chosen) {
    std::vector<input_t> inputs;
    for (size_t i = 0; i < tokens.size(); i++) inputs.push_back({int64_t(i), {tokens[i]}});
    if (tokens.size() != lengths_.size())
        throw std::runtime_error(
                "there must be one token for each of " + std::to_string(lengths_.size()) + " sequences");
    check(inputs);
    std::vector<int32_t> sequences, positions;
    batch_.spans.clear();
    for (size_t i = 0; i < tokens.size(); i++) {
        if (lengths_[i] + steps > context_)
            throw std::runtime_error(std::to_string(steps) + " steps after " + std::to_string(lengths_[i])
                                     + " tokens exceed the context of " + std::to_string(context_));
        batch_.spans.push_back({int64_t(i), int64_t(i), 1, lengths_[i]});
        sequences.push_back(int32_t(i));
        positions.push_back(int32_t(lengths_[i]));
    }
    set_rows(tokens, sequences, positions);
    if (!step_) step_ = e_.recorded([this] { decode_step(); });
    // The host does not wait for a step before it asks for the next one.
    std::vector<int32_t> all(size_t(steps) * tokens.size());
    if (chosen_.size < all.size() * 4) chosen_ = e_.allocate(all.size() * 4);
    for (int64_t s = 0; s < steps; s++) {
        if (chosen)
            decode_step(chosen);
        else
            step_();
        e_.copy(chosen_.as<int32_t>() + size_t(s) * tokens.size(), tokens_.as<void>(), tokens.size() * 4);
        for (size_t i = 0; i < tokens.size(); i++) {
            batch_.spans[i].position++;
            lengths_[i]++;
        }
    }
    e_.read(all.data(), chosen_.as<void>(), all.size() * 4);
    for (size_t n = 0; n < all.size(); n++)
        if (const size_t i = n % tokens.size(); all[n] < 0)
            refuse_logits(int64_t(i), lengths_[i] - steps + int64_t(n / tokens.size()));
    return all;
}

} // namespace llm
