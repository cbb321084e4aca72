// SPDX-License-Identifier: Apache-2.0
// Execution on the caller's threads. Pools of any size and behaviour give the same bits as the library's own
// threads.
#include "gtests/pools.hpp"

using namespace api_test;

namespace {

constexpr int shapes[][3] = {{1, 320, 1008}, {1, 2880, 48}, {33, 288, 200}, {130, 64, 24}, {2, 33, 17}};

} // namespace

TEST(Threadpool, SameBitsAsTheLibrarysThreads) {
    for (const auto &s : shapes) {
        SCOPED_TRACE(testing::Message() << s[0] << "x" << s[1] << ":" << s[1] << "x" << s[2]);
        pool_problem_t p(s[0], s[1], s[2]);
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
    pool_problem_t p(64, 512, 1024);
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

// The scratchpad of a primitive limits the number of threads. A larger pool does not use more.
TEST(Threadpool, ConcurrencyIsALimit) {
    mxdnn::set_max_concurrency(2);
    pool_problem_t p(64, 512, 1024);
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

// Nor does a primitive that was created for more threads than the execution asks for.
TEST(Threadpool, ConcurrencyIsALimitOfExecutionsToo) {
    const restore_threads_t restore;
    mxdnn::set_max_concurrency(4);
    pool_problem_t p(64, 512, 1024);
    do {
        SCOPED_TRACE(p.pd.impl_info_str());
        const mxdnn::mx_matmul matmul(p.pd);
        std::vector<uint16_t> want;
        for (int threads : {4, 3, 1, 2, 16, 0}) {
            mxdnn::set_max_concurrency(threads);
            backwards_t pool(16);
            const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(p.eng, &pool);
            const std::vector<uint16_t> got = p.multiply(s, matmul, p.pack(library_stream(p.eng)));
            if (threads == 4) {
                want = got;
                EXPECT_GT(pool.widest, 1);
            }
            EXPECT_EQ(got, want) << threads;
            EXPECT_LE(pool.widest, threads == 0 || threads > 4 ? 4 : threads) << threads;
        }
        mxdnn::set_max_concurrency(4);
    } while (p.pd.next_impl());
}

TEST(Threadpool, NestedInATaskOfThePool) {
    pool_problem_t p(33, 288, 200);
    const std::vector<uint8_t> want = p.run(library_stream(p.eng));
    pool_t pool(3);
    std::atomic<int> wrong{0};
    pool.parallel_for(6, [&](int, int) {
        pool_problem_t own(33, 288, 200);
        if (own.run(mxdnn::threadpool_interop::make_stream(own.eng, &pool)) != want) wrong++;
    });
    EXPECT_EQ(wrong, 0);
}

TEST(Threadpool, TwoStreamsOfOnePool) {
    pool_problem_t p(33, 288, 200);
    const std::vector<uint8_t> want = p.run(library_stream(p.eng));
    pool_t pool(2);
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    callers.reserve(3);
    for (int i = 0; i < 3; i++)
        callers.emplace_back([&] {
            pool_problem_t own(33, 288, 200);
            const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(own.eng, &pool);
            for (int repeat = 0; repeat < 5; repeat++)
                if (own.run(s) != want) wrong++;
        });
    for (auto &c : callers) c.join();
    EXPECT_EQ(wrong, 0);
}
