// SPDX-License-Identifier: Apache-2.0
// Pools that throw, refuse, lose calls or repeat them. The execution fails with a sentence. When it returns,
// no call is running, and later calls do nothing.
#include "gtests/pools.hpp"

#include <climits>
#include <stdexcept>

using namespace api_test;

namespace {

// Callbacks whose behaviour the test chooses.
struct faulty_t {
    int threads = 4;
    std::function<int()> num_threads = [this] { return threads; };
    std::function<int()> in_parallel = [] { return 0; };
    std::function<mxdnn_status_t(int n, const std::function<void(int)> &call)> parallel_for;
    std::function<void()> wait;
    mxdnn_threadpool_t callbacks = {};

    explicit faulty_t(uint64_t flags = 0) {
        callbacks.struct_size = sizeof(callbacks);
        callbacks.flags = flags;
        callbacks.user = this;
        callbacks.get_num_threads = [](void *user) { return self(user).num_threads(); };
        callbacks.get_in_parallel = [](void *user) { return self(user).in_parallel(); };
        callbacks.parallel_for = [](void *user, int n, mxdnn_threadpool_body_t body, void *context) {
            return self(user).parallel_for(n, [body, context](int i) { body(context, i); });
        };
    }
    void has_wait() {
        callbacks.wait = [](void *user) { self(user).wait(); };
    }
    static faulty_t &self(void *user) { return *static_cast<faulty_t *>(user); }
    mxdnn::stream stream(const mxdnn::engine &e) const {
        mxdnn_stream_t s = nullptr;
        mxdnn::error::wrap_c_api(
                mxdnn_threadpool_interop_stream_create(&s, e.get(), &callbacks), "no stream");
        return mxdnn::stream(s);
    }
};

struct Faults : testing::Test {
    restore_threads_t restore;
    Faults() { mxdnn::set_max_concurrency(4); }
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    pool_problem_t p{(mxdnn::set_max_concurrency(4), 33), 288, 200};
    mxdnn::mx_matmul matmul{p.pd};
    memory w = p.pack(library_stream(eng));
    std::vector<uint16_t> want = p.multiply(library_stream(eng), matmul, w);
    std::vector<uint16_t> y = want;
    memory src{p.pd.src_desc(), eng, p.x.data()}, dst{p.pd.dst_desc(), eng, y.data()};

    mxdnn_status_t execute(const mxdnn::stream &s) {
        std::fill(y.begin(), y.end(), uint16_t(0x7fff));
        const mxdnn_exec_arg_t args[] = {
                {MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, w.get()}, {MXDNN_ARG_DST, dst.get()}};
        return mxdnn_primitive_execute(matmul.get(), s.get(), 3, args);
    }
    // The library and this thread work as before.
    void expect_well() {
        EXPECT_OK(execute(library_stream(eng)));
        EXPECT_TRUE(y == want);
        backwards_t pool(4);
        EXPECT_OK(execute(mxdnn::threadpool_interop::make_stream(eng, &pool)));
        EXPECT_TRUE(y == want);
    }
};

} // namespace

TEST_F(Faults, AnythingIsThrown) {
    struct no_exception_t {};
    const struct {
        std::function<void()> what;
        const char *words;
    } throws[] = {{[] { throw 42; }, "no std::exception"},
            {[] { throw no_exception_t(); }, "no std::exception"},
            {[] { throw std::runtime_error("the queue is full"); }, "the queue is full"},
            {[] { throw std::bad_alloc(); }, "memory has run out"}};
    for (const auto &t : throws) {
        const mxdnn_status_t status =
                std::string(t.words) == "memory has run out" ? mxdnn_out_of_memory : mxdnn_runtime_error;
        for (uint64_t flags : {uint64_t(0), MXDNN_THREADPOOL_ASYNCHRONOUS}) {
            faulty_t pool(flags);
            const mxdnn::stream s = pool.stream(eng);
            // Before any call, after some, after all.
            for (int calls : {0, 2, 4}) {
                pool.parallel_for = [&](int n, const std::function<void(int)> &call) {
                    for (int i = 0; i < std::min(n, calls); i++) call(i);
                    t.what();
                    return mxdnn_success;
                };
                EXPECT_REFUSED(status, execute(s), t.words, "mxdnn_primitive_execute");
            }
            pool.num_threads = [&] { return t.what(), 4; };
            EXPECT_REFUSED(status, execute(s), t.words);
            mxdnn_stream_t none = nullptr;
            EXPECT_REFUSED(status, mxdnn_threadpool_interop_stream_create(&none, eng.get(), &pool.callbacks),
                    t.words);
            EXPECT_EQ(none, nullptr);
            pool.num_threads = [] { return 4; };
            pool.in_parallel = [&] { return t.what(), 0; };
            EXPECT_REFUSED(status, execute(s), t.words);
        }
    }
    expect_well();
}

// The C++ interface: an exception of a member gives an error with its message.
TEST_F(Faults, AnythingIsThrownByAClass) {
    struct throwing_t : backwards_t {
        using backwards_t::backwards_t;
        void parallel_for(int, const std::function<void(int, int)> &fn) override {
            fn(0, 4);
            throw 42;
        }
    } pool(4);
    const mxdnn::stream s = mxdnn::threadpool_interop::make_stream(eng, &pool);
    try {
        p.multiply(s, matmul, w);
        FAIL();
    } catch (const mxdnn::error &e) {
        EXPECT_EQ(e.status, mxdnn_runtime_error);
        EXPECT_NE(std::string(e.what()).find("no std::exception"), std::string::npos) << e.what();
    }
    expect_well();
}

// An asynchronous pool accepts some of the calls and then fails. The execution waits for calls that have
// begun. The others do nothing when they run later.
TEST_F(Faults, FailsWhileCallsAreUnderWay) {
    for (bool throws : {false, true}) {
        faulty_t pool(MXDNN_THREADPOOL_ASYNCHRONOUS);
        const mxdnn::stream s = pool.stream(eng);
        std::vector<std::thread> threads;
        std::function<void(int)> later;
        std::atomic<int> under_way{0}, done{0};
        pool.parallel_for = [&](int, const std::function<void(int)> &call) {
            later = call;
            for (int i = 0; i < 2; i++)
                threads.emplace_back([&, i, call] {
                    under_way++;
                    call(i);
                    done++;
                });
            while (under_way < 2) std::this_thread::yield();
            if (throws) throw std::runtime_error("no more threads");
            return mxdnn_out_of_memory;
        };
        if (throws)
            EXPECT_REFUSED(mxdnn_runtime_error, execute(s), "no more threads");
        else
            EXPECT_REFUSED(mxdnn_out_of_memory, execute(s), "parallel_for returned out_of_memory");
        for (auto &t : threads) t.join();
        const std::vector<uint16_t> before = y;
        for (int i = -1; i < 6; i++) later(i);
        EXPECT_TRUE(y == before) << "a call that came too late wrote something";
        expect_well();
        for (int i = -1; i < 6; i++) later(i);
        EXPECT_TRUE(y == want);
    }
}

TEST_F(Faults, StatusesOfThePool) {
    faulty_t pool;
    const mxdnn::stream s = pool.stream(eng);
    for (int status : {int(mxdnn_runtime_error), int(mxdnn_unimplemented), int(mxdnn_device_unavailable)}) {
        pool.parallel_for = [&](int, const std::function<void(int)> &) { return mxdnn_status_t(status); };
        EXPECT_REFUSED(mxdnn_status_t(status), execute(s), mxdnn_status2str(mxdnn_status_t(status)));
    }
    pool.parallel_for = [&](int, const std::function<void(int)> &) { return mxdnn_invalid_shape; };
    EXPECT_REFUSED(mxdnn_invalid_shape, execute(s), "invalid_shape");
    expect_well();
}

TEST_F(Faults, CallsAreMissing) {
    for (bool waits : {false, true}) {
        faulty_t pool(waits ? MXDNN_THREADPOOL_ASYNCHRONOUS : 0);
        if (waits) pool.has_wait();
        const mxdnn::stream s = pool.stream(eng);
        for (int missing : {0, 2, 3}) {
            std::function<void(int)> later;
            pool.wait = [] {};
            pool.parallel_for = [&](int n, const std::function<void(int)> &call) {
                for (int i = 0; i < n; i++)
                    if (i != missing) call(i);
                later = call;
                return mxdnn_success;
            };
            EXPECT_REFUSED(mxdnn_runtime_error, execute(s), "index " + std::to_string(missing),
                    waits ? "its wait returned" : "its parallel_for returned");
            const std::vector<uint16_t> before = y;
            later(missing);
            EXPECT_TRUE(y == before);
        }
        pool.parallel_for = [](int, const std::function<void(int)> &) { return mxdnn_success; };
        EXPECT_REFUSED(mxdnn_runtime_error, execute(s), "index 0");
    }
    expect_well();
}

TEST_F(Faults, CallsAreTooMany) {
    faulty_t pool;
    const mxdnn::stream s = pool.stream(eng);
    for (int wrong : {-1, INT_MIN, INT_MAX, 4, 63, 64, 4095, 4096, 0, 3}) {
        SCOPED_TRACE(wrong);
        pool.parallel_for = [&](int n, const std::function<void(int)> &call) {
            if (wrong < 0 || wrong >= n) call(wrong);
            for (int i = 0; i < n; i++) call(i);
            call(wrong);
            return mxdnn_success;
        };
        EXPECT_REFUSED(mxdnn_runtime_error, execute(s), "index " + std::to_string(wrong));
    }
    expect_well();
}

// A pool that says it is synchronous, and returns while calls are under way: they are waited for.
TEST_F(Faults, ReturnsTooEarly) {
    faulty_t pool;
    const mxdnn::stream s = pool.stream(eng);
    std::vector<std::thread> threads;
    pool.parallel_for = [&](int n, const std::function<void(int)> &call) {
        std::atomic<int> begun{0};
        for (int i = 0; i < n; i++)
            threads.emplace_back([&begun, i, call] {
                begun++;
                call(i);
            });
        while (begun < n) std::this_thread::yield();
        return mxdnn_success;
    };
    for (int repeat = 0; repeat < 20; repeat++) {
        const mxdnn_status_t status = execute(s);
        // The last call may or may not have begun. Both are right.
        if (status == mxdnn_success)
            EXPECT_TRUE(y == want);
        else
            EXPECT_EQ(status, mxdnn_runtime_error);
        for (auto &t : threads) t.join();
        threads.clear();
    }
    expect_well();
}

TEST_F(Faults, AnAsynchronousPoolThatIsWaitedFor) {
    faulty_t pool(MXDNN_THREADPOOL_ASYNCHRONOUS);
    pool.has_wait();
    std::vector<std::thread> threads;
    pool.parallel_for = [&](int n, const std::function<void(int)> &call) {
        for (int i = 0; i < n; i++) threads.emplace_back([i, call] { call(i); });
        return mxdnn_success;
    };
    pool.wait = [&] {
        for (auto &t : threads) t.join();
        threads.clear();
    };
    const mxdnn::stream s = pool.stream(eng);
    for (int repeat = 0; repeat < 5; repeat++) {
        EXPECT_OK(execute(s));
        EXPECT_TRUE(y == want);
    }
}

// A pool that reports fewer than one thread after its stream was created: the calling thread does the work.
TEST_F(Faults, ThreadsDisappear) {
    faulty_t pool;
    pool.parallel_for = [&](int, const std::function<void(int)> &) { return mxdnn_runtime_error; };
    const mxdnn::stream s = pool.stream(eng);
    for (int n : {1, 0, -1, INT_MIN}) {
        pool.threads = n;
        EXPECT_OK(execute(s));
        EXPECT_TRUE(y == want);
    }
    int widest = 0;
    pool.threads = INT_MAX;
    pool.parallel_for = [&](int n, const std::function<void(int)> &call) {
        widest = std::max(widest, n);
        for (int i = 0; i < n; i++) call(i);
        return mxdnn_success;
    };
    EXPECT_OK(execute(s));
    EXPECT_EQ(widest, 4);
}

TEST_F(Faults, PoolsThatAreNone) {
    mxdnn_stream_t none = nullptr;
    const auto create = [&](const mxdnn_threadpool_t &t) {
        return mxdnn_threadpool_interop_stream_create(&none, eng.get(), &t);
    };
    faulty_t pool;
    const mxdnn_threadpool_t good = pool.callbacks;
    mxdnn_threadpool_t t = good;
    for (size_t size : {size_t(0), size_t(8), sizeof(t) - 1, size_t(-1)}) {
        t.struct_size = size;
        EXPECT_REFUSED(mxdnn_invalid_arguments, create(t), "struct_size", std::to_string(size),
                std::to_string(sizeof(t)));
    }
    t = good;
    t.get_num_threads = nullptr;
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(t), "get_num_threads is a null");
    t = good;
    t.get_in_parallel = nullptr;
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(t), "get_in_parallel is a null");
    t = good;
    t.parallel_for = nullptr;
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(t), "parallel_for is a null");
    t = good;
    t.flags = 6;
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(t), "0x6");
    t = good;
    t.wait = [](void *) {};
    EXPECT_REFUSED(mxdnn_invalid_arguments, create(t), "ASYNCHRONOUS");
    for (int n : {0, -1, INT_MIN}) {
        pool.threads = n;
        EXPECT_REFUSED(mxdnn_invalid_arguments, create(good), std::to_string(n) + " threads");
    }
    pool.threads = 1;
    EXPECT_EQ(none, nullptr);
    EXPECT_THROW(mxdnn::threadpool_interop::make_stream(eng, nullptr), mxdnn::error);

    // A struct of a later version: fields that are unknown here must be zero.
    struct {
        mxdnn_threadpool_t now;
        void *later[2];
    } larger = {good, {nullptr, nullptr}};
    larger.now.struct_size = sizeof(larger);
    EXPECT_OK(mxdnn_threadpool_interop_stream_create(&none, eng.get(), &larger.now));
    EXPECT_OK(mxdnn_stream_destroy(none));
    none = nullptr;
    larger.later[1] = &larger;
    EXPECT_REFUSED(mxdnn_invalid_arguments,
            mxdnn_threadpool_interop_stream_create(&none, eng.get(), &larger.now), "older than the caller's");
    EXPECT_EQ(none, nullptr);
}
