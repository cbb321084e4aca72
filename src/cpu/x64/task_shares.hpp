// SPDX-License-Identifier: Apache-2.0
// Tasks that threads share. Each one has a range of them, so that it keeps its part of the operands in its
// caches. A thread that is done takes tasks of others: threads are not equally fast, and cores have other
// work. Where there are several parts with the same tasks each, it then begins with the next part, whether or
// not others have finished theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <new>

namespace mxdnn {
namespace impl {
namespace x64 {

class task_shares_t {
public:
    // The rest of a thread's share, on a cache line of its own.
    struct alignas(64) share_t {
        std::atomic<int64_t> next;
        int64_t end;
    };

    // In memory for so many shares of each part. first(i) is the first task of thread i; first(threads) is
    // the number of tasks of a part.
    template <typename F>
    task_shares_t(share_t *memory, int threads, int parts, F first)
        : shares_(memory), threads_(threads), parts_(parts) {
        for (int p = 0; p < parts; p++)
            for (int i = 0; i < threads; i++) new (memory++) share_t{{first(i)}, first(i + 1)};
    }

    // What a thread does: f(part, task) for its own share of a part, then for tasks that others have left.
    template <typename F>
    void run(int ithr, F f) {
        for (int p = 0; p < parts_; p++)
            for (int i = 0; i < threads_; i++) {
                share_t &share = shares_[p * threads_ + (ithr + i) % threads_];
                for (int64_t t; (t = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
                    f(p, t);
            }
    }

    // The same with one part, for a thread that prepares what tasks need: f(task). Of others it takes tasks
    // for which ready(task) is true first, then any of a share of which at least `least` tasks are left.
    template <typename R, typename F>
    void run_prepared(int ithr, int64_t least, R ready, F f) {
        for (const bool any : {false, true})
            for (int i = 0; i < threads_; i++) {
                share_t &share = shares_[(ithr + i) % threads_];
                for (;;) {
                    int64_t t = share.next.load(std::memory_order_relaxed);
                    if (t >= share.end || (i > 0 && !ready(t) && (!any || share.end - t < least))) break;
                    t = share.next.fetch_add(1, std::memory_order_relaxed);
                    if (t >= share.end) break;
                    f(t);
                }
            }
    }

private:
    share_t *const shares_;
    const int threads_, parts_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
