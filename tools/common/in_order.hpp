// SPDX-License-Identifier: Apache-2.0
// Work of several threads whose results belong in an order.
#pragma once

#include <cstddef>
#include <functional>

namespace in_order {

// Returns when all jobs before have ended.
using turn_t = std::function<void()>;
using job_t = std::function<void(size_t index, const turn_t &wait_for_turn)>;

// Does jobs 0 to count - 1, begun in that order. Each counts as ended when all before it have, too. After an
// exception no further one begins, and that of the first job that has one is thrown here; wait_for_turn()
// then throws cancelled_t, which jobs let through.
void run(size_t count, unsigned threads, const job_t &job);

struct cancelled_t {};

} // namespace in_order
