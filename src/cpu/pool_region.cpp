// SPDX-License-Identifier: Apache-2.0
#include "cpu/pool_region.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "common/error.hpp"

namespace mxdnn {
namespace impl {

namespace {

// One parallel_for. Its address is the context of every call of the pool. The memory of a region is never
// freed; later regions use it again. So a late call finds a closed region and does nothing, or an open one,
// where it takes the place of another call, once.
class region_t {
public:
    // For the thread that owns the region, not for calls of the pool.
    void open(const body_t &body, int n) {
        body_ = body;
        n_ = n;
        left_.store(n, std::memory_order_relaxed);
        wrong_.store(no_index, std::memory_order_relaxed);
        thrown_ = nullptr;
        for (int i = 0; i < n; i += bits) {
            const uint64_t beyond = n - i < bits ? ~uint64_t(0) << (n - i) : 0;
            begun_[i / bits].store(beyond, std::memory_order_release);
        }
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [&] { return left_.load(std::memory_order_acquire) == 0; });
    }
    // Lets no further call begin, and returns when those that have begun are done. Returns the number of
    // missing calls, and the first of them.
    int close(int &first) {
        int missing = 0;
        for (int i = 0; i < n_; i += bits) {
            const uint64_t not_begun = ~begun_[i / bits].exchange(~uint64_t(0), std::memory_order_acq_rel);
            if (not_begun && missing == 0) first = i + __builtin_ctzll(not_begun);
            missing += __builtin_popcountll(not_begun);
        }
        if (missing > 0) left_.fetch_sub(missing, std::memory_order_acq_rel);
        if (left_.load(std::memory_order_acquire) > 0) wait();
        return missing;
    }

    void call(int i) noexcept {
        if (i < 0 || i >= max_threads
                || begun_[i / bits].fetch_or(uint64_t(1) << i % bits, std::memory_order_acq_rel) >> i % bits
                           & 1) {
            wrong_.store(i, std::memory_order_relaxed);
            return;
        }
        try {
            body_(i, n_);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!thrown_) thrown_ = std::current_exception();
        }
        if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
        const std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_all();
    }

    // Called when the region is closed.
    std::exception_ptr thrown() const { return thrown_; }
    bool had_wrong_index(int &i) const {
        const int64_t wrong = wrong_.load(std::memory_order_relaxed);
        i = int(wrong);
        return wrong != no_index;
    }

    region_t *next = nullptr; // the next region that is not in use

private:
    static constexpr int bits = 64;
    static constexpr int64_t no_index = INT64_MIN; // less than any

    struct all_ones_t : std::atomic<uint64_t> {
        all_ones_t() : std::atomic<uint64_t>(~uint64_t(0)) {}
    };
    all_ones_t begun_[max_threads / bits]; // one bit for every call; all ones: no call may begin
    std::atomic<int> left_{0};             // calls that have not returned
    std::atomic<int64_t> wrong_{no_index}; // the index of a call that did nothing
    body_t body_;
    int n_ = 0;
    std::mutex mutex_;
    std::condition_variable done_;
    std::exception_ptr thrown_; // guarded by mutex_
};

// Regions that are not in use. They are never destroyed, because pools may still be at work when the process
// ends.
struct region_list_t {
    std::mutex mutex;
    region_t *first = nullptr;

    region_t *take() {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            if (region_t *r = first) {
                first = r->next;
                return r;
            }
        }
        return new region_t;
    }
    void give(region_t *r) {
        const std::lock_guard<std::mutex> lock(mutex);
        r->next = first;
        first = r;
    }
};
region_list_t &regions() {
    static region_list_t *all = new region_list_t;
    return *all;
}

// A region in use. It closes on every way out, also after an exception of the pool or when the thread ends.
struct open_region_t {
    region_t &region;

    open_region_t(const body_t &body, int n) : region(*regions().take()) { region.open(body, n); }
    ~open_region_t() {
        int first;
        region.close(first);
        regions().give(&region);
    }
};

bool is_status(mxdnn_status_t s) { return s >= mxdnn_success && s <= mxdnn_device_unavailable; }

} // namespace

void run_on_pool(const mxdnn_threadpool_t &pool, int n, const body_t &body) {
    open_region_t open(body, n);
    region_t &r = open.region;
    const mxdnn_status_t status = pool.parallel_for(
            pool.user, n, [](void *region, int i) { static_cast<region_t *>(region)->call(i); }, &r);
    if (status == mxdnn_success && pool.flags & MXDNN_THREADPOOL_ASYNCHRONOUS) {
        if (pool.wait)
            pool.wait(pool.user);
        else
            r.wait();
    }
    int index = 0;
    const int missing = r.close(index);
    if (r.thrown()) std::rethrow_exception(r.thrown());
    if (status != mxdnn_success)
        throw failure_t(is_status(status) ? status : mxdnn_runtime_error,
                "the caller's thread pool did not do all of %d calls: its parallel_for returned %s (%d)", n,
                mxdnn_status2str(status), int(status));
    if (missing > 0)
        throw failure_t(mxdnn_runtime_error,
                "the caller's thread pool did not make %d of %d calls, the first one of index %d, before its %s "
                "returned; it makes each once",
                missing, n, index, pool.wait ? "wait" : "parallel_for");
    if (r.had_wrong_index(index))
        throw failure_t(mxdnn_runtime_error,
                "the caller's thread pool made a call of index %d that was %s; it makes one for each from 0 to %d",
                index, index >= 0 && index < n ? "made before" : "not asked for", n - 1);
}

void prepare_pool_regions() { regions().give(regions().take()); }

} // namespace impl
} // namespace mxdnn
