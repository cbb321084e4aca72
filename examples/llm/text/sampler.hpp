// SPDX-License-Identifier: Apache-2.0
// Which token follows, given the logits of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace llm {

struct sampling_t {
    double temperature = 0; // 0: always the likeliest token
    double top_p = 1;       // only the likeliest tokens that together have this probability
    uint64_t seed = 0;
};

// Equal logits and seeds give equal tokens: std::mt19937_64 gives one number per token, whose upper 53 bits
// are a fraction of the probability that is left; tokens are in the order of probability, equal ones in that
// of ids. With temperature 0 no number is drawn, and of equal logits the lowest id is taken.
class sampler_t {
public:
    // Throws std::runtime_error where an option is out of its range.
    explicit sampler_t(const sampling_t &options);

    // Throws where a logit is NaN or +infinity, or all are -infinity, which means "never".
    int32_t next(const float *logits, size_t size);

private:
    sampling_t options_;
    std::mt19937_64 random_;
    struct candidate_t {
        double weight;
        int32_t id;
    };
    std::vector<candidate_t> candidates_;
};

} // namespace llm
