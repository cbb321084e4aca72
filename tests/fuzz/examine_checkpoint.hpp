// SPDX-License-Identifier: Apache-2.0
// What has to hold of every checkpoint that mxdnn-pack opens.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "mxdnn-pack/sources.hpp"

namespace fuzz {

using namespace mxdnn_pack;
using namespace weight_formats;

// Every weight has as many bytes as its descriptor says, and no more elements than the file has room for.
inline void examine_checkpoint(const std::string &path, uint64_t most_elements) {
    static const mxdnn::engine engine(mxdnn::engine::kind::cpu, 0);
    const checkpoint_t checkpoint(path);
    options_t o;
    o.requantise = true;
    const sources_t sources = find_sources(checkpoint, o);
    for (const source_t &s : sources.packed) {
        FUZZ_CHECK(!s.shape.is_empty() && !s.name.empty() && !s.entries.empty());
        for (const size_t i : s.entries) FUZZ_CHECK(i < checkpoint.entries.size());
        FUZZ_CHECK(
                uint64_t(s.shape.matrices()) * uint64_t(s.shape.out) * uint64_t(s.shape.in) <= most_elements);
        const format_t f = s.format ? *s.format : s.nearest ? *s.nearest : find_format("nvfp4");
        const packing_t packing = packing_of(s, 1, f, engine, default_rounding);
        uint64_t size = 0;
        for (size_t i = 0; i < packing.parts(); i++)
            packing.make(i, [&](const void *, uint64_t count) { size += count; });
        FUZZ_CHECK(size == packed_desc(f, engine, s.shape).get_size());
        std::vector<float> values;
        read_f32(s, {s.shape.matrices() - 1, 0, std::min<int64_t>(s.shape.out, 64)}, values);
    }
}

inline void refused_or(const std::function<void()> &call) {
    try {
        call();
    } catch (const std::exception &e) {
        FUZZ_CHECK(is_sentence(e.what()));
    }
}

} // namespace fuzz
