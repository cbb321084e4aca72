// SPDX-License-Identifier: Apache-2.0
// Prints what a model's configuration says, and the memory that follows from it, without reading weights.
#include "commands.hpp"

#include <cstdio>

#include "common/weight_formats.hpp"
#include "model/config.hpp"

namespace llm {

namespace {

using weight_formats::shape_t;

constexpr double gb = 1e-9;

// As the library packs it for this machine, with padding.
double packed_size(const char *format, const shape_t &shape) {
    const mxdnn::engine cpu(mxdnn::engine::kind::cpu, 0);
    return double(weight_formats::packed_desc(weight_formats::find_format(format), cpu, shape).get_size());
}

void print_memory_of(const config_t &c) {
    const double layers = double(c.layers.size()), table = double(c.vocabulary * c.hidden);
    const double attention = double(c.hidden * (c.qkv() + c.heads * c.head_size)) * layers;
    printf("%-28s %10s %10s\n", "memory in GB", "bf16", "mxfp4");
    const auto row = [](const char *what, double values, double packed) {
        printf("%-28s %10.3f %10.3f\n", what, values * 2 * gb, packed * gb);
    };
    const int64_t H = c.hidden, I = c.intermediate, E = c.experts;
    if (E)
        row("experts", double(3 * H * I * E) * layers,
                (packed_size("mxfp4", shape_t::batch(E, 2 * I, H))
                        + packed_size("mxfp4", shape_t::batch(E, H, I)))
                        * layers);
    else
        row("MLPs", double(3 * H * I) * layers,
                (packed_size("mxfp4", shape_t::matrix(2 * I, H))
                        + packed_size("mxfp4", shape_t::matrix(H, I)))
                        * layers);
    row("attention", attention,
            (packed_size("mxfp4", shape_t::matrix(c.qkv(), H))
                    + packed_size("mxfp4", shape_t::matrix(H, c.heads * c.head_size)))
                    * layers);
    row("head", table, packed_size("mxfp4", shape_t::matrix(c.vocabulary, H)));
    printf("%-28s %10.3f\n", c.has_tied_head ? "embedding (of a device)" : "embedding", table * 2 * gb);
    printf("%-28s %10.6f\n", "cache, a token of all layers",
            layers * double(4 * c.kv_heads * c.head_size) * gb);
}

} // namespace

void describe(const options_t &o) {
    const config_t c = read_config(o.model);
    printf("%s: %lld layers, hidden %lld, %lld query and %lld key-value heads of %lld, vocabulary %lld\n",
            c.family.c_str(), (long long)c.layers.size(), (long long)c.hidden, (long long)c.heads,
            (long long)c.kv_heads, (long long)c.head_size, (long long)c.vocabulary);
    if (c.experts)
        printf("%lld experts of %lld, %lld for each token\n", (long long)c.experts, (long long)c.intermediate,
                (long long)c.topk);
    else
        printf("intermediate %lld\n", (long long)c.intermediate);
    int windowed = 0;
    for (const auto &l : c.layers) windowed += l.window > 0;
    if (windowed)
        printf("%d layers see a window of %lld positions\n", windowed, (long long)c.layers[0].window);
    printf("up to %lld positions\n", (long long)c.positions);
    print_memory_of(c);
}

} // namespace llm
