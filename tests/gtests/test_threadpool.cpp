// SPDX-License-Identifier: Apache-2.0
// Executing on the caller's threads: pools of any size and habit give the bits that the library's
// own threads give.
#include "mxdnn/mxdnn_threadpool.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "test_api_util.hpp"

using namespace api_test;

namespace {

// Workers and a queue; the caller helps, unless the pool is asynchronous.
class pool_t : public mxdnn::threadpool_iface {
public:
    explicit pool_t(int n, bool asynchronous = false) : n_(n), asynchronous_(asynchronous) {
        for (int i = asynchronous ? 0 : 1; i < n; i++) workers_.emplace_back([this] { work(); });
    }
    ~pool_t() override {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stop_ = true;
        }
        changed_.notify_all();
        for (auto &w : workers_) w.join();
    }

    int get_num_threads() const override { return n_; }
    bool get_in_parallel() const override { return inside; }
    uint64_t get_flags() const override { return asynchronous_ ? ASYNCHRONOUS : 0; }
    void parallel_for(int n, const std::function<void(int, int)> &fn) override {
        calls++;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            for (int i = 0; i < n; i++) tasks_.push_back([fn, i, n] { fn(i, n); });
            open_ += n;
        }
        changed_.notify_all();
        if (asynchronous_) return;
        while (take_one()) {
        }
        wait();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return open_ == 0; });
    }

    std::atomic<int> calls{0}; // of parallel_for

private:
    bool take_one() {
        std::function<void()> task;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (tasks_.empty()) return false;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        inside = true;
        task();
        inside = false;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            open_--;
        }
        changed_.notify_all();
        return true;
    }
    void work() {
        for (;;) {
            {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
                if (stop_ && tasks_.empty()) return;
            }
            take_one();
        }
    }

    static thread_local bool inside;
    const int n_;
    const bool asynchronous_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    int open_ = 0;
    bool stop_ = false;
    std::vector<std::thread> workers_;
};
thread_local bool pool_t::inside = false;

// Legal, if odd: claims many threads and runs one call after the other, the last one first. Work that
// waits for another call to make progress would hang here.
class backwards_t : public mxdnn::threadpool_iface {
public:
    explicit backwards_t(int n, bool in_parallel = false) : n_(n), in_parallel_(in_parallel) {}
    int get_num_threads() const override { return n_; }
    bool get_in_parallel() const override { return in_parallel_; }
    uint64_t get_flags() const override { return 0; }
    void parallel_for(int n, const std::function<void(int, int)> &fn) override {
        calls++;
        widest = n > widest ? n : widest;
        for (int i = n - 1; i >= 0; i--) fn(i, n);
    }
    int calls = 0, widest = 0;

private:
    const int n_;
    const bool in_parallel_;
};

// A matmul and the packing of its weights, on whatever stream.
struct problem_t {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    int M, K, N;
    mxdnn::mx_matmul::primitive_desc pd;
    std::vector<uint16_t> nk, x;

    problem_t(int m, int k, int n) : M(m), K(k), N(n) {
        mxdnn::primitive_attr attr = mxfp4_weights_attr();
        attr.set_deterministic(true);
        pd = mxfp4_matmul(eng, M, K, N, attr);
        nk = random_bf16(size_t(N) * K, 11);
        x = random_bf16(size_t(M) * K, 12);
    }
    // Packed bytes, then results.
    std::vector<uint8_t> run(const mxdnn::stream &s) {
        memory from(memory::desc({K, N}, dt::bf16, tag::ba), eng, nk.data()), w(pd.weights_desc(), eng);
        std::memset(w.get_data_handle(), 0xee, pd.weights_desc().get_size());
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(
                                  eng, from.get_desc(), eng, w.get_desc(), mxfp4_quantise_attr()))
                .execute(s, from, w);
        std::vector<uint16_t> y(size_t(M) * N, 0x7fff);
        mxdnn::mx_matmul(pd).execute(
                s, {{MXDNN_ARG_SRC, memory(pd.src_desc(), eng, x.data())}, {MXDNN_ARG_WEIGHTS, w},
                           {MXDNN_ARG_DST, memory(pd.dst_desc(), eng, y.data())}});
        std::vector<uint8_t> all(pd.weights_desc().get_size() + y.size() * 2);
        std::memcpy(all.data(), w.get_data_handle(), pd.weights_desc().get_size());
        std::memcpy(all.data() + pd.weights_desc().get_size(), y.data(), y.size() * 2);
        return all;
    }
};

// A stream over the library's own threads.
mxdnn::stream library_stream(const mxdnn::engine &e) {
    static backwards_t instead(1);
    return under_tsan ? mxdnn::threadpool_interop::make_stream(e, &instead) : mxdnn::stream(e);
}

constexpr int shapes[][3] = {{1, 320, 1008}, {1, 2880, 48}, {33, 288, 200}, {130, 64, 24}, {2, 33, 17}};

} // namespace

TEST(Threadpool, SameBitsAsTheLibrarysThreads) {
    for (const auto &s : shapes) {
        SCOPED_TRACE(testing::Message() << s[0] << "x" << s[1] << ":" << s[1] << "x" << s[2]);
        problem_t p(s[0], s[1], s[2]);
        do {
            SCOPED_TRACE(p.pd.impl_info_str());
            const std::vector<uint8_t> want = p.run(library_stream(p.eng));
            for (int n : {1, 2, 3, 7, 64}) {
                backwards_t sequential(n);
                EXPECT_EQ(p.run(mxdnn::threadpool_interop::make_stream(p.eng, &sequential)), want) << n;
                EXPECT_LE(sequential.widest, n) << "more calls at once than the pool has threads";
                if (n > 8) continue; // no more real threads than that
                for (bool asynchronous : {false, true}) {
                    pool_t pool(n, asynchronous);
                    const mxdnn::stream on_pool = mxdnn::threadpool_interop::make_stream(p.eng, &pool);
                    for (int repeat = 0; repeat < 3; repeat++)
                        EXPECT_EQ(p.run(on_pool), want) << n << (asynchronous ? " asynchronous" : "");
                }
            }
        } while (p.pd.next_impl());
    }
}

TEST(Threadpool, ThePoolDoesTheWork) {
    mxdnn::set_max_concurrency(4);
    problem_t p(64, 512, 1024);
    backwards_t pool(4), busy(4, true), one(1);
    const auto want = p.run(mxdnn::threadpool_interop::make_stream(p.eng, &pool));
    EXPECT_GE(pool.calls, 2) << "a reorder and a matmul of this size are divided";
    EXPECT_GT(pool.widest, 1);
    EXPECT_LE(pool.widest, 4);
    // Inside a task of the pool the work stays in this thread.
    EXPECT_EQ(p.run(mxdnn::threadpool_interop::make_stream(p.eng, &busy)), want);
    EXPECT_LE(busy.widest, 1);
    EXPECT_EQ(p.run(mxdnn::threadpool_interop::make_stream(p.eng, &one)), want);
    EXPECT_LE(one.widest, 1);
    mxdnn::set_max_concurrency(0);
}

// A primitive's scratchpad is for so many threads; a larger pool does not get more.
TEST(Threadpool, ConcurrencyIsALimit) {
    mxdnn::set_max_concurrency(2);
    problem_t p(64, 512, 1024);
    mxdnn::set_max_concurrency(0);
    backwards_t pool(16);
    const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(p.eng, &pool);
    std::vector<uint16_t> y(size_t(p.M) * p.N);
    memory w(p.pd.weights_desc(), p.eng);
    std::memset(w.get_data_handle(), 0, p.pd.weights_desc().get_size());
    mxdnn::mx_matmul(p.pd).execute(
            s, {{MXDNN_ARG_SRC, memory(p.pd.src_desc(), p.eng, p.x.data())}, {MXDNN_ARG_WEIGHTS, w},
                       {MXDNN_ARG_DST, memory(p.pd.dst_desc(), p.eng, y.data())}});
    EXPECT_LE(pool.widest, 2);
}

TEST(Threadpool, NestedInATaskOfThePool) {
    problem_t p(33, 288, 200);
    const std::vector<uint8_t> want = p.run(library_stream(p.eng));
    pool_t pool(3);
    std::atomic<int> wrong{0};
    pool.parallel_for(6, [&](int, int) {
        problem_t own(33, 288, 200);
        if (own.run(mxdnn::threadpool_interop::make_stream(own.eng, &pool)) != want) wrong++;
    });
    EXPECT_EQ(wrong, 0);
}

TEST(Threadpool, TwoStreamsOfOnePool) {
    problem_t p(33, 288, 200);
    const std::vector<uint8_t> want = p.run(library_stream(p.eng));
    pool_t pool(2);
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    callers.reserve(3);
    for (int i = 0; i < 3; i++)
        callers.emplace_back([&] {
            problem_t own(33, 288, 200);
            const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(own.eng, &pool);
            for (int repeat = 0; repeat < 5; repeat++)
                if (own.run(s) != want) wrong++;
        });
    for (auto &c : callers) c.join();
    EXPECT_EQ(wrong, 0);
}
