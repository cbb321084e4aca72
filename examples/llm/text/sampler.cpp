// SPDX-License-Identifier: Apache-2.0
#include "sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace llm {

sampler_t::sampler_t(const sampling_t &options) : options_(options), random_(options.seed) {
    if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
        throw std::runtime_error(
                "the temperature is " + std::to_string(options.temperature) + "; it is 0 or more");
    if (!(options.top_p > 0 && options.top_p <= 1))
        throw std::runtime_error(
                "top-p is " + std::to_string(options.top_p) + "; it is above 0 and at most 1");
}

int32_t sampler_t::next(const float *logits, size_t size) {
    constexpr float never = -std::numeric_limits<float>::infinity();
    size_t best = size;
    for (size_t i = 0; i < size; i++) {
        if (std::isnan(logits[i]) || logits[i] == -never)
            throw std::runtime_error("the logit of token " + std::to_string(i) + " is "
                                     + (std::isnan(logits[i]) ? "NaN" : "infinite")
                                     + "; the model computed no probabilities");
        if (logits[i] != never && (best == size || logits[i] > logits[best])) best = i;
    }
    if (best == size) throw std::runtime_error("no token has a probability above 0");
    if (options_.temperature == 0) return int32_t(best);

    candidates_.clear();
    double sum = 0;
    for (size_t i = 0; i < size; i++) {
        const double weight = std::exp((double(logits[i]) - double(logits[best])) / options_.temperature);
        if (weight == 0) continue;
        candidates_.push_back({weight, int32_t(i)});
        sum += weight;
    }
    std::sort(candidates_.begin(), candidates_.end(), [](const candidate_t &a, const candidate_t &b) {
        return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    size_t count = 0;
    double kept = 0;
    while (count < candidates_.size() && (count == 0 || kept < options_.top_p * sum))
        kept += candidates_[count++].weight;

    double rest = double(random_() >> 11) * 0x1p-53 * kept;
    for (size_t i = 0; i + 1 < count; i++) {
        rest -= candidates_[i].weight;
        if (rest < 0) return candidates_[i].id;
    }
    return candidates_[count - 1].id;
}

} // namespace llm
