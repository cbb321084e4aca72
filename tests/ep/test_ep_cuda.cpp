// SPDX-License-Identifier: Apache-2.0
// A layer over NCCL, in every precision, next to plain loops: one rank for each device, with 1, 2 and 4 of
// them.
#include <cuda_runtime.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "ep/nccl_case.hpp"

using namespace ep_test;
using ep::direction;
using ep::stage;

namespace {

constexpr direction forward = direction::forward;
constexpr int64_t timeout_ms = 60000;

unsigned seed_of_run() {
    const char *wanted = std::getenv("MXDNN_TEST_SEED");
    return wanted ? unsigned(std::strtoul(wanted, nullptr, 10)) : 1;
}

const char *name_of(dt type) {
    return type == dt::bf16 ? "bf16" : type == dt::f8_e4m3 ? "mxfp8" : type == dt::f4_e2m1 ? "mxfp4" : "none";
}

struct nccl_test : testing::TestWithParam<std::tuple<int, ep::transport>> {
    static int ranks() { return std::get<0>(GetParam()); }
    static bool is_direct() { return std::get<1>(GetParam()) == ep::transport::nccl_direct; }

    void SetUp() override {
        if (!nccl_library_t::get().why_not.empty()) GTEST_SKIP() << nccl_library_t::get().why_not;
        if (size_t(ranks()) > engine::get_count(engine::kind::cuda)) GTEST_SKIP() << "too few devices";
    }
    static void on_ranks(const std::function<void(nccl_rank_t &)> &fn, int64_t timeout = timeout_ms) {
        std::string why;
        EXPECT_TRUE(run_on_nccl_ranks(ranks(), std::get<1>(GetParam()), timeout, fn, why)) << why;
    }
};

TEST_P(nccl_test, every_routing_and_precision) {
    const struct {
        dt forward, backward;
        dim hidden;
    } types[] = {{dt::bf16, dt::bf16, 7}, {dt::f8_e4m3, dt::f8_e4m3, 96}, {dt::f8_e4m3, dt::bf16, 32},
            {dt::bf16, dt::f8_e4m3, 64}, {dt::f4_e2m1, dt::undef, 64}};
    on_ranks([&](nccl_rank_t &rank) {
        unsigned seed = seed_of_run();
        for (const routing_t routing : {routing_t::random, routing_t::same_expert_twice,
                     routing_t::none_on_a_rank, routing_t::one_expert, routing_t::none})
            for (const auto &t : types)
                for (const bool gather : {false, true}) {
                    const dim alignment = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 4 : 16;
                    const dim local = dim(seed % 3) + 1, chunks = seed % 2 ? local : 1;
                    layer_case_t l(rank, {routing, t.hidden, local, 2, alignment, t.forward, t.backward,
                                                 gather, seed, chunks});
                    SCOPED_TRACE(std::string("seed ") + std::to_string(seed) + ", routing "
                                 + std::to_string(int(routing)) + ", " + name_of(t.forward) + " and "
                                 + name_of(t.backward) + (gather ? ", gathered" : ""));
                    const ep::layer layer(rank.comm, l.desc());
                    const ep::step step(layer);
                    for (int pass = 0; pass < 2; pass++) l.run(step);
                    seed++;
                }
    });
}

// Rows of the dispatch and of the gradients in memory of the caller; scratchpad and workspace, too.
TEST_P(nccl_test, memory_of_the_caller) {
    if (is_direct()) GTEST_SKIP() << "see the tests of nccl_direct";
    on_ranks([&](nccl_rank_t &rank) {
        layer_case_t l(
                rank, {routing_t::random, 64, 2, 2, 8, dt::f8_e4m3, dt::f8_e4m3, true, seed_of_run() + 100});
        const ep::layer::memory_sizes sizes = ep::layer::get_memory_sizes(rank.comm, l.desc());
        const auto bytes = [&](size_t n) { return memory(memory::desc({dim(n)}, dt::s8, tag::a), rank.eng); };
        const memory scratchpad = bytes(sizes.scratchpad), work1 = bytes(sizes.workspace),
                     work2 = bytes(sizes.workspace);
        const ep::layer layer(rank.comm, l.desc(), scratchpad.get_data_handle());
        const ep::step step1(layer, work1.get_data_handle()), step2(layer, work2.get_data_handle());
        l.run(step1);
        const dim capacity = most_tokens * l.c.topk * rank.ranks;
        const memory codes(matrix(capacity, l.c.hidden, dt::f8_e4m3), rank.eng),
                scales(matrix(capacity, l.c.hidden / 32, dt::e8m0), rank.eng),
                ends(vector(l.c.local_experts), rank.eng);
        auto args = l.dispatch_args();
        args[MXDNN_ARG_DST] = codes;
        args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST] = scales;
        step1.execute(stage::dispatch, forward, rank.s, args);
        step2.execute(stage::dispatch, forward, rank.s, l.dispatch_args());
        expect_refused([&] { step1.execute(stage::permute, forward, rank.s); }, "SRC is not passed");
        step1.execute(stage::permute, forward, rank.s,
                {{MXDNN_ARG_SRC, codes}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, scales},
                        {MXDNN_ARG_GROUP_OFFSETS, ends}});
        const memory rows = step1.get_memory(stage::permute, forward, MXDNN_ARG_DST),
                     its_scales =
                             step1.get_memory(stage::permute, forward, MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        l.check_groups(rows.get(), its_scales.get(), ends.get(), l.groups.x, l.c.forward);
        l.run(step2);
    });
}

// What one rank does wrong fails on all of them, and the next pass is as if nothing had happened.
TEST_P(nccl_test, refusals) {
    if (is_direct()) GTEST_SKIP() << "see the tests of nccl_direct";
    on_ranks([&](nccl_rank_t &rank) {
        const bool last = rank.rank == rank.ranks - 1;
        const std::string name = "rank " + std::to_string(rank.ranks - 1) + ": ";
        layer_case_t l(rank, {routing_t::random, 32, 2, 2, 4, dt::bf16, dt::bf16, true, seed_of_run()});
        const ep::layer layer(rank.comm, l.desc());
        const ep::step step(layer);
        const auto refused = [&](const std::function<void(std::unordered_map<int, memory> &)> &spoil,
                                     const std::string &sentence) {
            SCOPED_TRACE(sentence);
            auto args = l.dispatch_args();
            if (last) spoil(args);
            expect_refused([&] { step.execute(stage::dispatch, forward, rank.s, args); },
                    "dispatch forward: " + name + sentence);
            expect_refused([&] { step.execute(stage::permute, forward, rank.s); }, "comes first");
            l.run(step);
        };
        const auto changed = [&](int arg, size_t index, int32_t by) {
            return [&, arg, index, by](std::unordered_map<int, memory> &args) {
                std::vector<int32_t> v = l.ints(args[arg].get());
                v[index] += by;
                args[arg] = rank.upload(vector(dim(v.size())), v.data());
            };
        };
        refused(changed(MXDNN_ARG_GROUP_COUNTS, 0, 1), "the sum of GROUP_COUNTS is");
        refused(changed(MXDNN_ARG_GROUP_COUNTS, 1, -1000), "GROUP_COUNTS[1] is -");
        refused(changed(MXDNN_ARG_GATHER_IDX, 0, 1000), "GATHER_IDX[0] is 1");
        refused([](std::unordered_map<int, memory> &args) { args.erase(MXDNN_ARG_SRC); }, "SRC is not");
        refused(
                [](std::unordered_map<int, memory> &args) {
                    args[MXDNN_ARG_SRC] = memory(matrix(1, 32, dt::bf16), engine(engine::kind::cpu, 0));
                },
                "SRC is memory of another engine");

        // A stage that does not agree: the others hear of it later.
        step.execute(stage::dispatch, forward, rank.s, l.dispatch_args());
        step.execute(stage::permute, forward, rank.s);
        step.execute(stage::experts, forward, rank.s);
        step.execute(stage::unpermute, forward, rank.s);
        const memory y = l.poisoned();
        if (last)
            expect_refused([&] { step.execute(stage::combine, forward, rank.s); }, "DST is not passed");
        else
            step.execute(stage::combine, forward, rank.s, {{MXDNN_ARG_DST, y}});
        expect_refused([&] { rank.comm.wait(rank.s); }, name + "combine forward: DST is not passed");
        rank.comm.wait(rank.s);
        l.run(step);
    });
}

TEST_P(nccl_test, capacity_and_disagreement) {
    if (is_direct()) GTEST_SKIP() << "see the tests of nccl_direct";
    on_ranks([&](nccl_rank_t &rank) {
        const int last = rank.ranks - 1;
        layer_case_t l(rank, {routing_t::one_expert, 32, 2, 2, 4, dt::bf16, dt::bf16, false, seed_of_run()});
        ep::layer::desc d = l.desc();
        dim sum = 0;
        for (const rank_data_t &r : l.all) sum += dim(r.token_of.size());
        d.capacity = sum - 1;
        const ep::layer small(rank.comm, d);
        const ep::step small_step(small);
        expect_refused([&] { small_step.execute(stage::dispatch, forward, rank.s, l.dispatch_args()); },
                "dispatch forward: rank " + std::to_string(last) + ": " + std::to_string(sum)
                        + " rows would arrive");
        d.capacity = sum;
        const ep::layer large(rank.comm, d);
        l.run(ep::step(large));
        if (rank.ranks == 1) return;
        d.hidden = rank.rank == last ? 64 : 32;
        expect_refused([&] { ep::layer(rank.comm, d); }, "ranks disagree: hidden is 32 on rank");
        const ep::step step(large);
        expect_refused(
                [&] {
                    if (rank.rank == last)
                        rank.comm.wait(rank.s);
                    else
                        step.execute(stage::dispatch, forward, rank.s, l.dispatch_args());
                },
                "call different functions");
        l.run(step);
    });
}

// Over NCCL's device API the ranks hear of everything later, and nothing has rows until then.
TEST_P(nccl_test, direct_refusals) {
    if (!is_direct()) GTEST_SKIP() << "of nccl_direct alone";
    on_ranks([&](nccl_rank_t &rank) {
        const bool last = rank.rank == rank.ranks - 1;
        const std::string name = "rank " + std::to_string(rank.ranks - 1) + ": ";
        layer_case_t l(rank, {routing_t::random, 32, 2, 2, 4, dt::bf16, dt::bf16, true, seed_of_run()});
        const ep::layer layer(rank.comm, l.desc());
        const ep::step step(layer);
        const auto refused = [&](int arg, size_t index, int32_t by, const std::string &sentence) {
            SCOPED_TRACE(sentence);
            auto args = l.dispatch_args();
            if (last) {
                std::vector<int32_t> v = l.ints(args[arg].get());
                v[index] += by;
                args[arg] = rank.upload(vector(dim(v.size())), v.data());
            }
            step.execute(stage::dispatch, forward, rank.s, args);
            expect_refused([&] { rank.comm.wait(rank.s); }, name + sentence);
            l.run(step);
        };
        refused(MXDNN_ARG_GROUP_COUNTS, 0, 1, "the sum of GROUP_COUNTS is");
        refused(MXDNN_ARG_GROUP_COUNTS, 1, -1000, "GROUP_COUNTS[1] is -");
        refused(MXDNN_ARG_GATHER_IDX, 0, 1000, "GATHER_IDX[0] is 1");
        auto args = l.dispatch_args();
        if (last) {
            args.erase(MXDNN_ARG_SRC);
            expect_refused(
                    [&] { step.execute(stage::dispatch, forward, rank.s, args); }, "SRC is not passed");
        } else {
            step.execute(stage::dispatch, forward, rank.s, args);
        }
        expect_refused([&] { rank.comm.wait(rank.s); }, name + "dispatch forward: SRC is not passed");
        l.run(step);

        dim sum = 0;
        layer_case_t one(
                rank, {routing_t::one_expert, 32, 2, 2, 4, dt::bf16, dt::bf16, false, seed_of_run()});
        for (const rank_data_t &r : one.all) sum += dim(r.token_of.size());
        ep::layer::desc d = one.desc();
        d.capacity = sum - 1;
        const ep::layer small(rank.comm, d);
        const ep::step small_step(small);
        small_step.execute(stage::dispatch, forward, rank.s, one.dispatch_args());
        const memory y = one.poisoned();
        small_step.execute(stage::combine, forward, rank.s, {{MXDNN_ARG_DST, y}});
        expect_refused([&] { rank.comm.wait(rank.s); },
                name + std::to_string(sum) + " rows would arrive; the capacity");
        EXPECT_EQ(rows_of(rank.download(y)), rows_t(size_t(one.sent() * one.c.hidden), 0));
        d.capacity = sum;
        const ep::layer large(rank.comm, d);
        one.run(ep::step(large));
        expect_refused(
                [&] { ep::layer(rank.comm, d, reinterpret_cast<void *>(64)); }, "MXDNN_MEMORY_ALLOCATE");
    });
}

// A pass in a CUDA graph, whose tokens and counts change between its replays. The experts are in a stream of
// their own: those of a chunk run beside the exchange of others.
void run_in_graph(nccl_rank_t &rank, dim chunks) {
    ASSERT_EQ(cudaSetDevice(rank.rank), cudaSuccess);
    const stream experts(rank.eng);
    const cudaStream_t s = cuda_interop::get_stream(rank.s), es = cuda_interop::get_stream(experts);
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    const auto follow = [&](cudaStream_t later, cudaStream_t earlier) {
        ASSERT_EQ(cudaEventRecord(event, earlier), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(later, event, 0), cudaSuccess);
    };
    layer_case_t l(
            rank, {routing_t::random, 64, 4, 2, 8, dt::bf16, dt::bf16, true, seed_of_run() + 7, chunks});
    const ep::layer layer(rank.comm, l.desc());
    const ep::step step(layer);
    const auto args = l.dispatch_args();
    const memory y = l.poisoned(), rows = step.get_memory(stage::permute, forward, MXDNN_ARG_DST),
                 results = step.get_memory(stage::unpermute, forward, MXDNN_ARG_SRC);
    const auto pass = [&] {
        const auto chunk = [&](stage st, dim k, const stream &in, const memories_by_arg_t &with = {}) {
            step.execute_chunk(st, forward, k, in, with);
        };
        chunk(stage::dispatch, 0, rank.s, args);
        for (dim k = 0; k < chunks; k++) {
            follow(es, s);
            if (k + 1 < chunks) chunk(stage::dispatch, k + 1, rank.s, args);
            chunk(stage::permute, k, experts);
            cuda_interop::copy(
                    experts, results.get_data_handle(), rows.get_data_handle(), rows.get_desc().get_size());
            chunk(stage::unpermute, k, experts);
            follow(s, es);
            chunk(stage::combine, k, rank.s, {{MXDNN_ARG_DST, y}});
        }
    };
    pass();
    rank.comm.wait(rank.s);
    rows_t x = l.mine().x;
    EXPECT_EQ(rows_of(rank.download(y)), l.mine().rows(l.c.hidden));
    rank.meeting->wait();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    pass();
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    rank.meeting->wait();
    for (int replay = 0; replay < 3; replay++) {
        for (uint16_t &v : l.all[size_t(rank.rank)].x) v = uint16_t(v ^ 0x8000 ^ (replay << 4));
        // Another routing: the first expert of each rank's rows gets all of them.
        if (replay == 2) {
            std::vector<int32_t> counts(l.mine().counts.size());
            counts[size_t(rank.rank) % counts.size()] = int32_t(l.sent());
            cuda_interop::copy(rank.s, args.at(MXDNN_ARG_GROUP_COUNTS).get_data_handle(), counts.data(),
                    counts.size() * 4);
        }
        cuda_interop::copy(
                rank.s, args.at(MXDNN_ARG_SRC).get_data_handle(), l.mine().x.data(), l.mine().x.size() * 2);
        ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
        rank.comm.wait(rank.s);
        EXPECT_EQ(rows_of(rank.download(y)), l.mine().rows(l.c.hidden)) << replay;
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
}

TEST_P(nccl_test, graph) {
    if (!is_direct()) GTEST_SKIP() << "of nccl_direct alone";
    on_ranks([&](nccl_rank_t &rank) {
        for (const dim chunks : {1, 2, 4}) run_in_graph(rank, chunks);
    });
}

// What tests and measurements rely on: where a rank fails, the others end, too.
TEST_P(nccl_test, a_rank_that_throws) {
    if (ranks() < 2) GTEST_SKIP() << "two ranks are needed";
    for (const bool meets : {true, false}) { // what the others do then: wait for it here, or in a pass
        std::string why;
        const bool ok = run_on_nccl_ranks(
                ranks(), std::get<1>(GetParam()), 3000,
                [&](nccl_rank_t &rank) {
                    layer_case_t l(
                            rank, {routing_t::random, 32, 2, 2, 4, dt::bf16, dt::bf16, true, seed_of_run()});
                    const ep::layer layer(rank.comm, l.desc());
                    const ep::step step(layer);
                    l.run(step);
                    if (rank.rank == rank.ranks - 1) throw std::runtime_error("it throws");
                    if (meets) rank.meeting->wait();
                    l.run(step);
                },
                why);
        EXPECT_FALSE(ok);
        EXPECT_NE(why.find("rank " + std::to_string(ranks() - 1) + ": it throws"), std::string::npos) << why;
        EXPECT_NE(why.find(meets ? "rank 0: another rank has failed" : "rank 0: "), std::string::npos) << why;
    }
}

INSTANTIATE_TEST_SUITE_P(ranks, nccl_test,
        testing::Combine(
                testing::Values(1, 2, 4), testing::Values(ep::transport::nccl, ep::transport::nccl_direct)),
        [](const auto &info) {
            return std::string(std::get<1>(info.param) == ep::transport::nccl ? "nccl" : "direct")
                   + std::to_string(std::get<0>(info.param));
        });

} // namespace
