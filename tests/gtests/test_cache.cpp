// SPDX-License-Identifier: Apache-2.0
// The primitive cache: what hits, what must not, eviction, races, and one primitive executed by many
// threads at once.
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "common/primitive.hpp"
#include "test_api_util.hpp"

using namespace api_test;

namespace {

using impl_ptr = std::shared_ptr<const mxdnn::impl::primitive_impl_t>;

// The implementation that cached primitives share.
impl_ptr impl_of(const mxdnn::primitive &p) { return p.get()->impl; }

struct Cache : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    int capacity = mxdnn::get_primitive_cache_capacity();

    void SetUp() override {
        restart(64);
        if (under_tsan) mxdnn::set_max_concurrency(1);
    }
    void TearDown() override {
        mxdnn::set_max_concurrency(0);
        mxdnn::set_verbose("none");
        mxdnn::set_primitive_cache_capacity(capacity);
    }
    // An empty cache of that capacity.
    static void restart(int n) {
        mxdnn::set_primitive_cache_capacity(0);
        mxdnn::set_primitive_cache_capacity(n);
    }
    mxdnn::mx_matmul make(mxdnn_dim_t K, const mxdnn::primitive_attr &attr = mxfp4_weights_attr()) {
        return mxdnn::mx_matmul(mxfp4_matmul(eng, 4, K, 32, attr));
    }
    // The verbose lines of creating primitives.
    static std::string lines_of(const std::function<void()> &fn) {
        testing::internal::CaptureStdout();
        mxdnn::set_verbose("profile_create");
        fn();
        mxdnn::set_verbose("none");
        return testing::internal::GetCapturedStdout();
    }
    static int count(const std::string &text, const std::string &word) {
        int n = 0;
        for (size_t i = text.find(word); i != std::string::npos; i = text.find(word, i + 1)) n++;
        return n;
    }
};

void run_together(int n, const std::function<void(int)> &fn) {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    threads.reserve(size_t(n));
    for (int i = 0; i < n; i++)
        threads.emplace_back([&, i] {
            ready++;
            while (ready < n) std::this_thread::yield();
            fn(i);
        });
    for (auto &t : threads) t.join();
}

} // namespace

TEST_F(Cache, TheSameProblemHits) {
    mxdnn::primitive a, b;
    const std::string first = lines_of([&] { a = make(64); });
    EXPECT_EQ(count(first, "create:cache_miss"), 1) << first;
    EXPECT_EQ(count(first, "create:cache_hit"), 0) << first;
    const std::string second = lines_of([&] { b = make(64); });
    EXPECT_EQ(count(second, "create:cache_hit"), 1) << second;
    EXPECT_EQ(count(second, "create:cache_miss"), 0) << second;
    EXPECT_NE(second.find("mx_matmul"), std::string::npos);
    EXPECT_EQ(impl_of(a), impl_of(b));
    EXPECT_NE(a.get(), b.get());
    // Also after all its primitives have been destroyed.
    std::weak_ptr<const mxdnn::impl::primitive_impl_t> weak = impl_of(a);
    a = b = mxdnn::primitive();
    EXPECT_FALSE(weak.expired());
    EXPECT_EQ(impl_of(make(64)), weak.lock());
}

TEST_F(Cache, AnotherProblemMisses) {
    std::vector<mxdnn::primitive> all;
    const auto matmul = [&](const memory::desc &src, const memory::desc &wei, const memory::desc &bias,
                                const memory::desc &dst, const mxdnn::primitive_attr &attr) {
        all.push_back(mxdnn::mx_matmul(mxdnn::mx_matmul::primitive_desc(eng, src, wei, bias, dst, attr)));
    };
    const auto plain = [](const memory::dims &d, dt t = dt::bf16) { return memory::desc(d, t, tag::ab); };
    const memory::desc none, src = plain({4, 64}), dst = plain({4, 32}), bias = plain({1, 32});
    const memory::desc wei({64, 32}, dt::f4_e2m1, tag::any);
    const auto attr = [](const std::function<void(mxdnn::primitive_attr &)> &change) {
        mxdnn::primitive_attr a = mxfp4_weights_attr();
        change(a);
        return a;
    };
    const auto post = [&](const std::function<void(mxdnn::post_ops &)> &change) {
        mxdnn::post_ops po;
        change(po);
        return attr([&](mxdnn::primitive_attr &a) { a.set_post_ops(po); });
    };
    using alg = mxdnn::algorithm;
    const mxdnn::primitive_attr base = mxfp4_weights_attr();
    matmul(src, wei, none, dst, base);
    matmul(src, wei, bias, dst, base);
    matmul(src, wei, plain({1, 32}, dt::f32), dst, base);
    matmul(src, wei, plain({1, 1}), dst, base);
    matmul(plain({4, 64}, dt::f32), wei, none, dst, base);
    matmul(src, wei, none, plain({4, 32}, dt::f32), base);
    matmul(plain({5, 64}), wei, none, plain({5, 32}), base);
    matmul(plain({runtime, 64}), wei, none, plain({runtime, 32}), base);
    matmul(memory::desc({4, 64}, dt::bf16, memory::dims{80, 1}), wei, none, dst, base);
    matmul(src, memory::desc({64, 32}, dt::f4_e2m1, tag::ab), none, dst, base);
    matmul(src, memory::desc({64, 32}, dt::f4_e2m1, tag::ba), none, dst, base);
    matmul(src, memory::desc({64, 32}, dt::f8_e4m3, tag::any), none, dst, base);
    matmul(src, wei, none, dst, attr([](mxdnn::primitive_attr &a) { a.set_deterministic(true); }));
    matmul(src, wei, none, dst,
            attr([](mxdnn::primitive_attr &a) { a.set_scratchpad_mode(mxdnn::scratchpad_mode::user); }));
    matmul(src, wei, none, dst,
            attr([](mxdnn::primitive_attr &a) { a.set_fpmath_mode(mxdnn::fpmath_mode::bf16, true); }));
    matmul(src, wei, none, dst,
            attr([](mxdnn::primitive_attr &a) { a.set_accumulation_mode(mxdnn::accumulation_mode::any); }));
    matmul(src, wei, none, dst, attr([](mxdnn::primitive_attr &a) { a.set_max_rows_hint(9); }));
    matmul(src, wei, none, dst, attr([](mxdnn::primitive_attr &a) { a.set_constant_weights(true); }));
    matmul(src, wei, none, dst, post([](mxdnn::post_ops &p) { p.append_eltwise(alg::eltwise_relu, 0, 0); }));
    matmul(src, wei, none, dst,
            post([](mxdnn::post_ops &p) { p.append_eltwise(alg::eltwise_relu, 0.5f, 0); }));
    matmul(src, wei, none, dst, post([](mxdnn::post_ops &p) { p.append_eltwise(alg::eltwise_clip, 0, 1); }));
    matmul(src, wei, none, dst, post([](mxdnn::post_ops &p) { p.append_eltwise(alg::eltwise_clip, 0, 2); }));
    matmul(src, wei, none, dst, post([](mxdnn::post_ops &p) { p.append_sum(); }));
    matmul(src, wei, none, dst, post([](mxdnn::post_ops &p) { p.append_sum(2); }));
    matmul(src, wei, none, dst, post([](mxdnn::post_ops &p) { p.append_sum(1, 3); }));
    matmul(src, wei, none, dst, post([&](mxdnn::post_ops &p) {
        p.append_binary(alg::binary_add, plain({1, 32}, dt::f32));
    }));
    matmul(src, wei, none, dst, post([&](mxdnn::post_ops &p) {
        p.append_binary(alg::binary_add, plain({4, 1}, dt::f32));
    }));
    matmul(src, wei, none, dst, post([&](mxdnn::post_ops &p) {
        p.append_binary(alg::binary_mul, plain({4, 1}, dt::f32));
    }));
    for (auto layout : {mxdnn::gated_layout::halves, mxdnn::gated_layout::interleaved})
        for (float limit : {0.f, 7.f})
            matmul(src, wei, none, plain({4, 16}), post([&](mxdnn::post_ops &p) {
                p.append_gated(alg::gated_swiglu_oai, 1.702f, limit, layout);
            }));
    const int threads = mxdnn::get_max_concurrency();
    mxdnn::set_max_concurrency(threads + 3);
    matmul(src, wei, none, dst, base);
    mxdnn::set_max_concurrency(threads);
    std::set<impl_ptr> impls;
    for (size_t i = 0; i < all.size(); i++)
        EXPECT_TRUE(impls.insert(impl_of(all[i])).second) << "problem " << i;

    // Each implementation of a problem has an entry of its own.
    auto pd = mxfp4_matmul(eng, 4, 64, 32);
    std::set<impl_ptr> per_impl;
    int n = 0;
    do n++, per_impl.insert(impl_of(mxdnn::mx_matmul(pd)));
    while (pd.next_impl());
    EXPECT_EQ(int(per_impl.size()), n);
}

TEST_F(Cache, WhatDoesNotMatterHits) {
    memory::desc annotated({64, 32}, dt::f4_e2m1, tag::any);
    annotated.set_annotation(dt::bf16, "recipe");
    const mxdnn::mx_matmul::primitive_desc pd(eng, memory::desc({4, 64}, dt::bf16, tag::ab), annotated,
            memory::desc({4, 32}, dt::bf16, tag::ab), mxfp4_weights_attr());
    const mxdnn::primitive a = make(64), b = mxdnn::mx_matmul(pd);
    EXPECT_EQ(impl_of(a), impl_of(b));
    // The hit keeps what its own descriptor says.
    const_mxdnn_memory_desc_t md =
            mxdnn_primitive_desc_query_md(b.get_primitive_desc(), mxdnn_query_weights_md, 0);
    const char *recipe = nullptr;
    EXPECT_OK(mxdnn_memory_desc_query(md, mxdnn_query_annotation_recipe_str, &recipe));
    EXPECT_STREQ(recipe, "recipe");
}

TEST_F(Cache, LeastRecentlyUsedGoesFirst) {
    restart(2);
    using weak_ptr = std::weak_ptr<const mxdnn::impl::primitive_impl_t>;
    const weak_ptr a = impl_of(make(32)), b = impl_of(make(64));
    EXPECT_FALSE(a.expired());
    EXPECT_FALSE(b.expired());
    EXPECT_EQ(impl_of(make(32)), a.lock()); // now b is the older one
    const weak_ptr c = impl_of(make(96));
    EXPECT_FALSE(a.expired());
    EXPECT_TRUE(b.expired());
    EXPECT_FALSE(c.expired());
    // An evicted implementation lives as long as a primitive uses it.
    const mxdnn::primitive held = make(128);
    make(160);
    make(192);
    EXPECT_TRUE(a.expired());
    EXPECT_NE(impl_of(make(128)), impl_of(held));
    // A smaller capacity evicts at once.
    const weak_ptr d = impl_of(make(224)), e = impl_of(make(256));
    mxdnn::set_primitive_cache_capacity(1);
    EXPECT_TRUE(d.expired());
    EXPECT_FALSE(e.expired());
    mxdnn::set_primitive_cache_capacity(0);
    EXPECT_TRUE(e.expired());
}

TEST_F(Cache, CapacityZeroKeepsNothing) {
    restart(0);
    const mxdnn::primitive a = make(64), b = make(64);
    EXPECT_NE(impl_of(a), impl_of(b));
    EXPECT_EQ(mxdnn::get_primitive_cache_capacity(), 0);
}

TEST_F(Cache, ThreadsThatWantTheSameGetOne) {
    constexpr int n = 8;
    for (int round = 0; round < 20; round++) {
        restart(64);
        std::vector<mxdnn::primitive> p(n);
        const std::string lines =
                lines_of([&] { run_together(n, [&](int i) { p[size_t(i)] = make(32 + 32 * round); }); });
        std::set<impl_ptr> impls;
        for (const auto &x : p) impls.insert(impl_of(x));
        EXPECT_EQ(impls.size(), 1u);
        EXPECT_EQ(count(lines, "create:cache_miss"), 1);
        EXPECT_EQ(count(lines, "create:cache_hit"), n - 1);
    }
}

TEST_F(Cache, ThreadsThatEvictEachOther) {
    restart(3);
    std::atomic<int> bad{0};
    run_together(8, [&](int t) {
        std::mt19937 rng(unsigned(t) + 1);
        for (int i = 0; i < 100; i++) {
            const mxdnn_dim_t K = 32 * (1 + rng() % 7);
            const mxdnn::primitive p = make(K);
            const_mxdnn_memory_desc_t md =
                    mxdnn_primitive_desc_query_md(p.get_primitive_desc(), mxdnn_query_src_md, 0);
            const mxdnn_dims_t *dims = nullptr;
            if (mxdnn_memory_desc_query(md, mxdnn_query_dims, &dims) != mxdnn_success || (*dims)[1] != K)
                bad++;
            if (i % 10 == t) mxdnn_set_primitive_cache_capacity(int(rng() % 5));
        }
    });
    EXPECT_EQ(bad, 0);
}

// One primitive, many threads, each with its own data; with the library's scratchpads and the user's.
TEST_F(Cache, OnePrimitiveFromManyThreads) {
    const int M = 5, K = 160, N = 72, n = 8;
    for (auto mode : {mxdnn::scratchpad_mode::library, mxdnn::scratchpad_mode::user}) {
        mxdnn::primitive_attr attr = mxfp4_weights_attr();
        attr.set_scratchpad_mode(mode);
        attr.set_deterministic(true);
        auto pd = mxfp4_matmul(eng, M, K, N, attr);
        do {
            SCOPED_TRACE(pd.impl_info_str());
            const mxdnn::mx_matmul prim(pd);
            const memory w = pack_mxfp4(eng, pd.weights_desc(), random_bf16(size_t(N) * K, 3));
            const auto run = [&](unsigned seed, std::vector<uint16_t> &y) {
                std::vector<uint16_t> x = random_bf16(size_t(M) * K, seed);
                y.assign(size_t(M) * N, 0x7fff);
                mxdnn::stream s(eng);
                std::unordered_map<int, memory> args = {{MXDNN_ARG_SRC, memory(pd.src_desc(), eng, x.data())},
                        {MXDNN_ARG_WEIGHTS, w}, {MXDNN_ARG_DST, memory(pd.dst_desc(), eng, y.data())}};
                if (pd.scratchpad_desc()) args[MXDNN_ARG_SCRATCHPAD] = memory(pd.scratchpad_desc(), eng);
                prim.execute(s, args);
            };
            std::vector<std::vector<uint16_t>> want(n), got(n);
            for (int i = 0; i < n; i++) run(unsigned(i), want[size_t(i)]);
            std::atomic<int> wrong{0};
            run_together(n, [&](int i) {
                for (int repeat = 0; repeat < 10; repeat++) {
                    run(unsigned(i), got[size_t(i)]);
                    if (got[size_t(i)] != want[size_t(i)]) wrong++;
                }
            });
            EXPECT_EQ(wrong, 0);
        } while (pd.next_impl());
    }
}
