// SPDX-License-Identifier: Apache-2.0
// Memory runs out at every point of every call: the status is out_of_memory with a sentence, nothing is
// written, leaked or changed, no page is writable and executable, and the same call succeeds when there is
// memory again.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <thread>

#include "gtests/executed_problems.hpp"
#include "gtests/failing_allocations.hpp"

using namespace api_test;
using mode = mxdnn::quantization_mode;

namespace {

bool a_page_is_writable_and_executable() {
    std::FILE *maps = std::fopen("/proc/self/maps", "r");
    if (!maps) return false;
    char line[512], access[8];
    bool found = false;
    while (std::fgets(line, sizeof(line), maps))
        found = found
                || (std::sscanf(line, "%*x-%*x %7s", access) == 1 && access[1] == 'w' && access[2] == 'x');
    std::fclose(maps);
    return found;
}

struct FailingAllocations : public testing::Test {
    mxdnn::engine eng{mxdnn::engine::kind::cpu, 0};
    mxdnn::stream str{eng};
    restore_threads_t restore;
    FailingAllocations() { mxdnn::set_max_concurrency(1); }

    // `call` creates or changes something, and `undo` reverts it if needed. The points of failure are those
    // of a thread that already has its buffers; with `fresh`, of a thread without any.
    int64_t everywhere(const char *name, const std::function<mxdnn_status_t()> &call,
            const std::function<void()> &undo, bool fresh = false) {
        SCOPED_TRACE(name);
        const auto on_thread = [&](const std::function<void()> &body) {
            if (!fresh) return body();
            std::thread t(body);
            t.join();
        };
        for (int i = 0; i < 2; i++)
            on_thread([&] {
                EXPECT_OK(call());
                undo();
            });
        int64_t points = 0;
        for (const bool all_after : {false, true}) {
            bool done = false;
            for (int64_t n = 1; !done && n < 5000 && !HasFailure(); n++) {
                SCOPED_TRACE(n);
                const int64_t before = failing::live();
                on_thread([&] {
                    plant_error();
                    failing::arm(n, all_after);
                    const mxdnn_status_t s = call();
                    const bool failed = failing::disarm();
                    if (!failed) done = true;
                    EXPECT_TRUE(s == mxdnn_success || refused(s, mxdnn_out_of_memory, {}));
                    undo(); // it may have done without; a cache keeps what was made before the failure
                    EXPECT_TRUE(failed || s == mxdnn_success);
                });
                EXPECT_EQ(failing::live(), before) << "something is leaked";
                EXPECT_FALSE(a_page_is_writable_and_executable());
                if (!all_after) points = n - 1;
            }
            EXPECT_TRUE(done);
        }
        on_thread([&] {
            EXPECT_OK(call());
            undo();
        });
        return points;
    }
};

#define EVERYWHERE(out, destroy, ...)                                                                        \
    everywhere(                                                                                              \
            #__VA_ARGS__, [&] { return __VA_ARGS__; },                                                       \
            [&] {                                                                                            \
                destroy(out);                                                                                \
                out = nullptr;                                                                               \
            })

} // namespace

TEST_F(FailingAllocations, Objects) {
    mxdnn_engine_t e = nullptr;
    EVERYWHERE(e, mxdnn_engine_destroy, mxdnn_engine_create(&e, mxdnn_cpu, 0));
    EVERYWHERE(e, mxdnn_engine_destroy, mxdnn_engine_create_for_target(&e, "cpu:x64:avx2"));
    mxdnn_stream_t s = nullptr;
    EVERYWHERE(s, mxdnn_stream_destroy, mxdnn_stream_create(&s, eng.get(), 1));
    const mxdnn_dims_t dims = {32, 64};
    mxdnn_memory_desc_t md = nullptr;
    EXPECT_GT(EVERYWHERE(md, mxdnn_memory_desc_destroy,
                      mxdnn_memory_desc_create_with_strides(&md, 2, dims, mxdnn_f32, nullptr)),
            0);
    EVERYWHERE(md, mxdnn_memory_desc_destroy,
            mxdnn_memory_desc_create_with_tag(&md, 2, dims, mxdnn_f32, mxdnn_ba));
    EVERYWHERE(md, mxdnn_memory_desc_destroy,
            mxdnn_memory_desc_create_with_grouped_encoding(&md, 2, dims, mxdnn_f32, 0, 4, mxdnn_s32));
    memory::desc annotated({32, 64}, dt::f32, tag::ab);
    const std::string recipe(200, 'x');
    mxdnn_memory_desc_set_annotation(annotated.get(), mxdnn_bf16, recipe.c_str());
    EVERYWHERE(md, mxdnn_memory_desc_destroy, mxdnn_memory_desc_clone(&md, annotated.get()));
    const std::vector<uint8_t> blob = annotated.get_blob();
    EVERYWHERE(md, mxdnn_memory_desc_destroy,
            mxdnn_memory_desc_create_with_sized_blob(&md, blob.data(), blob.size()));
    const auto nothing = [] {};
    everywhere(
            "get_blob",
            [&] {
                uint8_t room[4096];
                size_t size = sizeof(room);
                return mxdnn_memory_desc_get_blob(room, &size, annotated.get());
            },
            nothing);
    everywhere(
            "to_string",
            [&] {
                char text[1024];
                size_t size = sizeof(text);
                return mxdnn_memory_desc_to_string(text, &size, annotated.get());
            },
            nothing);
    mxdnn_memory_t m = nullptr;
    EVERYWHERE(m, mxdnn_memory_destroy,
            mxdnn_memory_create(&m, annotated.get(), eng.get(), MXDNN_MEMORY_ALLOCATE));
    const memory::desc packed = mxfp4_matmul(eng, 4, 64, 32).weights_desc();
    mxdnn_checksum_t sum = nullptr;
    EVERYWHERE(sum, mxdnn_checksum_destroy, mxdnn_checksum_create(&sum, packed.get()));
}

TEST_F(FailingAllocations, Attributes) {
    mxdnn_primitive_attr_t a = nullptr;
    EVERYWHERE(a, mxdnn_primitive_attr_destroy, mxdnn_primitive_attr_create(&a));
    mxdnn_post_ops_t po = nullptr;
    EVERYWHERE(po, mxdnn_post_ops_destroy, mxdnn_post_ops_create(&po));
    mxdnn_post_ops_create(&po);
    const memory::desc row({1, 32}, dt::f32, tag::ab);
    // A list that could not grow is as long as it was.
    const struct {
        const char *name;
        std::function<mxdnn_status_t()> append;
    } appends[] = {
            {"eltwise", [&] { return mxdnn_post_ops_append_eltwise(po, mxdnn_eltwise_relu, 0, 0); }},
            {"binary", [&] { return mxdnn_post_ops_append_binary(po, mxdnn_binary_add, row.get()); }},
            {"sum", [&] { return mxdnn_post_ops_append_sum(po, 1, 0, mxdnn_data_type_undef); }},
    };
    for (const auto &x : appends) {
        mxdnn_post_ops_t clone = nullptr;
        for (int64_t n = 1;; n++) {
            const int before = mxdnn_post_ops_len(po);
            failing::arm(n, false);
            const mxdnn_status_t s = x.append();
            if (!failing::disarm()) break;
            EXPECT_TRUE(refused(s, mxdnn_out_of_memory, {})) << x.name;
            EXPECT_EQ(mxdnn_post_ops_len(po), before);
        }
        EVERYWHERE(clone, mxdnn_post_ops_destroy, mxdnn_post_ops_clone(&clone, po));
    }
    mxdnn::primitive_attr full = mxfp4_weights_attr();
    everywhere(
            "set_post_ops", [&] { return mxdnn_primitive_attr_set_post_ops(full.get(), po); },
            [&] {
                mxdnn_post_ops_t none;
                mxdnn_post_ops_create(&none);
                mxdnn_primitive_attr_set_post_ops(full.get(), none);
                mxdnn_post_ops_destroy(none);
            });
    mxdnn_primitive_attr_set_post_ops(full.get(), po);
    EVERYWHERE(a, mxdnn_primitive_attr_destroy, mxdnn_primitive_attr_clone(&a, full.get()));
    mxdnn_post_ops_destroy(po);
}

namespace {

// A problem of each primitive.
struct problem_case_t {
    const char *name;
    std::function<mxdnn_status_t(mxdnn_primitive_desc_t *)> create;
};

std::vector<problem_case_t> problem_cases(const mxdnn::engine &eng) {
    const mxdnn_engine_t e = eng.get();
    auto experts = std::make_shared<mxdnn::primitive_attr>();
    experts->set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    const auto wei = std::make_shared<mxdnn::primitive_attr>(mxfp4_weights_attr());
    const auto quantise = std::make_shared<mxdnn::primitive_attr>(mxfp4_quantise_attr());
    const auto md = [](const memory::dims &dims, dt type, tag t = tag::ab) {
        return memory::desc(dims, type, t);
    };
    return {
            {"mx_matmul",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc src = md({4, 64}, dt::bf16),
                                                  w = md({64, 32}, dt::f4_e2m1, tag::any),
                                                  dst = md({4, 32}, dt::bf16);
                        return mxdnn_mx_matmul_primitive_desc_create(
                                pd, e, src.get(), w.get(), nullptr, dst.get(), wei->get());
                    }},
            {"mx_reorder",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc src = md({64, 32}, dt::bf16),
                                                  dst = mxfp4_matmul(eng, 4, 64, 32).weights_desc();
                        return mxdnn_mx_reorder_primitive_desc_create(
                                pd, src.get(), e, dst.get(), e, quantise->get());
                    }},
            {"grouped_matmul",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc src = md({4, 64}, dt::bf16),
                                                  w = md({2, 64, 32}, dt::f4_e2m1, tag::any),
                                                  dst = md({4, 32}, dt::bf16);
                        return mxdnn_grouped_matmul_primitive_desc_create(
                                pd, e, src.get(), w.get(), nullptr, dst.get(), experts->get());
                    }},
            {"grouped_matmul_backward_weights",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc src = md({4, 64}, dt::bf16),
                                                  diff_dst = md({4, 32}, dt::bf16),
                                                  to = md({2, 64, 32}, dt::f32, tag::abc);
                        return mxdnn_grouped_matmul_backward_weights_primitive_desc_create(
                                pd, e, src.get(), diff_dst.get(), to.get(), nullptr);
                    }},
            {"moe_route",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc logits = md({4, 16}, dt::f32);
                        return mxdnn_moe_route_primitive_desc_create(
                                pd, e, logits.get(), 2, mxdnn_route_softmax_topk, 0, 1, 1, nullptr);
                    }},
            {"moe_permute",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc src = md({4, 16}, dt::f32);
                        return mxdnn_moe_permute_primitive_desc_create(
                                pd, e, src.get(), src.get(), 1, 2, 1, nullptr);
                    }},
            {"moe_unpermute",
                    [=](mxdnn_primitive_desc_t *pd) {
                        static const memory::desc src = md({4, 16}, dt::f32);
                        return mxdnn_moe_unpermute_primitive_desc_create(
                                pd, e, src.get(), src.get(), nullptr);
                    }},
    };
}

} // namespace

TEST_F(FailingAllocations, Descriptors) {
    for (const problem_case_t &c : problem_cases(eng)) {
        SCOPED_TRACE(c.name);
        mxdnn_primitive_desc_t pd = nullptr, clone = nullptr;
        EXPECT_GT(EVERYWHERE(pd, mxdnn_primitive_desc_destroy, c.create(&pd)), 3);
        ASSERT_EQ(c.create(&pd), mxdnn_success);
        EVERYWHERE(clone, mxdnn_primitive_desc_destroy, mxdnn_primitive_desc_clone(&clone, pd));
        // A descriptor that could not move on is where it was.
        for (int64_t n = 1;; n++) {
            const char *before = nullptr, *after = nullptr;
            mxdnn_primitive_desc_query(pd, mxdnn_query_impl_info_str, 0, &before);
            failing::arm(n, false);
            const mxdnn_status_t s = mxdnn_primitive_desc_next_impl(pd);
            if (!failing::disarm()) break;
            if (s == mxdnn_success || s == mxdnn_last_impl_reached) continue;
            EXPECT_TRUE(refused(s, mxdnn_out_of_memory, {}));
            mxdnn_primitive_desc_query(pd, mxdnn_query_impl_info_str, 0, &after);
            EXPECT_STREQ(before, after);
        }
        mxdnn_primitive_desc_destroy(pd);
    }
}

// With and without the cache, in threads that have and have not generated code before.
TEST_F(FailingAllocations, Primitives) {
    int capacity = 0;
    mxdnn_get_primitive_cache_capacity(&capacity);
    for (const problem_case_t &c : problem_cases(eng)) {
        SCOPED_TRACE(c.name);
        mxdnn_primitive_desc_t pd = nullptr;
        ASSERT_EQ(c.create(&pd), mxdnn_success);
        do
            for (const int keep : {0, 4})
                for (const bool fresh : {false, true}) {
                    mxdnn_set_primitive_cache_capacity(keep);
                    mxdnn_primitive_t p = nullptr;
                    EXPECT_GT(everywhere(
                                      "primitive_create", [&] { return mxdnn_primitive_create(&p, pd); },
                                      [&] {
                                          mxdnn_primitive_destroy(p);
                                          p = nullptr;
                                          mxdnn_set_primitive_cache_capacity(0);
                                          mxdnn_set_primitive_cache_capacity(keep);
                                      },
                                      fresh),
                            0);
                    EXPECT_EQ(p, nullptr);
                }
        while (mxdnn_primitive_desc_next_impl(pd) == mxdnn_success);
        mxdnn_primitive_desc_destroy(pd);
    }
    mxdnn_set_primitive_cache_capacity(capacity);
}

// The first execution of a thread needs a scratchpad; without it nothing is written.
TEST_F(FailingAllocations, Executions) {
    constexpr int outputs[] = {MXDNN_ARG_DST, MXDNN_ARG_DST_1, MXDNN_ARG_DIFF_WEIGHTS, MXDNN_ARG_TOPK_IDS};
    for_each_execution(eng, [&](auto kind, auto pd, const std::vector<std::pair<int, memory>> &args) {
        const std::vector<mxdnn_exec_arg_t> list = in_c(args);
        std::vector<std::pair<uint8_t *, size_t>> written;
        for (const auto &a : args)
            if (std::find(std::begin(outputs), std::end(outputs), a.first) != std::end(outputs))
                written.emplace_back(
                        static_cast<uint8_t *>(a.second.get_data_handle()), a.second.get_desc().get_size());
        EXPECT_FALSE(written.empty());
        do {
            SCOPED_TRACE(pd.impl_info_str());
            const typename decltype(kind)::type prim(pd);
            everywhere(
                    "execute",
                    [&] {
                        for (const auto &w : written) std::memset(w.first, 0xa5, w.second);
                        const mxdnn_status_t s =
                                mxdnn_primitive_execute(prim.get(), str.get(), int(list.size()), list.data());
                        for (const auto &w : written)
                            for (size_t i = 0; s != mxdnn_success && i < w.second; i++)
                                EXPECT_EQ(w.first[i], 0xa5);
                        return s;
                    },
                    [] {}, true);
        } while (pd.next_impl());
    });
}

// Helping threads allocate nothing.
TEST_F(FailingAllocations, OtherThreads) {
    mxdnn::set_max_concurrency(4);
    auto pd = mxfp4_matmul(eng, 100, 96, 256);
    const std::vector<uint16_t> nk = random_bf16(96 * 256, 1), x = random_bf16(100 * 96, 2);
    const memory w = pack_mxfp4(eng, pd.weights_desc(), nk);
    memory src(pd.src_desc(), eng, const_cast<uint16_t *>(x.data())), dst(pd.dst_desc(), eng);
    const mxdnn_exec_arg_t args[] = {
            {MXDNN_ARG_SRC, src.get()}, {MXDNN_ARG_WEIGHTS, w.get()}, {MXDNN_ARG_DST, dst.get()}};
    do {
        const mxdnn::mx_matmul p(pd);
        // The threads of oneTBB have all their memory after a few executions.
        for (int i = 0; i < 20; i++) EXPECT_OK(mxdnn_primitive_execute(p.get(), str.get(), 3, args));
        failing::arm_others();
        const mxdnn_status_t s = mxdnn_primitive_execute(p.get(), str.get(), 3, args);
        failing::disarm();
        EXPECT_EQ(s, mxdnn_success);
    } while (pd.next_impl());
}
