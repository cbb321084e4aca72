// SPDX-License-Identifier: Apache-2.0
// A layer over the ranks that mpiexec started, next to plain loops.
#pragma once

#include <mpi.h>

#include <gtest/gtest.h>

#include "ep/layer_case.hpp"
#include "ep/ranks.hpp"

namespace ep_test {

using ep::direction;
using ep::stage;

constexpr direction forward = direction::forward, backward = direction::backward;
constexpr uint16_t poison = 0x7fc0; // a NaN

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

} // namespace ep_test
