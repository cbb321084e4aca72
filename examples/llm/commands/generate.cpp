// SPDX-License-Identifier: Apache-2.0
// Continues tokens by the most likely ones.
#include "commands.hpp"

#include <algorithm>
#include <cstdio>

#include "model/session.hpp"

namespace llm {

void generate(const options_t &o) {
    model_t m = load_model(o);
    session_t s(m, 1, o.context ? o.context : int64_t(o.ids.size()) + o.tokens);
    std::vector<int32_t> next = o.ids;
    for (int64_t i = 0; i < o.tokens; i++) {
        s.feed({{0, next}}, session_t::wanted_t::last, [&](int64_t, int64_t, const float *logits) {
            next = {int32_t(std::max_element(logits, logits + m.config.vocabulary) - logits)};
        });
        printf("%s%d", i ? "," : "", next[0]);
        fflush(stdout);
    }
    printf("\n");
    print_memory(m);
}

} // namespace llm
