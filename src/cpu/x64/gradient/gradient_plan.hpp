// SPDX-License-Identifier: Apache-2.0
// How gradients of weights are divided into blocks: a pure function of the shape, the kernel, the cache and
// the threads. Sums along the rows do not depend on it.
#pragma once

#include "common/types.hpp"

namespace mxdnn {
namespace impl {
namespace x64 {

struct gradient_shape_t {
    int64_t groups = 0, left = 0, right = 0; // a gradient is [left, right]
};

struct gradient_machine_t {
    int64_t l2 = 0;
    int threads = 1;
    int rows = 1, columns = 16; // of a call of the gemm kernel
};

struct gradient_plan_t {
    int64_t left = 0, right = 0; // a block of a gradient: whole calls
};

// Bytes of a column of either operand that are multiplied together: 256 rows in bf16, 128 in f32. A panel of
// so many rows stays in the first-level cache.
constexpr int64_t gradient_step_bytes = 512;

gradient_plan_t plan_gradient(const gradient_shape_t &shape, const gradient_machine_t &machine);

} // namespace x64
} // namespace impl
} // namespace mxdnn
