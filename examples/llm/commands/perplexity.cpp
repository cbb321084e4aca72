// SPDX-License-Identifier: Apache-2.0
// How well a model predicts a text: exp of the mean of -log p(token), over windows that follow each other. A
// token is predicted from those before it in its window, the first one of a window is not.
#include "commands.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "common/input_file.hpp"
#include "model/session.hpp"
#include "prompt.hpp"

namespace llm {

namespace {

// -log of the probability of a token.
double surprise(const float *logits, int64_t size, int32_t token) {
    const double largest = *std::max_element(logits, logits + size);
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum += std::exp(double(logits[i]) - largest);
    return std::log(sum) + largest - double(logits[token]);
}

} // namespace

void perplexity(const options_t &o) {
    constexpr uint64_t max_bytes = uint64_t(1) << 30;
    const input_file_t file(o.file);
    if (file.size() > max_bytes)
        throw std::runtime_error(file.name() + " has " + std::to_string(file.size()) + " bytes, more than "
                                 + std::to_string(max_bytes));
    std::string content(size_t(file.size()), '\0');
    file.read(0, file.size(), &content[0]);
    const std::vector<int32_t> ids = text_model_of(o).tokenizer.encode(content, true);
    if (ids.size() < 2) throw std::runtime_error(file.name() + " has fewer than two tokens");

    model_t m = load_model(o);
    const size_t window = size_t(o.context ? o.context : std::min<int64_t>(512, m.config.positions));
    if (window < 2)
        throw std::runtime_error("the model has one position; a token is predicted from another one");
    session_t s(m, 1, int64_t(window));
    double sum = 0;
    int64_t count = 0;
    for (size_t begin = 0; begin < ids.size(); begin += window) {
        const size_t end = std::min(begin + window, ids.size());
        s.clear();
        s.feed({{0, {ids.begin() + ptrdiff_t(begin), ids.begin() + ptrdiff_t(end)}}},
                session_t::wanted_t::all, [&](int64_t, int64_t position, const float *logits) {
                    const size_t next = begin + size_t(position) + 1;
                    if (next >= end) return;
                    sum += surprise(logits, m.config.vocabulary, ids[next]);
                    count++;
                });
    }
    printf("perplexity %.4f of %lld tokens in windows of %zu\n", std::exp(sum / double(count)),
            (long long)count, window);
    print_memory(m);
}

} // namespace llm
