// SPDX-License-Identifier: Apache-2.0
// Executions that begin in a thread while another execution of that thread waits for its pool. All give the
// bits of an execution alone.
#include <array>

#include "common/scratchpad.hpp"
#include "gtests/count_allocations.hpp"
#include "gtests/pools.hpp"

using namespace api_test;

namespace {

// Runs every call in the calling thread. In between it runs a function of the test, like a pool whose waiting
// thread takes another task.
class nesting_t : public mxdnn::threadpool_iface {
public:
    int get_num_threads() const override { return 4; }
    bool get_in_parallel() const override { return false; }
    uint64_t get_flags() const override { return 0; }
    void parallel_for(int n, const std::function<void(int, int)> &fn) override {
        for (int i = 0; i < n; i++) {
            fn(i, n);
            if (i == n / 2 - 1 && depth < most && between) {
                depth++;
                nested++;
                between(depth);
                depth--;
            }
        }
    }
    std::function<void(int)> between; // of the depth, from 1
    int most = 1, depth = 0, nested = 0;
};

// One prepared problem, executed many times into its own buffer.
struct prepared_t {
    pool_problem_t p;
    mxdnn::mx_matmul matmul;
    memory w;
    std::vector<uint16_t> want, y;
    std::vector<mxdnn_exec_arg_t> args;
    memory src, dst;

    prepared_t(int M, int K, int N, int impl) : p(M, K, N) {
        for (int i = 0; i < impl; i++) p.pd.next_impl();
        matmul = mxdnn::mx_matmul(p.pd);
        const mxdnn::stream s = library_stream(p.eng);
        w = p.pack(s);
        want = p.multiply(s, matmul, w);
        y = want;
        src = memory(p.pd.src_desc(), p.eng, p.x.data());
        dst = memory(p.pd.dst_desc(), p.eng, y.data());
        args = {{MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, w.get()}, {MXDNN_ARG_DST, dst.get()}};
    }
    // Allocates nothing if the results are right.
    void execute(const mxdnn::stream &s) {
        std::fill(y.begin(), y.end(), uint16_t(0x7fff));
        EXPECT_OK(mxdnn_primitive_execute(matmul.get(), s.get(), int(args.size()), args.data()));
        EXPECT_TRUE(y == want) << p.M << "x" << p.K << ":" << p.K << "x" << p.N;
    }
    int impls() const {
        int n = 1;
        for (auto pd = mxfp4_matmul(p.eng, p.M, p.K, p.N, deterministic()); pd.next_impl();) n++;
        return n;
    }
    static mxdnn::primitive_attr deterministic() {
        mxdnn::primitive_attr a = mxfp4_weights_attr();
        a.set_deterministic(true);
        return a;
    }
};

} // namespace

// Inner executions with a larger and a smaller scratchpad, up to three levels, by every implementation.
TEST(Nested, InAThreadThatWaits) {
    const restore_threads_t restore;
    mxdnn::set_max_concurrency(4);
    const int impls = prepared_t(3, 64, 64, 0).impls();
    for (int impl = 0; impl < impls; impl++) {
        prepared_t small(33, 96, 128, impl), large(130, 320, 128, impl), few(2, 160, 512, impl);
        SCOPED_TRACE(small.p.pd.impl_info_str());
        const std::array<prepared_t *, 3> orders[] = {{&small, &large, &few}, {&large, &small, &few},
                {&few, &large, &small}, {&large, &few, &small}};
        for (const auto &order : orders) {
            nesting_t pool;
            pool.most = 2;
            const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(small.p.eng, &pool);
            pool.between = [&](int depth) { order[size_t(depth)]->execute(s); };
            order[0]->execute(s);
            if (order[0]->p.M > 8) { // the reference uses one thread for a few rows
                EXPECT_GT(pool.nested, 0);
            }
        }
    }
}

// After the first rounds there are buffers for as many executions as run at once.
TEST(Nested, AllocatesNothingInTheLongRun) {
    const restore_threads_t restore;
    mxdnn::set_max_concurrency(4);
    prepared_t small(33, 96, 128, 0), large(140, 640, 256, 0);
    nesting_t pool;
    pool.most = 3;
    const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(small.p.eng, &pool);
    pool.between = [&](int depth) { (depth % 2 ? large : small).execute(s); };
    for (int i = 0; i < 3; i++) small.execute(s);
    const long before = count_of_allocations();
    for (int i = 0; i < 3; i++) small.execute(s);
    EXPECT_EQ(count_of_allocations() - before, 0);
}

// Threads that wait for their execution on a pool run its other tasks, which are executions too.
TEST(Nested, TasksOfAPool) {
    prepared_t outer(70, 320, 512, 0);
    pool_t pool(3);
    const mxdnn::stream on_pool = mxdnn::threadpool_interop::make_stream(outer.p.eng, &pool);
    std::deque<prepared_t> inner;
    for (int i = 0; i < 8; i++) inner.emplace_back(i % 2 ? 9 : 150, i % 2 ? 64 : 640, 128, 0);
    for (int repeat = 0; repeat < 10; repeat++) {
        for (prepared_t &p : inner) pool.submit([&] { p.execute(on_pool); });
        outer.execute(on_pool);
    }
    pool.wait();
}

// A buffer that is given back after its thread has ended.
TEST(Nested, ScratchpadOutlivesItsThread) {
    auto kept = std::make_unique<mxdnn::impl::scratchpad_t>();
    char *data = nullptr;
    std::thread([&] {
        mxdnn::impl::scratchpad_t other;
        EXPECT_NE(other.take(100), nullptr);
        data = kept->take(1000);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    }).join();
    ASSERT_NE(data, nullptr);
    std::memset(data, 1, 1000);
}

namespace {

// In a thread that has no buffers yet.
void use_scratchpads() {
    EXPECT_TRUE(mxdnn::impl::reserve_scratchpad(5000));
    const long before = count_of_allocations();
    char *first = nullptr;
    {
        mxdnn::impl::scratchpad_t a;
        first = a.take(5000);
    }
    {
        // One buffer exists. A second execution at the same time needs another one.
        mxdnn::impl::scratchpad_t a;
        EXPECT_EQ(a.take(64), first);
        EXPECT_EQ(count_of_allocations() - before, 0);
        mxdnn::impl::scratchpad_t b;
        char *second = b.take(64);
        EXPECT_NE(second, first);
        EXPECT_GT(count_of_allocations() - before, 0);
    }
    // The smallest that suffices.
    const long then = count_of_allocations();
    mxdnn::impl::scratchpad_t a, b;
    EXPECT_NE(a.take(64), first);
    EXPECT_EQ(b.take(5000), first);
    EXPECT_EQ(count_of_allocations() - then, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which stop here
    // No memory for this size: no buffer, and the next request works.
    mxdnn::impl::scratchpad_t c, d;
    EXPECT_EQ(c.take(int64_t(1) << 60), nullptr);
    EXPECT_NE(d.take(64), nullptr);
#endif
}

} // namespace

TEST(Nested, ScratchpadsOfOneThread) { std::thread(use_scratchpads).join(); }
