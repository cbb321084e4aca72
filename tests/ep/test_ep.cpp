// SPDX-License-Identifier: Apache-2.0
// A layer over the ranks that mpiexec started, in every precision, next to plain loops. Every rank runs the
// same tests.
#include <mpi.h>

#include <gtest/gtest.h>

#include "ep/layer_case.hpp"
#include "ep/ranks.hpp"
#include "gtests/count_allocations.hpp"

using namespace ep_test;
using ep::direction;
using ep::stage;

namespace {

constexpr direction forward = direction::forward, backward = direction::backward;
constexpr uint16_t poison = 0x7fc0; // a NaN

const char *name_of(dt type) {
    return type == dt::bf16 ? "bf16" : type == dt::f8_e4m3 ? "mxfp8" : type == dt::f4_e2m1 ? "mxfp4" : "none";
}

struct layer_test : testing::Test {
    const engine eng{engine::kind::cpu, 0};
    const stream s{eng};
    const ep::communicator comm{eng, ep::transport::mpi, MPI_COMM_WORLD, timeout_ms};
    const int rank = comm.rank(), ranks = comm.size();

    case_t c;
    std::vector<rank_data_t> all;
    groups_t groups;

    const rank_data_t &mine() const { return all[size_t(rank)]; }
    dim sent() const { return dim(mine().token_of.size()); }

    void make(const case_t &acase) {
        c = acase;
        all.clear();
        for (int r = 0; r < ranks; r++) all.push_back(make_rank(c, r, ranks));
        groups = make_groups(c, all, rank);
    }

    ep::layer::desc desc() {
        ep::layer::desc d = describe(c, ranks);
        d.user = this;
        d.experts_forward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *a) {
            static_cast<layer_test *>(user)->experts(a->src, a->src_scales, *a, a->dst, false);
            return mxdnn_success;
        };
        d.experts_backward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *a) {
            layer_test &t = *static_cast<layer_test *>(user);
            EXPECT_EQ(a->dst, nullptr);
            t.check_groups(a->src, a->src_scales, a->group_offsets, t.groups.x, t.c.forward); // kept
            t.experts(a->diff_dst, a->diff_dst_scales, *a, a->diff_src, true);
            return mxdnn_success;
        };
        return d;
    }

    template <typename T>
    static std::vector<T> values_of(mxdnn_memory_t m) {
        if (!m) return {};
        const T *data = static_cast<const T *>(memory(m, true).get_data_handle());
        return {data, data + memory(m, true).get_desc().get_size() / sizeof(T)};
    }

    expert_rows_t check_groups(mxdnn_memory_t rows, mxdnn_memory_t scales, mxdnn_memory_t offsets,
            const std::vector<rows_t> &expected, dt format) {
        const expert_rows_t found = {read_rows(eng, rows, scales), values_of<uint8_t>(scales),
                values_of<int32_t>(offsets), {}, {}};
        expect_groups(eng, c, found, expected, format);
        return found;
    }

    void experts(mxdnn_memory_t src, mxdnn_memory_t scales, const mxdnn_ep_expert_args_t &a,
            mxdnn_memory_t dst, bool is_backward) {
        expert_rows_t found = check_groups(src, scales, a.group_offsets, is_backward ? groups.dy : groups.x,
                is_backward ? c.backward : c.forward);
        found.counts = values_of<int32_t>(a.group_counts);
        found.starts = values_of<int32_t>(a.group_starts);
        const results_t y = compute_experts(c, found, a, all, rank);
        std::copy(y.values.begin() + dim(y.begin), y.values.begin() + dim(y.end),
                static_cast<uint16_t *>(memory(dst, true).get_data_handle()) + y.begin);
    }

    std::unordered_map<int, memory> dispatch_args(
            rows_t &src, std::vector<int32_t> &counts, std::vector<int32_t> &gather) {
        src = c.gather ? mine().x : mine().rows(c.hidden);
        counts = mine().counts;
        gather = mine().token_of;
        std::unordered_map<int, memory> args = {
                {MXDNN_ARG_SRC, wrap(eng, {dim(src.size()) / c.hidden, c.hidden}, dt::bf16, src)},
                {MXDNN_ARG_GROUP_COUNTS, wrap(eng, {dim(counts.size())}, dt::s32, counts)}};
        if (c.gather) args[MXDNN_ARG_GATHER_IDX] = wrap(eng, {sent()}, dt::s32, gather);
        return args;
    }

    static void expect_sqnr(const rows_t &x, const rows_t &y, double least) {
        if (x.empty()) return;
        EXPECT_GE(sqnr(x, y), least);
    }

    void run(const ep::step &step) {
        rows_t src;
        std::vector<int32_t> counts, gather;
        rows_t y(size_t(sent() * c.hidden), poison);
        execute_chunks(step, c, forward, s, dispatch_args(src, counts, gather),
                {{MXDNN_ARG_DST, wrap(eng, {sent(), c.hidden}, dt::bf16, y)}});
        dim arrives = 0;
        for (const rank_data_t &d : all)
            for (dim e = 0; e < c.local_experts; e++) arrives += d.counts[size_t(rank * c.local_experts + e)];
        EXPECT_EQ(step.arrived(), arrives);
        const rows_t x = mine().rows(c.hidden);
        EXPECT_EQ(y, scaled(through(eng, c.forward, x, c.hidden), mine().expert_of, c.hidden));
        if (c.forward == dt::f8_e4m3) expect_sqnr(scaled(x, mine().expert_of, c.hidden), y, 28); // of combine

        if (c.backward == dt::undef) return;
        rows_t dy = mine().dy, dx(dy.size(), poison);
        step.execute( // of all chunks
                stage::combine, backward, s, {{MXDNN_ARG_SRC, wrap(eng, {sent(), c.hidden}, dt::bf16, dy)}});
        step.execute(stage::unpermute, backward, s);
        step.execute(stage::experts, backward, s);
        step.execute(stage::permute, backward, s);
        step.execute(
                stage::dispatch, backward, s, {{MXDNN_ARG_DST, wrap(eng, {sent(), c.hidden}, dt::bf16, dx)}});
        EXPECT_EQ(dx, scaled(through(eng, c.backward, mine().dy, c.hidden), mine().expert_of, c.hidden));
        if (c.backward == dt::f8_e4m3)
            expect_sqnr(scaled(mine().dy, mine().expert_of, c.hidden), dx, 26); // of dX
    }
};

constexpr routing_t routings[] = {routing_t::random, routing_t::same_expert_twice, routing_t::none_on_a_rank,
        routing_t::one_expert, routing_t::none};

TEST_F(layer_test, every_routing_and_precision) {
    const struct {
        dt forward, backward;
        dim hidden;
    } types[] = {{dt::bf16, dt::bf16, 7}, {dt::f8_e4m3, dt::f8_e4m3, 96}, {dt::f8_e4m3, dt::bf16, 32},
            {dt::bf16, dt::f8_e4m3, 64}, {dt::f4_e2m1, dt::undef, 64}};
    unsigned seed = seed_of_run();
    for (const routing_t routing : routings)
        for (const auto &t : types)
            for (const bool gather : {false, true}) {
                const dim alignment = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 4 : 16;
                const dim local = dim(seed % 3) + 1, chunks = seed % 2 ? local : 1;
                make({routing, t.hidden, local, 2, alignment, t.forward, t.backward, gather, seed, chunks});
                SCOPED_TRACE(std::string("seed ") + std::to_string(seed) + ", routing "
                             + std::to_string(int(routing)) + ", " + name_of(t.forward) + " and "
                             + name_of(t.backward) + (gather ? ", gathered" : ""));
                const ep::layer layer(comm, desc());
                const ep::step step(layer);
                for (int pass = 0; pass < 2; pass++) run(step);
                ASSERT_FALSE(HasFailure());
                seed++;
            }
}

// Memory of the caller for the scratchpad, which two layers share, for workspaces, and for what stages leave.
TEST_F(layer_test, memory_of_the_caller) {
    make({routing_t::random, 64, 2, 2, 8, dt::f8_e4m3, dt::f8_e4m3, true, seed_of_run()});
    const ep::layer::memory_sizes sizes = ep::layer::get_memory_sizes(comm, desc());
    const auto allocate = [](size_t bytes) {
        void *p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
        std::memset(p, 0xa5, bytes);
        return std::unique_ptr<void, void (*)(void *)>(p, std::free);
    };
    const auto scratchpad = allocate(sizes.scratchpad), w1 = allocate(sizes.workspace),
               w2 = allocate(sizes.workspace);
    const ep::layer layer1(comm, desc(), scratchpad.get()), layer2(comm, desc(), scratchpad.get());
    const ep::step step1(layer1, w1.get()), step2(layer2, w2.get());
    run(step1);
    run(step2);

    // Both forward passes, then both backward ones, in memory of the caller between the stages.
    rows_t src;
    std::vector<int32_t> counts, gather;
    const dim capacity = most_tokens * c.topk * ranks, padded = capacity + c.local_experts * c.alignment;
    const memory codes(memory::desc({capacity, c.hidden}, dt::f8_e4m3, tag::ab), eng);
    const memory scales(memory::desc({capacity, c.hidden / 32}, dt::e8m0, tag::ab), eng);
    const memory grouped(memory::desc({padded, c.hidden}, dt::f8_e4m3, tag::ab), eng);
    const memory grouped_scales(memory::desc({padded, c.hidden / 32}, dt::e8m0, tag::ab), eng);
    const memory ends(memory::desc({c.local_experts}, dt::s32, tag::a), eng);
    auto args = dispatch_args(src, counts, gather);
    args[MXDNN_ARG_DST] = codes;
    args[MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST] = scales;
    step1.execute(stage::dispatch, forward, s, args);
    step2.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
    // The scratchpad is now that of step 2.
    EXPECT_THROW(step1.execute(stage::permute, forward, s), mxdnn::error);
    step1.execute(stage::permute, forward, s,
            {{MXDNN_ARG_SRC, codes}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, scales},
                    {MXDNN_ARG_DST, grouped}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST, grouped_scales},
                    {MXDNN_ARG_GROUP_OFFSETS, ends}});
    check_groups(grouped.get(), grouped_scales.get(), ends.get(), groups.x, c.forward);
    step2.execute(stage::permute, forward, s);
    step2.execute(stage::experts, forward, s);
    // Experts of the caller, without the callback.
    rows_t results =
            read_rows(eng, step2.get_memory(stage::unpermute, forward, MXDNN_ARG_SRC).get(), nullptr);
    rows_t back(size_t(capacity * c.hidden), poison), y(size_t(sent() * c.hidden), poison);
    const memory returned = wrap(eng, {capacity, c.hidden}, dt::bf16, back);
    step1.execute(stage::unpermute, forward, s,
            {{MXDNN_ARG_SRC, wrap(eng, {padded, c.hidden}, dt::bf16, results)}, {MXDNN_ARG_DST, returned}});
    step1.execute(stage::combine, forward, s,
            {{MXDNN_ARG_SRC, returned}, {MXDNN_ARG_DST, wrap(eng, {sent(), c.hidden}, dt::bf16, y)}});
    EXPECT_EQ(
            y, scaled(through(eng, c.forward, mine().rows(c.hidden), c.hidden), mine().expert_of, c.hidden));
}

// A primitive instead of callbacks: diagonal matrices of the factors that the callbacks have.
TEST_F(layer_test, experts_as_a_primitive) {
    const auto expected = [&](const rows_t &rows, dt type) {
        rows_t r = scaled(through(eng, type, rows, c.hidden), mine().expert_of, c.hidden);
        std::replace(r.begin(), r.end(), uint16_t(0x8000), uint16_t(0)); // a sum of zeros has no sign
        return r;
    };
    for (const dt type : {dt::bf16, dt::f8_e4m3, dt::f4_e2m1}) {
        make({routing_t::random, 64, 3, 2, 8, type, type == dt::f4_e2m1 ? dt::undef : type, true,
                seed_of_run()});
        ep::layer::desc d = desc();
        d.experts_forward = d.experts_backward = nullptr;
        const ep::layer layer(comm, d);
        const ep::step step(layer);
        rows_t plain(size_t(c.local_experts * c.hidden * c.hidden));
        for (dim e = 0; e < c.local_experts; e++)
            for (dim k = 0; k < c.hidden; k++)
                plain[size_t((e * c.hidden + k) * c.hidden + k)] =
                        to_bf16(factor_of(rank * c.local_experts + e));
        const auto multiply = [&](ep::direction direction) {
            primitive_attr attr, mxfp8;
            attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
            if (type != dt::bf16) attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
            const memory::dims of_weights = {c.local_experts, c.hidden, c.hidden};
            const grouped_matmul::primitive_desc pd(eng, {{MXDNN_RUNTIME_DIM_VAL, c.hidden}, type, tag::ab},
                    {of_weights, dt::f8_e4m3, tag::any},
                    {{MXDNN_RUNTIME_DIM_VAL, c.hidden}, dt::bf16, tag::ab}, attr);
            mxfp8.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
            const memory from({of_weights, dt::bf16, tag::abc}, eng, plain.data());
            auto args = step.get_expert_args(direction);
            args[MXDNN_ARG_WEIGHTS] = memory(pd.weights_desc(), eng);
            mx_reorder({eng, from.get_desc(), eng, pd.weights_desc(), mxfp8})
                    .execute(s, from, args[MXDNN_ARG_WEIGHTS]);
            grouped_matmul(pd).execute(s, args);
        };
        rows_t src, y(size_t(sent() * c.hidden), poison), dy = mine().dy, dx(dy.size(), poison);
        std::vector<int32_t> counts, gather;
        step.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
        step.execute(stage::permute, forward, s);
        multiply(forward);
        step.execute(stage::unpermute, forward, s);
        step.execute(
                stage::combine, forward, s, {{MXDNN_ARG_DST, wrap(eng, {sent(), c.hidden}, dt::bf16, y)}});
        EXPECT_EQ(y, expected(mine().rows(c.hidden), type));
        if (c.backward == dt::undef) continue;
        step.execute(
                stage::combine, backward, s, {{MXDNN_ARG_SRC, wrap(eng, {sent(), c.hidden}, dt::bf16, dy)}});
        step.execute(stage::unpermute, backward, s);
        multiply(backward);
        step.execute(stage::permute, backward, s);
        step.execute(
                stage::dispatch, backward, s, {{MXDNN_ARG_DST, wrap(eng, {sent(), c.hidden}, dt::bf16, dx)}});
        EXPECT_EQ(dx, expected(mine().dy, type));
    }
}

TEST_F(layer_test, steps_allocate_nothing) {
    set_max_concurrency(1); // threads of oneTBB allocate what they need when they first meet
    for (const dt type : {dt::bf16, dt::f8_e4m3}) {
        make({routing_t::random, 64, 2, 2, 8, type, type, true, seed_of_run()});
        ep::layer::desc d = desc();
        d.experts_forward = d.experts_backward = [](void *, mxdnn_stream_t, const mxdnn_ep_expert_args_t *) {
            return mxdnn_success;
        };
        const ep::layer layer(comm, d);
        const ep::step step(layer);
        rows_t src, y(size_t(sent() * c.hidden));
        std::vector<int32_t> counts, gather;
        std::vector<mxdnn_exec_arg_t> dispatch;
        const auto args = dispatch_args(src, counts, gather);
        dispatch.reserve(args.size());
        for (const auto &a : args) dispatch.push_back({a.first, a.second.get()});
        const memory rows = wrap(eng, {sent(), c.hidden}, dt::bf16, y);
        const mxdnn_exec_arg_t from[] = {{MXDNN_ARG_SRC, rows.get()}}, to[] = {{MXDNN_ARG_DST, rows.get()}};
        for (int pass = 0; pass < 2; pass++) {
            const long before = count_of_allocations();
            const auto execute = [&](mxdnn_ep_stage_t st, mxdnn_ep_direction_t dir, int n,
                                         const mxdnn_exec_arg_t *a) {
                EXPECT_EQ(mxdnn_ep_execute(step.get(), st, dir, s.get(), n, a), mxdnn_success)
                        << mxdnn_ep_get_last_error();
                EXPECT_EQ(count_of_allocations(), before) << st << " " << dir;
            };
            execute(mxdnn_ep_dispatch, mxdnn_ep_forward, int(dispatch.size()), dispatch.data());
            for (const auto st : {mxdnn_ep_permute, mxdnn_ep_experts, mxdnn_ep_unpermute})
                execute(st, mxdnn_ep_forward, 0, nullptr);
            execute(mxdnn_ep_combine, mxdnn_ep_forward, 1, to);
            execute(mxdnn_ep_combine, mxdnn_ep_backward, 1, from);
            for (const auto st : {mxdnn_ep_unpermute, mxdnn_ep_experts, mxdnn_ep_permute})
                execute(st, mxdnn_ep_backward, 0, nullptr);
            execute(mxdnn_ep_dispatch, mxdnn_ep_backward, 1, to);
        }
    }
    set_max_concurrency(0);
}

// ---- what is refused: on every rank, with the same sentence, and the next pass is as if nothing had
// happened ----

struct refused_test : layer_test {
    ep::layer layer;
    ep::step step;

    void begin(dt type = dt::bf16) {
        make({routing_t::random, 32, 2, 2, 4, type, type, true, seed_of_run()});
        layer = ep::layer(comm, desc());
        step = ep::step(layer);
    }
    template <typename F>
    void expect_refused(F &&call, const std::string &sentence) {
        try {
            call();
            ADD_FAILURE() << "not refused, but should be: " << sentence;
        } catch (const mxdnn::error &e) {
            EXPECT_NE(std::string(e.what()).find(sentence), std::string::npos) << e.what();
        }
    }
    // A dispatch that one rank, the last, calls with something wrong.
    void expect_dispatch_refused(const std::function<void(std::unordered_map<int, memory> &,
                                         std::vector<int32_t> &, std::vector<int32_t> &)> &spoil,
            const std::string &sentence) {
        SCOPED_TRACE(sentence);
        begin();
        rows_t src;
        std::vector<int32_t> counts, gather;
        auto args = dispatch_args(src, counts, gather);
        if (rank == ranks - 1) spoil(args, counts, gather);
        expect_refused([&] { step.execute(stage::dispatch, forward, s, args); },
                "dispatch forward: rank " + std::to_string(ranks - 1) + ": " + sentence);
        rows_t y;
        const memory none = wrap(eng, {0, c.hidden}, dt::bf16, y);
        expect_refused(
                [&] {
                    step.execute(stage::combine, forward, s, {{MXDNN_ARG_DST, none}});
                },
                "dispatch forward comes first");
        run(step);
    }
};

TEST_F(refused_test, arguments_of_one_rank) {
    using args_t = std::unordered_map<int, memory>;
    using indices_t = std::vector<int32_t>;
    expect_dispatch_refused(
            [](args_t &, indices_t &counts, indices_t &) { counts[0]++; }, "the sum of GROUP_COUNTS is");
    expect_dispatch_refused(
            [](args_t &, indices_t &counts, indices_t &) { counts[1] = -4; }, "GROUP_COUNTS[1] is -4");
    expect_dispatch_refused(
            [](args_t &, indices_t &, indices_t &gather) { gather[0] = 1000; }, "GATHER_IDX[0] is 1000");
    expect_dispatch_refused(
            [](args_t &args, indices_t &, indices_t &) { args.erase(MXDNN_ARG_SRC); }, "SRC is not");
    expect_dispatch_refused(
            [](args_t &args, indices_t &, indices_t &) { args.erase(MXDNN_ARG_GROUP_COUNTS); },
            "GROUP_COUNTS are not");
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({1, 31}, dt::bf16, tag::ab), eng);
            },
            "SRC has 31 columns");
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({1, 32}, dt::f32, tag::ab), eng);
            },
            "SRC has data type");
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({2, 32}, dt::bf16, tag::ba), eng);
            },
            "SRC has strides");
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({1000, 32}, dt::bf16, tag::ab), eng);
            },
            "SRC has 1000 entries or rows; possible are 0 to");
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_BIAS] = memory(memory::desc({1}, dt::s32, tag::a), eng);
            },
            "argument 41 is passed");
    expect_dispatch_refused(
            [this](args_t &args, indices_t &counts, indices_t &) {
                args[MXDNN_ARG_GROUP_COUNTS] = memory(memory::desc({dim(counts.size())}, dt::s32, tag::a),
                        eng, reinterpret_cast<char *>(counts.data()) + 1);
            },
            "GROUP_COUNTS is at address");
    // One row, all of whose columns are one element: two bytes.
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({1, 32}, dt::bf16, memory::dims{0, 0}), eng);
            },
            "SRC has strides");
}

TEST_F(refused_test, more_rows_than_the_capacity) {
    make({routing_t::one_expert, 32, 2, 2, 4, dt::bf16, dt::bf16, false, seed_of_run()});
    ep::layer::desc d = desc();
    dim sum = 0;
    for (const rank_data_t &r : all) sum += dim(r.token_of.size());
    d.capacity = sum - 1;
    const ep::layer small(comm, d);
    const ep::step small_step(small);
    rows_t src;
    std::vector<int32_t> counts, gather;
    expect_refused(
            [&] { small_step.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather)); },
            "dispatch forward: rank " + std::to_string(ranks - 1) + ": " + std::to_string(sum)
                    + " rows would arrive");
    d.capacity = sum;
    const ep::layer large(comm, d);
    run(ep::step(large));
}

TEST_F(refused_test, experts_of_one_rank) {
    begin();
    rows_t src;
    std::vector<int32_t> counts, gather;
    ep::layer::desc d = desc();
    d.user = rank == ranks - 1 ? &d : nullptr;
    d.experts_forward = [](void *fails, mxdnn_stream_t, const mxdnn_ep_expert_args_t *) {
        return fails ? mxdnn_runtime_error : mxdnn_success;
    };
    const ep::layer failing(comm, d);
    const ep::step other(failing);
    other.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
    other.execute(stage::permute, forward, s);
    if (rank == ranks - 1)
        expect_refused(
                [&] { other.execute(stage::experts, forward, s); }, "experts forward: the callback returned");
    rows_t y(size_t(sent() * c.hidden));
    const memory result = wrap(eng, {sent(), c.hidden}, dt::bf16, y);
    expect_refused(
            [&] {
                other.execute(stage::combine, forward, s,
                        {{MXDNN_ARG_SRC, other.get_memory(stage::combine, forward, MXDNN_ARG_SRC)},
                                {MXDNN_ARG_DST, result}});
            },
            "combine forward: rank " + std::to_string(ranks - 1)
                    + ": experts forward: the callback returned");
    run(step);
}

// What a callback throws is a failure of its stage, of which the other ranks hear as of any other.
TEST_F(refused_test, experts_that_throw) {
    begin();
    rows_t src;
    std::vector<int32_t> counts, gather;
    rows_t y(size_t(sent() * c.hidden));
    const memory result = wrap(eng, {sent(), c.hidden}, dt::bf16, y);
    const char *const thrown[] = {"a sentence", "memory has run out", "none of the C++ library's"};
    for (int kind = 0; kind < 3; kind++) {
        ep::layer::desc d = desc();
        d.user = rank == ranks - 1 ? &kind : nullptr;
        d.experts_forward = [](void *kind, mxdnn_stream_t, const mxdnn_ep_expert_args_t *) {
            if (!kind) return mxdnn_success;
            const int k = *static_cast<int *>(kind);
            if (k == 0) throw std::runtime_error("a sentence");
            if (k == 1) throw std::bad_alloc();
            throw 42;
        };
        const ep::layer failing(comm, d);
        const ep::step other(failing);
        other.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
        other.execute(stage::permute, forward, s);
        const std::string why =
                std::string("the callback: ") + (kind == 2 ? "an exception that is " : "") + thrown[kind];
        if (rank == ranks - 1)
            expect_refused([&] { other.execute(stage::experts, forward, s); }, "experts forward: " + why);
        expect_refused(
                [&] {
                    other.execute(stage::combine, forward, s,
                            {{MXDNN_ARG_SRC, other.get_memory(stage::combine, forward, MXDNN_ARG_SRC)},
                                    {MXDNN_ARG_DST, result}});
                },
                "combine forward: rank " + std::to_string(ranks - 1) + ": experts forward: " + why);
    }
    run(step);
}

TEST_F(refused_test, stages_out_of_order) {
    begin();
    rows_t src;
    std::vector<int32_t> counts, gather;
    step.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
    expect_refused([&] { step.execute(stage::experts, forward, s); }, "the stage before has not written it");
    expect_refused(
            [&] { step.execute(stage::unpermute, backward, s); }, "the stage before has not written it");
    run(step);
    expect_refused([&] { step.get_memory(stage::dispatch, forward, MXDNN_ARG_SRC); }, "no memory of its own");

    ep::layer::desc d = desc();
    d.chunks = 2;
    const ep::layer chunked(comm, d);
    const ep::step in_chunks(chunked);
    expect_refused(
            [&] {
                in_chunks.execute_chunk(stage::dispatch, forward, 1, s, dispatch_args(src, counts, gather));
            },
            "dispatch forward comes first");
    in_chunks.execute_chunk(stage::dispatch, forward, 0, s, dispatch_args(src, counts, gather));
    expect_refused([&] { in_chunks.execute_chunk(stage::permute, forward, 1, s); },
            "the next one of this stage is 0");
    in_chunks.execute_chunk(stage::dispatch, forward, 0, s, dispatch_args(src, counts, gather));
    in_chunks.execute_chunk(stage::permute, forward, 0, s);
    expect_refused([&] { in_chunks.execute_chunk(stage::permute, forward, 1, s); }, "have not been sent");
    expect_refused([&] { in_chunks.execute_chunk(stage::permute, forward, 2, s); }, "the layer has 2");

    d = desc();
    d.backward_type = mxdnn_data_type_undef;
    const ep::layer inference(comm, d);
    expect_refused([&] { ep::step(inference).execute(stage::permute, backward, s); }, "no backward pass");
}

// Two passes that overtake each other where they take turns in one scratchpad.
TEST_F(refused_test, overwritten_by_another_step) {
    begin();
    rows_t src;
    std::vector<int32_t> counts, gather;
    const auto dispatch = dispatch_args(src, counts, gather);
    const ep::step other(layer);
    const auto compute = [&](const ep::step &one) { one.execute(stage::experts, forward, s); };
    for (const ep::step *one : {static_cast<const ep::step *>(&step), &other}) {
        one->execute(stage::dispatch, forward, s, dispatch);
        one->execute(stage::permute, forward, s);
    }
    compute(step);
    compute(other);
    expect_refused([&] { step.execute(stage::unpermute, forward, s); }, "another stage has overwritten it");
    other.execute(stage::unpermute, forward, s);
    expect_refused([&] { step.execute(stage::unpermute, forward, s); }, "another stage has overwritten it");
    compute(step);
    step.execute(stage::unpermute, forward, s);

    // Of two layers with parts in other places each stage of one ends what the other has there.
    ep::layer::desc d = desc();
    d.max_rows += 8;
    const auto sizes = ep::layer::get_memory_sizes(comm, d);
    memory scratchpad(memory::desc({dim(sizes.scratchpad)}, dt::s8, tag::a), eng);
    const ep::layer large(comm, d, scratchpad.get_data_handle());
    const ep::layer small(comm, desc(), scratchpad.get_data_handle());
    const ep::step first(large), second(small);
    for (const ep::step *one : {&first, &second}) {
        one->execute(stage::dispatch, forward, s, dispatch);
        one->execute(stage::permute, forward, s);
    }
    compute(first);
    compute(second);
    expect_refused([&] { first.execute(stage::unpermute, forward, s); }, "another stage has overwritten it");
    second.execute(stage::unpermute, forward, s);
    run(step);
}

TEST_F(refused_test, ranks_that_disagree) {
    if (ranks == 1) GTEST_SKIP() << "one rank agrees with itself";
    begin();
    const bool last = rank == ranks - 1;
    ep::layer::desc d = desc();
    d.hidden = last ? 64 : 32;
    expect_refused([&] { ep::layer(comm, d); }, "ranks disagree: hidden is 32 on rank");
    d = desc();
    if (last) d.alignment = 0;
    expect_refused([&] { ep::layer(comm, d); }, "rank " + std::to_string(ranks - 1) + ": alignment is 0");

    rows_t src;
    std::vector<int32_t> counts, gather;
    const auto args = dispatch_args(src, counts, gather);
    step.execute(stage::dispatch, forward, s, args);
    rows_t y(size_t(sent() * c.hidden));
    const memory rows = wrap(eng, {sent(), c.hidden}, dt::bf16, y);
    expect_refused(
            [&] {
                if (last)
                    step.execute(stage::combine, backward, s, {{MXDNN_ARG_SRC, rows}});
                else
                    step.execute(stage::dispatch, forward, s, args);
            },
            "ranks disagree: the stage is dispatch forward on rank");
    expect_refused(
            [&] {
                if (last)
                    ep::layer(comm, desc());
                else
                    step.execute(stage::dispatch, forward, s, args);
            },
            "call different functions");
    run(step);
}

TEST_F(refused_test, descriptors) {
    begin();
    const auto refused = [&](void (*spoil)(ep::layer::desc &), const char *sentence) {
        ep::layer::desc d = desc();
        spoil(d);
        expect_refused([&] { ep::layer::get_memory_sizes(comm, d); }, sentence);
        expect_refused([&] { ep::layer(comm, d); }, sentence);
    };
    refused([](ep::layer::desc &d) { d.struct_size = 8; }, "struct_size is 8");
    refused([](ep::layer::desc &d) { d.hidden = 0; }, "hidden is 0; possible are 1");
    refused([](ep::layer::desc &d) { d.experts = 0; }, "experts is 0");
    refused([](ep::layer::desc &d) { d.max_tokens = -1; }, "max_tokens is -1");
    refused([](ep::layer::desc &d) { d.max_rows = INT64_MAX; }, "max_rows is 9223372036854775807");
    refused([](ep::layer::desc &d) { d.capacity = -2; }, "capacity is -2");
    refused([](ep::layer::desc &d) { d.alignment = INT32_MAX; }, "capacity plus the alignment");
    refused([](ep::layer::desc &d) { d.chunks = 5; }, "chunks is 5; possible are 1 to 2");
    refused([](ep::layer::desc &d) { d.chunks = -1; }, "chunks is -1");
    refused([](ep::layer::desc &d) { d.forward_type = mxdnn_f32; }, "forward_type is 3");
    refused([](ep::layer::desc &d) { d.backward_type = mxdnn_f4_e2m1; }, "backward_type is 14");
    refused([](ep::layer::desc &d) { d.hidden = 48, d.forward_type = mxdnn_f8_e4m3; }, "hidden is 48; rows");
    refused([](ep::layer::desc &d) { d.hidden = 3, d.forward_type = mxdnn_f8_e4m3; }, "hidden is 3; rows");
    if (ranks > 1) {
        ep::layer::desc d = desc();
        d.experts++;
        expect_refused([&] { ep::layer(comm, d); }, "has to be a multiple of the");
    }
    run(step);
}

TEST_F(refused_test, communicators) {
    const MPI_Comm null = MPI_COMM_NULL;
    expect_refused([&] { ep::communicator(eng, ep::transport::mpi, null, 1000); }, "MPI_COMM_NULL");
    expect_refused([&] { ep::communicator(eng, ep::transport::mpi, MPI_COMM_WORLD, 0); }, "timeout_ms is 0");
    expect_refused(
            [&] { ep::communicator(eng, ep::transport::nccl, null, 1000); }, "of another kind than NCCL");
    expect_refused([&] { ep::communicator(eng, ep::transport::mpi, 'c', 1000); }, "size is 1; an MPI_Comm");
}

} // namespace

int main(int argc, char **argv) { return run_on_all_ranks(argc, argv); }
