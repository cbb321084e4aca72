// SPDX-License-Identifier: Apache-2.0
// Tokens of a measurement, and the experts that they choose at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace ep_test {

struct sizes_t {
    int64_t tokens, hidden, experts, topk; // tokens of a rank
    int passes;
};

// Rows of a rank, sorted by expert.
struct routes_t {
    std::vector<int32_t> counts, token_of;
    std::vector<int64_t> to_rank; // rows
};
inline routes_t make_routes(const sizes_t &z, int rank, int ranks) {
    std::mt19937 rng(unsigned(rank) + 1);
    std::vector<std::vector<int32_t>> tokens_of(static_cast<size_t>(z.experts));
    std::vector<int32_t> all(static_cast<size_t>(z.experts));
    for (int64_t e = 0; e < z.experts; e++) all[size_t(e)] = int32_t(e);
    for (int64_t t = 0; t < z.tokens; t++)
        for (int64_t j = 0; j < z.topk; j++) {
            std::swap(all[size_t(j)], all[size_t(j) + rng() % size_t(z.experts - j)]);
            tokens_of[size_t(all[size_t(j)])].push_back(int32_t(t));
        }
    routes_t r;
    r.to_rank.resize(size_t(ranks));
    for (int64_t e = 0; e < z.experts; e++) {
        const auto &list = tokens_of[size_t(e)];
        r.counts.push_back(int32_t(list.size()));
        r.token_of.insert(r.token_of.end(), list.begin(), list.end());
        r.to_rank[size_t(e / (z.experts / ranks))] += int64_t(list.size());
    }
    return r;
}

// The most rows that a rank receives.
inline int64_t most_arrivals(const std::vector<routes_t> &routes) {
    int64_t most = 0;
    for (size_t p = 0; p < routes.size(); p++) {
        int64_t here = 0;
        for (const routes_t &r : routes) here += r.to_rank[p];
        most = std::max(most, here);
    }
    return most;
}

} // namespace ep_test
