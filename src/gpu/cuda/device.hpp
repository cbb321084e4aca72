// SPDX-License-Identifier: Apache-2.0
// CUDA devices as libmxdnn sees them: found through libmxdnn_cuda, which is opened when the first one is
// asked for.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "common/error.hpp"
#include "gpu/cuda/cuda_types.hpp"
#include "gpu/cuda/kernel_list.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

struct table_t;

// One per device, made once and never destroyed.
struct device_t {
    int index = 0;
    device_info_t info{};
    const table_t *table = nullptr;

    launch_t on(void *stream) const { return {index, info.sm_count, info.compute_major, stream}; }
};

// Devices that kernels run on; 0, and a sentence that says what is missing, where there are none.
size_t device_count(const char **why_none = nullptr);
const device_t *find_device(size_t index); // null beyond the last

// What is assumed of a device that is described but not present; arch is 80, 90, 100 or 120.
device_info_t assumed_device(int arch);
// The architecture whose target stands for a device, or 0 for one that is too old.
int arch_of(const device_info_t &info);
// The compute capability (80 for 8.0) from which on libmxdnn_cuda has code for devices.
int least_capability(const device_t &device);

// The status of a call into the table, with its words as the last error.
status_t check(const result_t &r, const char *what);

// A stream's own state: the stream itself, and the scratchpad of the primitives that run on it. Work on a
// stream is in order, so one buffer serves all its executions, from whatever thread they come.
class stream_state_t {
public:
    // Takes over `handle` when `owned`.
    static status_t create(
            std::unique_ptr<stream_state_t> &state, const device_t &device, void *handle, bool owned);
    ~stream_state_t();

    const device_t &device() const { return device_; }
    void *handle() const { return handle_; }
    launch_t launch() const { return device_.on(handle_); }
    // The kernel that the library launched last here: what one that starts before it ends may rely on.
    kernel_id_t last_kernel() const { return last_kernel_; }
    void note_kernel(kernel_id_t id) const { last_kernel_ = id; }
    // Null where no primitive that needs so much has been created.
    char *scratchpad(int64_t bytes) const;

private:
    friend status_t reserve_scratchpad(const device_t &device, int64_t bytes);
    stream_state_t(const device_t &device, void *handle, bool owned)
        : device_(device), handle_(handle), owned_(owned) {}
    status_t grow(int64_t bytes);

    struct buffer_t {
        char *data;
        int64_t bytes;
    };
    const device_t &device_;
    void *handle_;
    bool owned_;
    // Outgrown buffers stay: captured graphs may name them.
    std::vector<std::unique_ptr<buffer_t>> buffers_;
    std::atomic<const buffer_t *> current_{nullptr};
    mutable std::atomic<kernel_id_t> last_kernel_{kernel_id_t::empty};
};

// Makes every stream of the device, present and future, hold a scratchpad of so many bytes.
status_t reserve_scratchpad(const device_t &device, int64_t bytes);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
