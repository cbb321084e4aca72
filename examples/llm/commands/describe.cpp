// SPDX-License-Identifier: Apache-2.0
// Prints what a model's configuration says, without reading weights.
#include "commands.hpp"

#include <cstdio>

#include "model/config.hpp"

namespace llm {

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
}

} // namespace llm
