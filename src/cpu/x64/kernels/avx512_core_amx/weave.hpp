// SPDX-License-Identifier: Apache-2.0
// Two kinds of instructions, one among the other: the processor does not look far enough ahead to find both.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace mxdnn {
namespace impl {
namespace x64 {

// Generators of instructions that stay together and in order.
using pieces_t = std::vector<std::function<void()>>;

// Generates all pieces of both. Those of `beside` are distributed evenly among the others.
inline void weave(const pieces_t &pieces, const pieces_t &beside) {
    for (size_t i = 0, done = 0; i < pieces.size(); i++) {
        pieces[i]();
        for (; done < beside.size() * (i + 1) / pieces.size(); done++) beside[done]();
    }
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
