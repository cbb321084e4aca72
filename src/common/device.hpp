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

// Work on a stream is in order, so one scratchpad serves all its executions, from whatever thread they come.
class device_stream_t {
public:
    virtual ~device_stream_t() = default;
    virtual status_t wait() const = 0;
    // A stream that is recorded into a graph cannot be waited for. True also where the device does not say.
    virtual bool is_capturing() const = 0;
    // Null where no primitive that needs so much has been created.
    virtual char *scratchpad(int64_t bytes) const = 0;
};

// One object per device, never destroyed.
class device_t {
public:
    virtual ~device_t() = default;
    // `of_what` is for the sentence about memory that has run out.
    virtual status_t allocate(void **data, size_t bytes, const char *of_what) const = 0;
    virtual void release(void *data) const = 0; // waits for the device
    // Between the host and the device, in either direction, after all work on the device. Refused in the name
    // of `function` while one of the device's streams is being captured, which waiting would break.
    virtual status_t copy_now(const char *function, void *dst, const void *src, size_t bytes) const = 0;
    virtual status_t create_stream(std::unique_ptr<device_stream_t> &stream) const = 0;
    // Makes every stream of the device, present and future, hold a scratchpad of so many bytes.
    virtual status_t reserve_scratchpad(int64_t bytes) const = 0;
};

} // namespace impl
} // namespace mxdnn
