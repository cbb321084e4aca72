// SPDX-License-Identifier: Apache-2.0
// Measures prefill and decode, next to what the memory can deliver.
#include "commands.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "model/session.hpp"

namespace llm {

namespace {

using clock_t = std::chrono::steady_clock;

double since(clock_t::time_point start) {
    return std::chrono::duration<double>(clock_t::now() - start).count();
}

void print_implementations(const model_t &m) {
    std::map<std::string, int> layers;
    m.for_linears([&](const linear_t &l) { layers[l.implementation()]++; });
    for (const auto &[name, count] : layers) printf("%5d linear layers: %s\n", count, name.c_str());
    std::map<std::string, int> experts;
    for (const layer_t &l : m.layers)
        if (l.experts) experts[l.experts->implementation()]++;
    for (const auto &[name, count] : experts) printf("%5d expert layers: %s\n", count, name.c_str());
}

} // namespace

void bench(const options_t &o) {
    const auto start = clock_t::now();
    model_t m = load_model(o);
    const config_t &c = m.config;
    printf("loaded in %.1f s: %.2f GB of weights\n", since(start), double(m.bytes()) * 1e-9);
    print_implementations(m);

    const int64_t context = o.context ? o.context : o.prompt + o.tokens;
    session_t s(m, o.batch, context);
    printf("batch %lld, context %lld: cache of %.3f GB\n", (long long)o.batch, (long long)context,
            double(s.cache_bytes()) * 1e-9);
    // Decoding begins after `prompt` tokens; computing all sequences would tell no more.
    std::vector<int32_t> prompt(size_t(std::max<int64_t>(1, std::min(o.prompt, context - o.tokens))));
    for (size_t i = 0; i < prompt.size(); i++) prompt[i] = int32_t(i * 7919 % size_t(c.vocabulary));
    std::vector<session_t::input_t> prompts;
    for (int64_t b = 0; b < o.batch; b++) prompts.push_back({b, prompt});
    const auto ignore = [](int64_t, int64_t, const float *) {};
    double prefill = 1e30, decode = 1e30;
    for (int64_t r = 0; r < o.repeat; r++) {
        s.clear();
        m.engine->wait();
        auto begin = clock_t::now();
        s.feed({prompts[0]}, session_t::wanted_t::last, ignore);
        m.engine->wait();
        prefill = std::min(prefill, since(begin));
        for (size_t b = 1; b < prompts.size(); b++) s.feed({prompts[b]}, session_t::wanted_t::none, ignore);
        const std::vector<int32_t> first(size_t(o.batch), 1);
        s.decode(first, 1); // the first step also makes what is made once
        begin = clock_t::now();
        s.decode(first, o.tokens - 1);
        decode = std::min(decode, since(begin) / double(o.tokens - 1));
    }
    const double limit = m.engine->bandwidth();
    // A step reads all dense weights once, and the experts of its tokens.
    const double bytes = double(m.bytes_for_step(o.batch)) + double(s.cache_bytes_for_step());
    printf("prefill of %zu: %8.2f ms, %8.1f tokens/s\n", prompt.size(), prefill * 1e3,
            double(prompt.size()) / prefill);
    printf("decode of %lld: %8.3f ms for each step, %8.1f tokens/s; %.2f GB/s, %.0f%% of %.2f GB/s\n",
            (long long)o.batch, decode * 1e3, double(o.batch) / decode, bytes / decode * 1e-9,
            bytes / decode / limit * 100, limit * 1e-9);
    print_memory(m);
}

} // namespace llm
