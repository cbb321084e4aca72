// SPDX-License-Identifier: Apache-2.0
// The library's scratchpads on the host: buffers of the thread that executes, which only grow.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {

struct scratch_buffer_t;

// The buffer of one execution while it runs. Another execution may begin in the same thread meanwhile,
// because the thread does other work while it waits for a pool. It gets another buffer.
class scratchpad_t {
public:
    scratchpad_t() = default;
    scratchpad_t(const scratchpad_t &) = delete;
    scratchpad_t &operator=(const scratchpad_t &) = delete;
    ~scratchpad_t(); // any thread may call it

    // 64-byte aligned; null if memory has run out. Called once.
    char *take(int64_t bytes);

private:
    scratch_buffer_t *buffer_ = nullptr;
};

// Grows a buffer of this thread, so that its next execution of this size allocates nothing. False if memory
// has run out.
bool reserve_scratchpad(int64_t bytes);

} // namespace impl
} // namespace mxdnn
