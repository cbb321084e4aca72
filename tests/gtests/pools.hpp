// SPDX-License-Identifier: Apache-2.0
// Thread pools of callers with different behaviour, and a problem that is executed on them.
#pragma once

#include "mxdnn/mxdnn_threadpool.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "gtests/test_api_util.hpp"

namespace api_test {

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
    void wait() override {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return open_ == 0; });
    }
    // A task of the caller. Any waiting thread may take it.
    void submit(std::function<void()> task) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            tasks_.push_back(std::move(task));
            open_++;
        }
        changed_.notify_all();
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
inline thread_local bool pool_t::inside = false;

// Legal but unusual: reports many threads and runs the calls one after the other, the last one first. Code in
// which one call waits for another would hang here.
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
struct pool_problem_t {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    int M, K, N;
    mxdnn::mx_matmul::primitive_desc pd;
    std::vector<uint16_t> nk, x;

    pool_problem_t(int m, int k, int n) : M(m), K(k), N(n) {
        mxdnn::primitive_attr attr = mxfp4_weights_attr();
        attr.set_deterministic(true);
        pd = mxfp4_matmul(eng, M, K, N, attr);
        nk = random_bf16(size_t(N) * K, 11);
        x = random_bf16(size_t(M) * K, 12);
    }
    // Packed bytes, then results.
    std::vector<uint8_t> run(const mxdnn::stream &s) {
        const memory w = pack(s);
        const std::vector<uint16_t> y = multiply(s, mxdnn::mx_matmul(pd), w);
        std::vector<uint8_t> all(pd.weights_desc().get_size() + y.size() * 2);
        std::memcpy(all.data(), w.get_data_handle(), pd.weights_desc().get_size());
        std::memcpy(all.data() + pd.weights_desc().get_size(), y.data(), y.size() * 2);
        return all;
    }
    memory pack(const mxdnn::stream &s) {
        memory from(memory::desc({K, N}, dt::bf16, tag::ba), eng, nk.data()), w(pd.weights_desc(), eng);
        std::memset(w.get_data_handle(), 0xee, pd.weights_desc().get_size());
        mxdnn::mx_reorder(mxdnn::mx_reorder::primitive_desc(
                                  eng, from.get_desc(), eng, w.get_desc(), mxfp4_quantise_attr()))
                .execute(s, from, w);
        return w;
    }
    std::vector<uint16_t> multiply(
            const mxdnn::stream &s, const mxdnn::mx_matmul &matmul, const memory &w) const {
        std::vector<uint16_t> y(size_t(M) * N, 0x7fff);
        matmul.execute(
                s, {{MXDNN_ARG_SRC, memory(pd.src_desc(), eng, const_cast<uint16_t *>(x.data()))},
                           {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_DST, memory(pd.dst_desc(), eng, y.data())}});
        return y;
    }
};

// A stream that uses the library's own threads.
inline mxdnn::stream library_stream(const mxdnn::engine &e) {
    static backwards_t instead(1); // by the interface of pools: executions in the calling thread
    return under_tsan ? mxdnn::threadpool_interop::make_stream(e, &instead) : mxdnn::stream(e);
}

} // namespace api_test
