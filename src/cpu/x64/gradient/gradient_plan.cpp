// SPDX-License-Identifier: Apache-2.0
#include "cpu/x64/gradient/gradient_plan.hpp"

#include <algorithm>

namespace mxdnn {
namespace impl {
namespace x64 {

namespace {

constexpr int64_t most_left = 196, most_right = 512, least = 64;
constexpr int64_t tasks_per_thread = 4;

// Blocks of about equal length, of whole calls.
int64_t even_blocks(int64_t length, int64_t most, int64_t step) {
    return round_up(div_up(length, div_up(length, most)), step);
}

} // namespace

gradient_plan_t plan_gradient(const gradient_shape_t &s, const gradient_machine_t &m) {
    if (s.left == 0 || s.right == 0) return {m.rows, m.columns};
    int64_t left = most_left;
    // A block of sums in f32 and the two operands of a step are to stay in most of the second-level cache.
    const int64_t cache = m.l2 / 4 * 3 - left * gradient_step_bytes;
    int64_t right = std::clamp(cache / (left * 4 + gradient_step_bytes), least, most_right);
    const auto tasks = [&] { return s.groups * div_up(s.left, left) * div_up(s.right, right); };
    while (tasks() < tasks_per_thread * m.threads && std::max(left, right) > least)
        (right >= left ? right : left) /= 2;
    return {even_blocks(s.left, left, m.rows), even_blocks(s.right, right, m.columns)};
}

} // namespace x64
} // namespace impl
} // namespace mxdnn
