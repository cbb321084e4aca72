// SPDX-License-Identifier: Apache-2.0
// Tasks that threads share. Each one has a range of them, so that it keeps its part of the operands in its
// caches. A thread that is done takes tasks of others: threads are not equally fast, and cores have other
// work.
#pragma once

#include <atomic>
#include <cstdint>
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

    // In memory for so many shares. first(i) is the first task of thread i; first(threads) is the number of
    // tasks.
    template <typename F>
    task_shares_t(share_t *memory, int threads, F first) : shares_(memory), threads_(threads) {
        for (int i = 0; i < threads; i++) new (memory + i) share_t{{first(i)}, first(i + 1)};
    }

    // What a thread does: f(task) for its own share, then for tasks that others have left.
    template <typename F>
    void run(int ithr, F f) {
        for (int i = 0; i < threads_; i++) {
            share_t &share = shares_[(ithr + i) % threads_];
            for (int64_t t; (t = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) f(t);
        }
    }

private:
    share_t *const shares_;
    const int threads_;
};

} // namespace x64
} // namespace impl
} // namespace mxdnn
