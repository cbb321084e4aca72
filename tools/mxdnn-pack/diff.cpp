// SPDX-License-Identifier: Apache-2.0
// How far packed weights are from the checkpoint that they were made of.
#include "commands.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "checkpoint.hpp"
#include "common/contents.hpp"
#include "common/in_order.hpp"
#include "progress.hpp"
#include "sources.hpp"

namespace mxdnn_pack {

using namespace weight_formats;
using dt = mxdnn::memory::data_type;
using safetensors::shown;

namespace {

// Sums over the weights of a tensor.
struct sums_t {
    double signal = 0, noise = 0;
    uint64_t not_finite = 0; // on one side only, or another value
    bool equal = true;

    void add(const float *original, const float *packed, size_t count) {
        for (size_t i = 0; i < count; i++) {
            const double x = double(original[i]), y = double(packed[i]);
            if (x == y || (std::isnan(x) && std::isnan(y))) {
                if (std::isfinite(x)) signal += x * x;
                continue;
            }
            equal = false;
            if (std::isfinite(x) && std::isfinite(y)) {
                signal += x * x;
                noise += (x - y) * (x - y);
            } else {
                not_finite++;
            }
        }
    }
    // Lower is worse.
    double decibels() const {
        if (not_finite) return -INFINITY;
        return equal ? INFINITY : 10 * std::log10(signal / noise);
    }
};

struct compared_t {
    std::string name;
    sums_t sums;
};

sums_t compare(const checkpoint_t &input, size_t entry, const source_t &original, const mxdnn::engine &engine,
        const options_t &o, unsigned threads) {
    const mxdnn::memory::desc desc = input.desc_of(input.entries[entry]);
    const std::optional<shape_t> shape = shape_of(desc);
    const shape_t &s = original.shape;
    if (!shape || shape->experts != s.experts || shape->out != s.out || shape->in != s.in)
        throw std::runtime_error("packed weights " + shown(original.name) + " are " + desc.to_string()
                                 + ", and the original is " + std::to_string(s.out) + " x "
                                 + std::to_string(s.in)
                                 + " (out x in); --transposed says which originals are [in, out]");
    const unpacking_t unpacking(uint64_t(o.part_mib) << 20, desc, engine, input.reader(entry), dt::f32);
    if (unpacking.parts() && !unpacking.has_pieces())
        throw std::runtime_error("packed weights " + shown(original.name)
                                 + " have no format that diff knows: " + desc.to_string());
    sums_t sums;
    in_order::run(unpacking.parts(), threads, [&](size_t part, const in_order::turn_t &wait_for_turn) {
        std::vector<float> given;
        read_f32(original, unpacking.piece(part), given);
        unpacking.make(part, [&](const void *values, uint64_t size) {
            wait_for_turn();
            sums.add(given.data(), static_cast<const float *>(values),
                    std::min(given.size(), size_t(size / 4)));
        });
    });
    return sums;
}

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
    std::stable_sort(compared.begin(), compared.end(),
            [](const compared_t &a, const compared_t &b) { return a.sums.decibels() < b.sums.decibels(); });
    for (const compared_t &c : compared) {
        const std::string name = shown(c.name);
        if (c.sums.not_finite)
            printf("%s  %" PRIu64 " weights that are not finite on one side\n", name.c_str(),
                    c.sums.not_finite);
        else if (c.sums.equal)
            printf("%s  equal\n", name.c_str());
        else
            printf("%s  %.2f dB\n", name.c_str(), c.sums.decibels());
    }
    for (const std::string &name : changed) printf("%s  copied, and other bytes\n", shown(name).c_str());
    for (const std::string &name : absent) printf("%s  not in the original\n", shown(name).c_str());
    printf("%zu packed tensors compared, %zu copied ones equal, %zu changed, %zu not in %s\n",
            compared.size(), copied, changed.size(), absent.size(), original.path.c_str());
}

} // namespace mxdnn_pack
