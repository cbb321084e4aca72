// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>

#include "common/env.hpp"
#include "common/types.hpp"
#include "gpu/cuda/interface/cuda_table.hpp"
#include "gpu/cuda/library.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

struct devices_t {
    std::deque<device_t> all; // addresses do not change
    std::string why_none;
};

devices_t *find_devices() {
    auto *d = new devices_t;
    const table_t *table = open_library(environment().cuda_library, d->why_none);
    if (!table) return d;
    int count = 0;
    const result_t r = table->device_count(&count);
    if (!r.ok()) {
        d->why_none = r.text;
        return d;
    }
    d->why_none = "the CUDA driver finds no device";
    for (int i = 0; i < count; i++) {
        device_t device;
        device.index = i;
        device.table = table;
        if (!table->device_info(i, &device.info).ok()) continue;
        device.arch = find_arch(device.info);
        d->all.push_back(device);
    }
    return d;
}

// Never destroyed, because destructors that run at exit may release streams and memory.
const devices_t &devices() {
    static const devices_t *d = find_devices();
    return *d;
}

// All existing streams, and the scratchpad size that those of each device must have.
struct scratchpads_t {
    std::mutex mutex;
    std::vector<cuda_stream_t *> streams;
    std::vector<int64_t> bytes; // by device
};

scratchpads_t &scratchpads() {
    static auto *s = new scratchpads_t;
    return *s;
}

} // namespace

size_t device_count(const char **why_none) {
    if (why_none) *why_none = devices().why_none.c_str();
    return devices().all.size();
}

const device_t *find_device(size_t index) {
    const auto &all = devices().all;
    return index < all.size() ? &all[index] : nullptr;
}

status_t check(const result_t &r, const char *what) {
    return r.ok() ? mxdnn_success : fail(r.status, "%s: %s", what, r.text);
}

// ---- devices ----

status_t device_t::allocate(void **data, size_t bytes, const char *of_what) const {
    const result_t r = table->allocate(index, data, bytes);
    return r.ok() ? mxdnn_success
                  : fail(r.status, "no device memory for %zu bytes of %s: %s", bytes, of_what, r.text);
}

void device_t::release(void *data) const { table->release_memory(index, data); }

status_t device_t::copy_now(const char *function, void *dst, const void *src, size_t bytes) const {
    MXDNN_CHECK(check_no_capture(function));
    return bytes ? check(table->copy_now(index, dst, src, bytes), function) : mxdnn_success;
}

status_t device_t::create_stream(std::unique_ptr<device_stream_t> &stream) const {
    void *handle = nullptr;
    MXDNN_CHECK(check(table->stream_create(index, &handle), "mxdnn_stream_create"));
    return cuda_stream_t::create(stream, *this, handle, true);
}

status_t device_t::reserve_scratchpad(int64_t bytes) const {
    scratchpads_t &all = scratchpads();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (all.bytes.size() <= size_t(index)) all.bytes.resize(index + 1, 0);
    for (cuda_stream_t *s : all.streams)
        if (s->device_.index == index) MXDNN_CHECK(s->grow(bytes));
    all.bytes[index] = std::max(all.bytes[index], bytes);
    return mxdnn_success;
}

status_t device_t::check_no_capture(const char *what) const {
    const auto check_stream = [&](void *stream) -> status_t {
        bool capturing = false;
        (void)table->stream_is_capturing(index, stream, &capturing);
        if (!capturing) return mxdnn_success;
        return fail(mxdnn_invalid_arguments,
                "%s waits for device %d, which would break the capture of one of its streams; end that first",
                what, index);
    };
    MXDNN_CHECK(check_stream(nullptr)); // the legacy stream knows about blocking streams of the caller
    scratchpads_t &all = scratchpads();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const cuda_stream_t *s : all.streams)
        if (s->device_.index == index) MXDNN_CHECK(check_stream(s->handle()));
    return mxdnn_success;
}

// ---- streams ----

status_t cuda_stream_t::create(
        std::unique_ptr<device_stream_t> &stream, const device_t &device, void *handle, bool owned) {
    std::unique_ptr<cuda_stream_t> s(new cuda_stream_t(device, handle, owned));
    scratchpads_t &all = scratchpads();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (size_t(device.index) < all.bytes.size()) MXDNN_CHECK(s->grow(all.bytes[device.index]));
    all.streams.push_back(s.get());
    stream = std::move(s);
    return mxdnn_success;
}

cuda_stream_t::~cuda_stream_t() {
    scratchpads_t &all = scratchpads();
    {
        const std::lock_guard<std::mutex> lock(all.mutex);
        all.streams.erase(std::remove(all.streams.begin(), all.streams.end(), this), all.streams.end());
    }
    for (const auto &b : buffers_) device_.table->release_memory(device_.index, b->data);
    if (owned_) device_.table->stream_destroy(device_.index, handle_);
}

status_t cuda_stream_t::wait() const {
    return check(device_.table->stream_wait(device_.index, handle_), "mxdnn_stream_wait");
}

bool cuda_stream_t::is_capturing() const {
    bool capturing = false;
    return !device_.table->stream_is_capturing(device_.index, handle_, &capturing).ok() || capturing;
}

char *cuda_stream_t::scratchpad(int64_t bytes) const {
    const buffer_t *b = current_.load(std::memory_order_acquire);
    return b && b->bytes >= bytes ? b->data : nullptr;
}

status_t cuda_stream_t::grow(int64_t bytes) {
    if (bytes == 0 || scratchpad(bytes)) return mxdnn_success;
    // At least twice the previous size, so that outgrown buffers together are not larger than the last one.
    if (!buffers_.empty()) bytes = std::max(bytes, 2 * buffers_.back()->bytes);
    auto b = std::make_unique<buffer_t>();
    void *p = nullptr;
    MXDNN_CHECK(check(device_.table->allocate(device_.index, &p, size_t(bytes)), "a stream's scratchpad"));
    *b = {static_cast<char *>(p), bytes};
    buffers_.push_back(std::move(b));
    current_.store(buffers_.back().get(), std::memory_order_release);
    return mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
