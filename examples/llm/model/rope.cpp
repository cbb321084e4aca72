// SPDX-License-Identifier: Apache-2.0
#include "rope.hpp"

#include <algorithm>
#include <cmath>

namespace llm {

namespace {

constexpr double two_pi = 6.283185307179586;

// YaRN: fast pairs keep their frequency, slow ones are stretched; between them is a ramp over the pairs.
double yarn(const rope_t &r, double frequency, double pair, double size) {
    const auto pair_with_turns = [&](double turns) {
        return size * std::log(r.original_positions / (turns * two_pi)) / (2 * std::log(r.theta));
    };
    double low = pair_with_turns(r.beta_fast), high = pair_with_turns(r.beta_slow);
    if (r.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.);
    high = std::min(high, size - 1);
    if (low == high) high += 0.001;
    const double stretched = std::clamp((pair - low) / (high - low), 0., 1.);
    return frequency / r.factor * stretched + frequency * (1 - stretched);
}

// Llama 3: the same by wave lengths.
double llama3(const rope_t &r, double frequency) {
    const double turns = r.original_positions * frequency / two_pi;
    const double kept = std::clamp((turns - r.low_factor) / (r.high_factor - r.low_factor), 0., 1.);
    return frequency / r.factor * (1 - kept) + frequency * kept;
}

} // namespace

std::vector<float> frequencies(const rope_t &r, int64_t head_size) {
    std::vector<float> all;
    for (int64_t i = 0; i < head_size / 2; i++) {
        double f = std::pow(r.theta, -2. * double(i) / double(head_size));
        switch (r.scaling) {
        case rope_t::scaling_t::none: break;
        case rope_t::scaling_t::linear: f /= r.factor; break;
        case rope_t::scaling_t::yarn: f = yarn(r, f, double(i), double(head_size)); break;
        case rope_t::scaling_t::llama3: f = llama3(r, f); break;
        }
        all.push_back(r.divisors.empty() ? float(f) : float(f) / r.divisors[size_t(i)]);
    }
    return all;
}

} // namespace llm
