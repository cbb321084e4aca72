// SPDX-License-Identifier: Apache-2.0
// How far packed weights are from the checkpoint that they were made of.
#include "commands.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "checkpoint.hpp"
#include "common/contents.hpp"
#include "compare.hpp"
#include "progress.hpp"
#include "sources.hpp"

namespace mxdnn_pack {

using safetensors::shown;

namespace {

struct compared_t {
    std::string name;
    difference_t difference;
};

// Tensors that were copied.
bool equal_bytes(const checkpoint_t &a, size_t i, const checkpoint_t &b, size_t j) {
    const entry_t &x = a.entries[i], &y = b.entries[j];
    if (x.dtype != y.dtype || x.dims != y.dims || x.size != y.size) return false;
    std::vector<uint8_t> p(size_t(std::min<uint64_t>(x.size, 4 << 20))), q(p.size());
    for (uint64_t at = 0; at < x.size; at += p.size()) {
        const uint64_t n = std::min<uint64_t>(x.size - at, p.size());
        a.read(i, at, n, p.data());
        b.read(j, at, n, q.data());
        if (std::memcmp(p.data(), q.data(), size_t(n)) != 0) return false;
    }
    return true;
}

} // namespace

void diff(const options_t &o) {
    const mxdnn::engine engine = make_engine(o);
    const checkpoint_t input(o.in), original(o.original);
    const auto weights = find_weights(original, o, [&](const std::string &name) {
        const std::optional<size_t> i = input.find(name);
        return i && input.entries[*i].is_packed;
    });
    const unsigned threads = use_threads(o);
    uint64_t total = 0, done = 0;
    for (const entry_t &e : input.entries) total += e.size;
    progress_t progress("comparing " + input.path, total);
    std::vector<compared_t> compared;
    size_t copied = 0;
    std::vector<std::string> changed, absent;
    for (size_t i = 0; i < input.entries.size(); i++) {
        const entry_t &e = input.entries[i];
        if (e.is_packed) {
            const auto it = weights.find(e.name);
            if (it == weights.end()) {
                absent.push_back(e.name);
                continue;
            }
            safetensors::check_usable(
                    input.path + ": packed tensor " + shown(e.name), input.desc_of(e), engine);
            compared.push_back({e.name, compare(input, i, it->second, engine, o, threads)});
        } else if (const std::optional<size_t> j = original.find(e.name)) {
            (equal_bytes(input, i, original, *j) ? (void)copied++ : changed.push_back(e.name));
        } else {
            absent.push_back(e.name);
        }
        progress.update(done += e.size);
    }
    std::stable_sort(compared.begin(), compared.end(), [](const compared_t &a, const compared_t &b) {
        return a.difference.decibels() < b.difference.decibels();
    });
    for (const compared_t &c : compared)
        printf("%s  %s\n", shown(c.name).c_str(), c.difference.text().c_str());
    for (const std::string &name : changed) printf("%s  copied, and other bytes\n", shown(name).c_str());
    for (const std::string &name : absent) printf("%s  not in the original\n", shown(name).c_str());
    printf("%zu packed tensors compared, %zu copied ones equal, %zu changed, %zu not in %s\n",
            compared.size(), copied, changed.size(), absent.size(), original.path.c_str());
}

} // namespace mxdnn_pack
