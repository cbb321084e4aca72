// SPDX-License-Identifier: Apache-2.0
// The library's scratchpads on the host: buffers of the thread that executes, which only grow.
#pragma once

#include <cstdint>

namespace mxdnn {
namespace impl {

struct scratch_buffer_t;

// An execution's own buffer while it runs. Another execution that begins in the same thread meanwhile,
// because the thread takes other work while it waits for a pool, gets another one.
class scratchpad_t {
public:
    scratchpad_t() = default;
    scratchpad_t(const scratchpad_t &) = delete;
    scratchpad_t &operator=(const scratchpad_t &) = delete;
    ~scratchpad_t(); // in any thread

    // 64-byte aligned; null where memory has run out. Once.
    char *take(int64_t bytes);

private:
    scratch_buffer_t *buffer_ = nullptr;
};

// Grows a buffer of this thread, so that its next execution that needs so much allocates nothing. False where
// memory has run out.
bool reserve_scratchpad(int64_t bytes);

} // namespace impl
} // namespace mxdnn
