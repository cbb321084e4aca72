// SPDX-License-Identifier: Apache-2.0
// Loops that are worth several threads.
#pragma once

#include <cstdint>

#include "common/on_threads.hpp"

namespace llm {

// Calls body(begin, end) on pieces of [0, n), of at least `grain` items where there are so many.
template <typename F>
void parallel(int64_t n, int64_t grain, const F &body) {
    if (n <= grain) return n > 0 ? body(int64_t(0), n) : void();
    on_threads(n, grain, body);
}

} // namespace llm
