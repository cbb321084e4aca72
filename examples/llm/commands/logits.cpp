// SPDX-License-Identifier: Apache-2.0
// Writes the logits that follow each token, f32 [tokens, vocabulary].
#include "commands.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "model/session.hpp"

namespace llm {

namespace {

std::vector<int32_t> parse_ids(const std::string &text) {
    std::vector<int32_t> ids;
    for (const char *at = text.c_str(); *at;) {
        char *end = nullptr;
        errno = 0;
        const long id = strtol(at, &end, 10);
        if (end == at || errno || id < 0 || id > INT32_MAX || (*end && *end != ',') || (*end && !end[1]))
            throw std::runtime_error("'" + text + "' is no list of tokens such as 1,2,3");
        ids.push_back(int32_t(id));
        at = *end ? end + 1 : end;
    }
    return ids;
}

} // namespace

void logits(const options_t &o) {
    std::vector<std::vector<int32_t>> ids;
    size_t tokens = 0, longest = 1;
    for (const std::string &text : o.sequences) {
        ids.push_back(parse_ids(text));
        tokens += ids.back().size();
        longest = std::max(longest, ids.back().size());
    }
    model_t m = load_model(o);
    session_t s(m, int64_t(ids.size()), o.context ? o.context : int64_t(longest));
    std::optional<routes_t> routes;
    if (!o.routes.empty()) {
        std::vector<size_t> lengths;
        lengths.reserve(ids.size());
        for (const auto &i : ids) lengths.push_back(i.size());
        s.follow(routes.emplace(o.routes, m.config, lengths));
    }
    // Rows of sequences one after the other, however many tokens of each are computed at once.
    const size_t n = size_t(m.config.vocabulary), step = o.at_once ? size_t(o.at_once) : longest;
    std::vector<size_t> first(ids.size(), 0);
    for (size_t i = 1; i < ids.size(); i++) first[i] = first[i - 1] + ids[i - 1].size();
    FILE *file = fopen(o.output.c_str(), "wb");
    if (!file) throw std::runtime_error("cannot write " + o.output + ": " + strerror(errno));
    size_t written = 0;
    for (size_t at = 0; at < longest; at += step) {
        std::vector<session_t::input_t> inputs;
        for (size_t i = 0; i < ids.size(); i++) {
            const size_t begin = std::min(at, ids[i].size()), end = std::min(at + step, ids[i].size());
            if (begin < end) inputs.push_back({int64_t(i), {ids[i].begin() + begin, ids[i].begin() + end}});
        }
        s.feed(inputs, session_t::wanted_t::all, [&](int64_t sequence, int64_t position, const float *row) {
            const size_t at_row = first[size_t(sequence)] + size_t(position);
            if (fseeko(file, off_t(at_row * n * 4), SEEK_SET) == 0) written += fwrite(row, 4, n, file);
        });
    }
    if (fclose(file) != 0 || written != n * tokens)
        throw std::runtime_error("cannot write " + o.output + ": " + strerror(errno));
    if (routes) routes->save();
    printf("%s: f32 [%zu, %zu]\n", o.output.c_str(), tokens, n);
    print_memory(m);
}

} // namespace llm
