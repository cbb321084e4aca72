// SPDX-License-Identifier: Apache-2.0
// How long pieces of work in a stream take.
#pragma once

#include <functional>
#include <vector>

#include <mxdnn/mxdnn.hpp>

// Medians of each piece's time, the pieces in turn, for about budget_ms all together. On a CUDA device every
// piece is captured into a CUDA graph, and replays are timed.
std::vector<double> median_ms(
        mxdnn::stream &s, const std::vector<std::function<void()>> &work, double budget_ms);
