// SPDX-License-Identifier: Apache-2.0
// XLA's threads as a pool of mxdnn.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include <mxdnn/mxdnn_threadpool.hpp>

#include "xla/ffi/api/ffi.h"

namespace mxdnn_jax {

// A call of XLA runs in one of the pool's threads, and all of them may be such calls that wait. So nobody
// waits for a task that has not begun: the calling thread takes whatever index is left, and waits only for
// the indices that others have taken.
class xla_threadpool_t : public mxdnn::threadpool_iface {
public:
    // Valid as long as the call that the pool came with.
    explicit xla_threadpool_t(const xla::ffi::ThreadPool &pool) : pool_(pool) {}

    int get_num_threads() const override { return int(std::clamp<int64_t>(pool_.num_threads(), 1, 1 << 16)); }
    bool get_in_parallel() const override { return false; }
    uint64_t get_flags() const override { return 0; }

    void parallel_for(int n, const std::function<void(int, int)> &fn) override {
        const auto region = std::make_shared<region_t>(n, fn);
        for (int helper = 1; helper < n; helper++) pool_.Schedule([region] { region->take_indices(); });
        region->take_indices();
        region->wait();
    }

private:
    // Tasks may outlive the call: they find no index left and do not touch fn.
    struct region_t {
        region_t(int an, const std::function<void(int, int)> &afn) : n(an), fn(afn), unfinished(an) {}

        void take_indices() {
            for (int i = next++; i < n; i = next++) {
                fn(i, n);
                const std::lock_guard<std::mutex> lock(mutex);
                if (--unfinished == 0) all_done.notify_one();
            }
        }
        void wait() {
            std::unique_lock<std::mutex> lock(mutex);
            all_done.wait(lock, [this] { return unfinished == 0; });
        }

        const int n;
        const std::function<void(int, int)> &fn;
        std::atomic<int> next{0};
        std::mutex mutex;
        std::condition_variable all_done;
        int unfinished;
    };

    mutable xla::ffi::ThreadPool pool_;
};

} // namespace mxdnn_jax
