// SPDX-License-Identifier: Apache-2.0
// What is refused: on every rank, with the same sentence, and the next pass is as if nothing had happened.
#include "ep/layer_test.hpp"

using namespace ep_test;

namespace {

struct refused_test : layer_test {
    ep::layer layer;
    ep::step step;

    void begin(dt type = dt::bf16) {
        make({routing_t::random, 32, 2, 2, 4, type, type, true, seed_of_run()});
        layer = ep::layer(comm, desc());
        step = ep::step(layer);
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
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({32}, dt::bf16, tag::a), eng);
            },
            "SRC has 1 dimensions; 2 are needed");
    const memory elsewhere(memory::desc({1, 32}, dt::bf16, tag::ab), engine::for_target("cuda:sm_90"));
    expect_dispatch_refused([&](args_t &args, indices_t &, indices_t &) { args[MXDNN_ARG_SRC] = elsewhere; },
            "SRC is memory of another engine");
    // One row, all of whose columns are one element: two bytes.
    expect_dispatch_refused(
            [this](args_t &args, indices_t &, indices_t &) {
                args[MXDNN_ARG_SRC] = memory(memory::desc({1, 32}, dt::bf16, memory::dims{0, 0}), eng);
            },
            "SRC has strides");
}

TEST_F(refused_test, rows_that_are_sent_without_indices) {
    begin();
    ep::layer::desc d = desc();
    d.max_tokens = d.max_rows + 1;
    const ep::layer wide(comm, d);
    rows_t src(size_t(d.max_tokens * c.hidden));
    std::vector<int32_t> counts(size_t(d.experts));
    counts[0] = int32_t(d.max_tokens);
    expect_refused(
            [&] {
                ep::step(wide).execute(stage::dispatch, forward, s,
                        {{MXDNN_ARG_SRC, wrap(eng, {d.max_tokens, c.hidden}, dt::bf16, src)},
                                {MXDNN_ARG_GROUP_COUNTS, wrap(eng, {d.experts}, dt::s32, counts)}});
            },
            "SRC has " + std::to_string(d.max_tokens) + " rows, all of which are sent; max_rows is");
    run(step);
}

TEST_F(refused_test, packed_rows) {
    begin(dt::f8_e4m3);
    rows_t src;
    std::vector<int32_t> counts, gather;
    const ep::layer::desc d = desc();
    step.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
    mxdnn::primitive_attr mxfp8;
    mxfp8.set_scales(MXDNN_ARG_WEIGHTS, 3, {32, 1}, dt::e8m0);
    const memory packed(memory::desc::packed(eng, {d.max_rows * ranks, c.hidden}, dt::f8_e4m3, mxfp8), eng);
    expect_refused(
            [&] {
                step.execute(stage::permute, forward, s, {{MXDNN_ARG_SRC, packed}});
            },
            "permute forward: SRC is neither a plain nor a grouped tensor");
    run(step);
}

TEST_F(refused_test, gradients_of_rows_that_were_not_kept) {
    begin();
    rows_t src, dy = mine().dy;
    std::vector<int32_t> counts, gather;
    step.execute(stage::dispatch, forward, s, dispatch_args(src, counts, gather));
    step.execute(stage::combine, backward, s, {{MXDNN_ARG_SRC, wrap(eng, {sent(), c.hidden}, dt::bf16, dy)}});
    step.execute(stage::unpermute, backward, s);
    expect_refused([&] { step.execute(stage::experts, backward, s); },
            "experts backward: permute forward has not written to the workspace in this pass");
    run(step);
}

TEST_F(refused_test, numbers_that_are_none_and_null_pointers) {
    begin();
    const auto execute = [&](int stage, int direction) {
        ep::wrap_c_api(mxdnn_ep_execute(
                step.get(), mxdnn_ep_stage_t(stage), mxdnn_ep_direction_t(direction), s.get(), 0, nullptr));
    };
    expect_refused([&] { execute(5, mxdnn_ep_forward); }, "mxdnn_ep_execute: stage is 5, which is no stage");
    expect_refused([&] { execute(mxdnn_ep_permute, 2); }, "direction is 2, which is no direction");
    mxdnn_ep_layer_t none = nullptr;
    expect_refused(
            [&] { ep::wrap_c_api(mxdnn_ep_layer_create(&none, comm.get(), nullptr, MXDNN_MEMORY_ALLOCATE)); },
            "desc is a null pointer");
    EXPECT_EQ(none, nullptr);
    run(step);
}

TEST_F(refused_test, lists_of_arguments_of_one_rank) {
    using list_t = std::vector<mxdnn_exec_arg_t>;
    const std::pair<const char *, void (*)(list_t &, int &)> wrong[] = {
            {"is passed twice", [](list_t &list, int &n) { list.push_back(list[0]), n++; }},
            {"is a null pointer", [](list_t &list, int &) { list[0].memory = nullptr; }},
            {"args is a null pointer, or nargs is negative", [](list_t &list, int &) { list.clear(); }},
            {"args is a null pointer, or nargs is negative", [](list_t &, int &n) { n = -1; }}};
    for (const auto &[sentence, spoil] : wrong) {
        begin();
        rows_t src;
        std::vector<int32_t> counts, gather;
        const auto args = dispatch_args(src, counts, gather);
        list_t list;
        for (const auto &a : args) list.push_back({a.first, a.second.get()});
        int n = int(list.size());
        if (rank == ranks - 1) spoil(list, n);
        expect_refused(
                [&] {
                    ep::wrap_c_api(mxdnn_ep_execute(step.get(), mxdnn_ep_dispatch, mxdnn_ep_forward, s.get(),
                            n, list.empty() ? nullptr : list.data()));
                },
                sentence);
        run(step);
    }
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
    expect_refused([&] { step.execute(stage::experts, forward, s); },
            "experts forward: SRC is not passed, and the stage before has not written it");
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
    expect_refused([&] { in_chunks.execute_chunk(stage::permute, forward, 1, s); },
            "permute forward: the rows of chunk 1 have not been sent");
    expect_refused([&] { in_chunks.execute_chunk(stage::permute, forward, 2, s); },
            "permute forward: chunk is 2; the layer has 2");

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
    ep::layer::desc d = desc();
    d.experts = 3 * ranks;
    d.chunks = 2;
    expect_refused([&] { ep::layer(comm, d); }, "chunks is 2; it has to divide the 3 local experts");
    if (ranks > 1) {
        d = desc();
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
    const engine device = engine::for_target("cuda:sm_90");
    if (!MXDNN_EP_NCCL)
        expect_refused([&] { ep::communicator(device, ep::transport::nccl, 'c', 1000); },
                "this build of the library has no transport over NCCL");
}

} // namespace
