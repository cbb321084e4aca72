// SPDX-License-Identifier: Apache-2.0
// What the generator and the program agree on, as a compiler and its output would: names, shapes and types.
//
//     y = relu(x * up) * down
#pragma once

#include <mxdnn/mxdnn.hpp>

namespace aot {

constexpr mxdnn::memory::dim rows = 5, in = 160, hidden = 96, out = 72;
constexpr const char *up = "up", *down = "down";

// Small whole numbers, so that every kernel has to give the same sums, to the last bit.
inline float input(mxdnn::memory::dim i) { return static_cast<float>(i * 7 % 13 - 6); }

} // namespace aot
