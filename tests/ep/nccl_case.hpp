// SPDX-License-Identifier: Apache-2.0
// One rank's part of a layer over NCCL, next to plain loops.
#pragma once

#include "ep/layer_case.hpp"
#include "ep/nccl_ranks.hpp"

namespace ep_test {

constexpr uint16_t poison = 0x7fc0; // a NaN

inline memory::desc matrix(dim rows, dim columns, dt type) { return {{rows, columns}, type, tag::ab}; }
inline memory::desc vector(dim n) { return {{n}, dt::s32, tag::a}; }

inline rows_t rows_of(const std::vector<uint8_t> &bytes) {
    rows_t r(bytes.size() / 2);
    if (!r.empty()) std::memcpy(r.data(), bytes.data(), bytes.size());
    return r;
}

// One rank's part of a case.
struct layer_case_t {
    const nccl_rank_t &at;
    case_t c;
    std::vector<rank_data_t> all;
    groups_t groups;
    engine cpu{engine::kind::cpu, 0};
    std::vector<memory> kept; // arguments of stages under way

    layer_case_t(const nccl_rank_t &r, const case_t &acase) : at(r), c(acase) {
        for (int p = 0; p < at.ranks; p++) all.push_back(make_rank(c, p, at.ranks));
        groups = make_groups(c, all, at.rank);
    }
    const rank_data_t &mine() const { return all[size_t(at.rank)]; }
    dim sent() const { return dim(mine().token_of.size()); }

    ep::layer::desc desc() {
        ep::layer::desc d = describe(c, at.ranks);
        d.user = this;
        d.experts_forward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *a) {
            layer_case_t &t = *static_cast<layer_case_t *>(user);
            t.experts(a->src, a->src_scales, *a, a->dst, t.groups.x, t.c.forward);
            return mxdnn_success;
        };
        d.experts_backward = [](void *user, mxdnn_stream_t, const mxdnn_ep_expert_args_t *a) {
            layer_case_t &t = *static_cast<layer_case_t *>(user);
            t.check_groups(a->src, a->src_scales, a->group_offsets, t.groups.x, t.c.forward); // kept
            t.experts(a->diff_dst, a->diff_dst_scales, *a, a->diff_src, t.groups.dy, t.c.backward);
            return mxdnn_success;
        };
        return d;
    }

    // Values of rows on the device.
    rows_t read(
            mxdnn_memory_t rows_memory, mxdnn_memory_t scales_memory, std::vector<uint8_t> &scales) const {
        const memory rows(rows_memory, true);
        std::vector<uint8_t> codes = at.download(rows);
        if (!scales_memory) return rows_of(codes);
        const memory s(scales_memory, true);
        scales = at.download(s);
        return read_rows(cpu, memory(rows.get_desc(), cpu, codes.data()).get(),
                memory(s.get_desc(), cpu, scales.data()).get());
    }
    std::vector<int32_t> ints(mxdnn_memory_t m) const {
        const std::vector<uint8_t> bytes = at.download(memory(m, true));
        std::vector<int32_t> v(bytes.size() / 4);
        std::memcpy(v.data(), bytes.data(), bytes.size());
        return v;
    }

    expert_rows_t check_groups(mxdnn_memory_t rows, mxdnn_memory_t scales, mxdnn_memory_t offsets,
            const std::vector<rows_t> &expected, dt format) const {
        SCOPED_TRACE("rank " + std::to_string(at.rank));
        expert_rows_t found;
        found.rows = read(rows, scales, found.scales);
        found.ends = ints(offsets);
        expect_groups(cpu, c, found, expected, format);
        return found;
    }

    void experts(mxdnn_memory_t src, mxdnn_memory_t scales, const mxdnn_ep_expert_args_t &a,
            mxdnn_memory_t dst, const std::vector<rows_t> &expected, dt format) {
        expert_rows_t found = check_groups(src, scales, a.group_offsets, expected, format);
        found.counts = ints(a.group_counts);
        found.starts = ints(a.group_starts);
        const results_t y = compute_experts(c, found, a, all, at.rank);
        cuda_interop::copy(at.s, static_cast<uint16_t *>(memory(dst, true).get_data_handle()) + y.begin,
                y.values.data() + y.begin, (y.end - y.begin) * 2);
        at.s.wait();
    }

    std::unordered_map<int, memory> dispatch_args() {
        const rows_t src = c.gather ? mine().x : mine().rows(c.hidden);
        std::unordered_map<int, memory> args = {
                {MXDNN_ARG_SRC,
                        at.upload(matrix(dim(src.size()) / c.hidden, c.hidden, dt::bf16), src.data())},
                {MXDNN_ARG_GROUP_COUNTS, at.upload(vector(dim(mine().counts.size())), mine().counts.data())}};
        if (c.gather) args[MXDNN_ARG_GATHER_IDX] = at.upload(vector(sent()), mine().token_of.data());
        return args;
    }
    memory poisoned() const {
        const rows_t v(size_t(sent() * c.hidden), poison);
        return at.upload(matrix(sent(), c.hidden, dt::bf16), v.data());
    }

    void run(const ep::step &step) {
        const memory y = poisoned();
        execute_chunks(step, c, ep::direction::forward, at.s, dispatch_args(), {{MXDNN_ARG_DST, y}});
        at.comm.wait(at.s);
        dim arrives = 0;
        for (const rank_data_t &d : all)
            for (dim e = 0; e < c.local_experts; e++)
                arrives += d.counts[size_t(at.rank * c.local_experts + e)];
        if (at.direct)
            EXPECT_THROW(step.arrived(), mxdnn::error);
        else
            EXPECT_EQ(step.arrived(), arrives);
        EXPECT_EQ(rows_of(at.download(y)),
                scaled(through(cpu, c.forward, mine().rows(c.hidden), c.hidden), mine().expert_of, c.hidden))
                << "rank " << at.rank;
        if (c.backward == dt::undef) return;
        const memory dx = poisoned(), dy = at.upload(matrix(sent(), c.hidden, dt::bf16), mine().dy.data());
        step.execute(ep::stage::combine, ep::direction::backward, at.s, {{MXDNN_ARG_SRC, dy}});
        step.execute(ep::stage::unpermute, ep::direction::backward, at.s);
        step.execute(ep::stage::experts, ep::direction::backward, at.s);
        step.execute(ep::stage::permute, ep::direction::backward, at.s);
        step.execute(ep::stage::dispatch, ep::direction::backward, at.s, {{MXDNN_ARG_DST, dx}});
        at.comm.wait(at.s);
        EXPECT_EQ(rows_of(at.download(dx)),
                scaled(through(cpu, c.backward, mine().dy, c.hidden), mine().expert_of, c.hidden))
                << "rank " << at.rank;
    }
};

} // namespace ep_test
