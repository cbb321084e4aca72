// SPDX-License-Identifier: Apache-2.0
// Engines whose memory is not the host's: what the library asks of such a device and of a stream of work on
// it. A backend derives from both. Where an engine has no device, memory is the host's and executions return
// when they are done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/error.hpp"

namespace mxdnn {
namespace impl {

// Work on a stream is executed in order. So one scratchpad serves all executions of a stream, whichever
// thread starts them.
class device_stream_t {
public:
    virtual ~device_stream_t() = default;
    virtual status_t wait() const = 0;
    // A stream that is being captured into a graph cannot be waited for. True also if the device does not
    // know.
    virtual bool is_capturing() const = 0;
    // Null if no primitive that needs this size has been created.
    virtual char *scratchpad(int64_t bytes) const = 0;
};

// One object per device, never destroyed.
class device_t {
public:
    virtual ~device_t() = default;
    // `of_what` names the buffer in the message for a lack of memory.
    virtual status_t allocate(void **data, size_t bytes, const char *of_what) const = 0;
    virtual void release(void *data) const = 0; // waits until the device is idle
    // Copies between the host and the device, in either direction, after all work of the device. Refused
    // while one of its streams is being captured, because waiting would break the capture. `function` is
    // named in the message.
    virtual status_t copy_now(const char *function, void *dst, const void *src, size_t bytes) const = 0;
    virtual status_t create_stream(std::unique_ptr<device_stream_t> &stream) const = 0;
    // Gives every stream of the device, also later ones, a scratchpad of at least this size.
    virtual status_t reserve_scratchpad(int64_t bytes) const = 0;
};

} // namespace impl
} // namespace mxdnn
