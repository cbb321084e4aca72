// SPDX-License-Identifier: Apache-2.0
// What MXDNN_CPU_RUNTIME changes. A program is linked for each runtime, and with oneTBB for TBB only.
#include "gtests/pools.hpp"

using namespace api_test;

extern const int tested_runtime; // tested_runtime.cpp

namespace {

const bool is_tbb = tested_runtime == MXDNN_RUNTIME_TBB, is_seq = tested_runtime == MXDNN_RUNTIME_SEQ;

struct Runtime : testing::Test {
    restore_threads_t restore;
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    Runtime() { mxdnn::set_max_concurrency(4); }
};

} // namespace

TEST_F(Runtime, IsWhatTheVersionSays) {
    EXPECT_EQ(mxdnn::version()->cpu_runtime, tested_runtime);
    EXPECT_EQ(mxdnn::get_max_concurrency(), is_seq ? 1 : 4);
    EXPECT_OK(mxdnn_set_max_concurrency(0));
    EXPECT_GE(mxdnn::get_max_concurrency(), 1);
    if (is_seq) {
        EXPECT_EQ(mxdnn::get_max_concurrency(), 1);
    }
}

TEST_F(Runtime, StreamsWithoutAPool) {
    pool_problem_t p(33, 288, 200);
    const std::vector<uint8_t> got = p.run(mxdnn::stream(eng));
    mxdnn::set_max_concurrency(1);
    pool_problem_t one(33, 288, 200);
    EXPECT_EQ(one.run(mxdnn::stream(eng)), got);
    mxdnn::set_max_concurrency(4);
    testing::internal::CaptureStdout();
    mxdnn::set_verbose("profile_exec");
    p.run(mxdnn::stream(eng));
    mxdnn::set_verbose("none");
    const std::string lines = testing::internal::GetCapturedStdout();
    EXPECT_NE(lines.find(is_tbb ? " threads:4" : " threads:1"), std::string::npos) << lines;
    EXPECT_EQ(lines.find(" threads:4") != std::string::npos, is_tbb) << lines;
}

TEST_F(Runtime, StreamsOverAPool) {
    backwards_t pool(4);
    if (is_seq) {
        mxdnn_stream_t none = nullptr;
        const mxdnn_threadpool_t callbacks = mxdnn::threadpool_interop::callbacks_of(&pool);
        EXPECT_REFUSED(mxdnn_unimplemented,
                mxdnn_threadpool_interop_stream_create(&none, eng.get(), &callbacks),
                "MXDNN_CPU_RUNTIME=SEQ");
        EXPECT_EQ(none, nullptr);
        return;
    }
    pool_problem_t p(33, 288, 200);
    const std::vector<uint8_t> want = p.run(mxdnn::stream(eng));
    const int calls = pool.calls;
    EXPECT_EQ(p.run(mxdnn::threadpool_interop::make_stream(eng, &pool)), want);
    EXPECT_GT(pool.calls, calls);
    EXPECT_EQ(pool.widest, 4);
}
