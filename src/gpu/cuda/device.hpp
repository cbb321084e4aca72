// SPDX-License-Identifier: Apache-2.0
// CUDA devices as libmxdnn sees them: found through libmxdnn_cuda, which is opened when the first one is
// asked for.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "common/engine.hpp"
#include "gpu/cuda/arch.hpp"
#include "gpu/cuda/interface/cuda_types.hpp"
#include "gpu/cuda/interface/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct table_t;

struct device_t final : impl::device_t {
    int index = 0;
    device_info_t info{};
    const table_t *table = nullptr;

    const arch_t *arch = nullptr; // null: too old

    launch_t on(void *stream) const {
        launch_t at{};
        at.device = index;
        at.sm_count = info.sm_count;
        at.capability = info.capability();
        at.stream = stream;
        return at;
    }

    status_t allocate(void **data, size_t bytes, const char *of_what) const override;
    void release(void *data) const override;
    status_t copy_now(const char *function, void *dst, const void *src, size_t bytes) const override;
    status_t create_stream(std::unique_ptr<device_stream_t> &stream) const override;
    status_t reserve_scratchpad(int64_t bytes) const override;
    // Fails while a stream of the device is being captured: one that the library knows, or any blocking one.
    // `what` waits for the device, which would break the capture.
    status_t check_no_capture(const char *what) const;
};

// The device of an engine; null if it has none. Only for CUDA engines.
inline const device_t *device_of(const engine_t &engine) {
    return static_cast<const device_t *>(engine.device);
}

// The number of devices that kernels run on. 0, with a message that says what is missing, if there are none.
size_t device_count(const char **why_none = nullptr);
const device_t *find_device(size_t index); // null beyond the last

// The status of a call of the table, with its text as the last error.
status_t check(const result_t &r, const char *what);

// A CUDA stream and the scratchpad of the primitives that run on it.
class cuda_stream_t final : public device_stream_t {
public:
    // Owns `handle` if `owned`.
    static status_t create(
            std::unique_ptr<device_stream_t> &stream, const device_t &device, void *handle, bool owned);
    ~cuda_stream_t() override;

    status_t wait() const override;
    bool is_capturing() const override;
    char *scratchpad(int64_t bytes) const override;

    const device_t &device() const { return device_; }
    void *handle() const { return handle_; }
    launch_t launch() const { return device_.on(handle_); }
    // The kernel that the library launched last on this stream. A kernel that starts early depends on it.
    kernel_id_t last_kernel() const { return last_kernel_; }
    void note_kernel(kernel_id_t id) const { last_kernel_ = id; }

private:
    friend device_t;
    cuda_stream_t(const device_t &device, void *handle, bool owned)
        : device_(device), handle_(handle), owned_(owned) {}
    status_t grow(int64_t bytes);

    struct buffer_t {
        char *data;
        int64_t bytes;
    };
    const device_t &device_;
    void *handle_;
    bool owned_;
    // Outgrown buffers are kept, because captured graphs may refer to them.
    std::vector<std::unique_ptr<buffer_t>> buffers_;
    std::atomic<const buffer_t *> current_{nullptr};
    mutable std::atomic<kernel_id_t> last_kernel_{kernel_id_t::empty};
};

// Only for streams of CUDA devices.
inline const cuda_stream_t &cuda_stream_of(const stream_t &stream) {
    return static_cast<const cuda_stream_t &>(*stream.device);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
