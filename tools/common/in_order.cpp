// SPDX-License-Identifier: Apache-2.0
#include "in_order.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace in_order {

namespace {

class runner_t {
public:
    runner_t(size_t count, const job_t &job) : count_(count), job_(job) {}

    // Of one thread, until no job is left.
    void work() {
        for (;;) {
            size_t i;
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (failed_ || begun_ == count_) return;
                i = begun_++;
            }
            try {
                job_(i, [&] { wait_for(i); });
                wait_for(i);
                const std::lock_guard<std::mutex> lock(mutex_);
                ended_++;
            } catch (const cancelled_t &) {
                return;
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!failed_ || i < failed_at_) {
                    failed_at_ = i;
                    failed_ = std::current_exception();
                }
            }
            changed_.notify_all();
        }
    }
    void finish() const {
        if (failed_) std::rethrow_exception(failed_);
    }

private:
    void wait_for(size_t i) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return failed_ || ended_ == i; });
        if (failed_) throw cancelled_t();
    }

    const size_t count_;
    const job_t &job_;
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t begun_ = 0, ended_ = 0, failed_at_ = 0;
    std::exception_ptr failed_;
};

} // namespace

void run(size_t count, unsigned threads, const job_t &job) {
    runner_t runner(count, job);
    std::vector<std::thread> others;
    try {
        for (unsigned i = 1; i < threads && i < count; i++) others.emplace_back([&] { runner.work(); });
    } catch (const std::system_error &) { // fewer will do
    }
    runner.work();
    for (std::thread &t : others) t.join();
    runner.finish();
}

} // namespace in_order
