// SPDX-License-Identifier: Apache-2.0
// Measures prefill and decode, next to what the memory can deliver.
#include "commands.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "engine/stopwatch.hpp"
#include "model/session.hpp"

namespace llm {

namespace {

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

namespace {

// Operations of matmuls for a token of a prompt; attention is left out.
double operations(const config_t &c) {
    const double H = double(c.hidden), I = double(c.intermediate), E = double(c.experts);
    const double mlp = c.experts ? double(c.topk) * 3 * H * I + H * E : 3 * H * I;
    return 2 * double(c.layers.size()) * (H * double(c.qkv()) + double(c.heads * c.head_size) * H + mlp);
}

std::vector<int32_t> made_up(size_t count, const config_t &c) {
    std::vector<int32_t> ids(count);
    for (size_t i = 0; i < count; i++) ids[i] = int32_t(i * 7919 % size_t(c.vocabulary));
    return ids;
}

const auto ignore = [](int64_t, int64_t, const float *) {};

void measure_prefill(model_t &m, const options_t &o) {
    session_t s(m, 1, o.prompt);
    const auto prompt = made_up(size_t(o.prompt), m.config);
    double best = 1e30;
    for (int64_t r = 0; r <= o.repeat; r++) {
        s.clear();
        m.engine->wait();
        const stopwatch_t watch(o.has_cpu_time);
        s.feed({{0, prompt}}, session_t::wanted_t::last, ignore);
        m.engine->wait();
        if (r) best = std::min(best, watch.seconds()); // the first time also makes what is made once
    }
    const double rate = double(o.prompt) / best, operations_rate = rate * operations(m.config);
    printf("prefill of %lld: %.2f ms, %.1f tokens/s, %.3f TFLOPS", (long long)o.prompt, best * 1e3, rate,
            operations_rate * 1e-12);
    if (const double limit = m.engine->matmul_rate(); limit > 0)
        printf(" (%.0f%% of the %.1f of a large bf16 matmul)", operations_rate / limit * 100, limit * 1e-12);
    printf("\n");
}

void measure_decode(model_t &m, const options_t &o, int64_t batch, double limit) {
    // Steps that show what a step reads; others are timed.
    const int64_t counted = std::min<int64_t>(4, o.tokens),
                  context = std::max(o.context, counted + o.tokens + 1);
    session_t s(m, batch, context);
    // The last steps reach the end of the context.
    const auto prompt = made_up(size_t(context - counted - o.tokens), m.config);
    for (int64_t b = 0; b < batch; b++) s.feed({{b, prompt}}, session_t::wanted_t::none, ignore);
    const std::vector<int32_t> first = made_up(size_t(batch), m.config);
    const int64_t before = std::min<int64_t>(2, o.tokens - 1), steps = o.tokens - before;
    session_t::chosen_t chosen;
    s.decode(first, counted, &chosen);
    s.decode(first, before);
    // Steps differ by little; the best of some parts is one without a disturbance.
    double best = 1e30;
    for (int64_t done = 0; done < steps;) {
        const int64_t n = std::min(std::max<int64_t>(1, steps / o.repeat), steps - done);
        const stopwatch_t watch(o.has_cpu_time);
        s.decode(first, n);
        best = std::min(best, watch.seconds() / double(n));
        done += n;
    }
    const double bytes = double(m.linear_bytes()) + double(chosen.bytes) / double(counted)
                         + double(s.cache_bytes_for_step());
    printf("decode of %lld at %lld: %.3f ms a step, %.1f tokens/s, %.1f GB/s (%.0f%% of %.1f)",
            (long long)batch, (long long)context, best * 1e3, double(batch) / best, bytes / best * 1e-9,
            bytes / best / limit * 100, limit * 1e-9);
    if (chosen.experts)
        printf("; %.1f experts a layer",
                double(chosen.experts) / double(counted * int64_t(m.config.layers.size())));
    printf("; cache of %.2f GB", double(s.cache_bytes()) * 1e-9);
    if (const size_t device = m.engine->device_bytes())
        printf(", device memory %.2f GB", double(device) * 1e-9);
    printf("\n");
    fflush(stdout);
}

} // namespace

void bench(const options_t &o) {
    const stopwatch_t watch;
    model_t m = load_model(o);
    printf("loaded in %.1f s: %.2f GB of weights\n", watch.seconds(), double(m.bytes()) * 1e-9);
    print_implementations(m);
    measure_prefill(m, o);
    const double limit = m.engine->bandwidth(o.has_cpu_time);
    for (const int64_t batch : o.batches) measure_decode(m, o, batch, limit);
    print_memory(m);
}

} // namespace llm
