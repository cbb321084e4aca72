// SPDX-License-Identifier: Apache-2.0
// A layer over the ranks that mpiexec started, in every precision, next to plain loops. Every rank runs the
// same tests.
#include "ep/layer_test.hpp"
#include "gtests/count_allocations.hpp"

using namespace ep_test;

namespace {

const char *name_of(dt type) {
    return type == dt::bf16 ? "bf16" : type == dt::f8_e4m3 ? "mxfp8" : type == dt::f4_e2m1 ? "mxfp4" : "none";
}

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

} // namespace

int main(int argc, char **argv) { return run_on_all_ranks(argc, argv); }
