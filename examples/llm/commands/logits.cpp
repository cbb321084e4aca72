// SPDX-License-Identifier: Apache-2.0
// Writes the logits that follow each token, f32 [tokens, vocabulary].
#include "commands.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "common/replaced_file.hpp"
#include "model/session.hpp"

namespace llm {

void logits(const options_t &o) {
    model_t m = load_model(o);
    const int64_t tokens = int64_t(o.ids.size());
    session_t s(m, 1, std::max<int64_t>(tokens, 1));
    FILE *file = fopen(o.output.c_str(), "wb");
    if (!file) throw std::runtime_error("cannot write " + o.output + ": " + strerror(errno));
    size_t written = 0;
    const size_t n = size_t(m.config.vocabulary);
    s.feed({{0, o.ids}}, session_t::wanted_t::all,
            [&](int64_t, int64_t, const float *row) { written += fwrite(row, 4, n, file); });
    if (fclose(file) != 0 || written != n * size_t(tokens))
        throw std::runtime_error("cannot write " + o.output + ": " + strerror(errno));
    printf("%s: f32 [%lld, %zu]\n", o.output.c_str(), (long long)tokens, n);
}

} // namespace llm
