// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llm {

// y = x / sqrt(mean(x^2) + eps) * weight, of rows as long as `weight`; y has the engine's activation type.
struct norm_t {
    const float *x = nullptr, *weight = nullptr;
    float eps = 0;
    void *y = nullptr;
};

} // namespace llm
