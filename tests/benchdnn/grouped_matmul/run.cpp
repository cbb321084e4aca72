// SPDX-License-Identifier: Apache-2.0
// Runs one grouped_matmul problem: every implementation that takes it is compared, the first one timed.
#include <map>
#include <memory>

#include "benchdnn/grouped_matmul/oracle.hpp"

namespace bench {
namespace grouped_matmul {

using namespace mxdnn::impl;
using pd_t = mxdnn::grouped_matmul::primitive_desc;
using mxdnn::memory;

namespace {

pd_t make_pd(const mxdnn::engine &eng, const problem_t &p, const descs_t &d) {
    return pd_t(eng, d.src, d.wei, p.bias ? d.bias : memory::desc(), d.dst, d.attr);
}

// Everything that an execution needs, kept alive.
struct execution_t {
    const problem_t &p;
    const routing_t routing;
    mxdnn::stream stream;
    mxdnn::engine eng; // of memory: the host's
    data_t data;
    buffer_t packed;
    scratchpad_t scratchpad;
    std::vector<buffer_t> indices, experts;
    std::vector<uint64_t> pointers;
    operand_t dst;
    args_t args;
    memory::desc weights_md;
    int64_t expert_stride = 0;

    // `spare`: copies of that many more experts behind the weights.
    execution_t(const problem_t &problem, const mxdnn::engine &e, const memory::desc &weights, bool perf,
            int64_t spare)
        : p(problem), routing(make_routing(problem, settings.seed)), stream(stream_of(e)),
          eng(host_engine(e)),
          data(make_data(problem, routing, settings.seed, perf && problem.wtag == "any")),
          weights_md(weights) {
        problem_t fixed = p;
        fixed.runtime_rows = false;
        const descs_t d = make_descs(fixed, routing);
        data.src.add_args(MXDNN_ARG_SRC, eng, args);
        args[MXDNN_ARG_SRC] = memory(d.src, eng, data.src.codes().bytes.data());
        if (p.wtag == "any") {
            pack_weights(perf, spare);
        } else {
            args[MXDNN_ARG_WEIGHTS] = data.wei.codes.memory(eng);
            data.wei.add_args(MXDNN_ARG_WEIGHTS, eng, args);
        }
        if (p.bias) args[MXDNN_ARG_BIAS] = data.bias.memory(eng);
        if (p.alpha) args[MXDNN_ARG_EXPERT_ALPHA] = data.alpha.memory(eng);
        if (p.params != params_t::none) args[MXDNN_ARG_ACTIVATION_PARAMS] = data.params.memory(eng);
        if (!p.topk_weights.empty()) args[MXDNN_ARG_TOPK_WEIGHTS] = data.topk.memory(eng);
        const bool by_row = p.grouping == mxdnn::row_grouping::row_ids;
        add_indices(by_row           ? MXDNN_ARG_ROW_EXPERT_IDS
                    : routing.padded ? MXDNN_ARG_GROUP_COUNTS
                                     : MXDNN_ARG_GROUP_OFFSETS,
                routing.bounds, true);
        add_indices(MXDNN_ARG_GROUP_EXPERT_IDS, routing.group_ids, p.active && !by_row);
        add_indices(MXDNN_ARG_EXPERT_MAP, routing.map, p.map);
        add_indices(MXDNN_ARG_GATHER_IDX, routing.gather, p.gather);
        add_indices(MXDNN_ARG_SCATTER_IDX, routing.scatter, p.scatter != scatter_t::none);
        dst = operand_t(tensor_t(data.old_dst.dims, data.old_dst.strides, p.dst_type.dt, p.dst_type.dense),
                p.dst_type, int(data.old_dst.dims.size()) - 1, p.scales_tag,
                p.scatter == scatter_t::none ? routing.swizzled_rows : std::vector<int64_t>());
        rng_t rng(settings.seed);
        dst.fill_given(rng);
        dst.add_args(MXDNN_ARG_DST, eng, args);
        args[MXDNN_ARG_DST] = memory(d.dst, eng, dst.codes().bytes.data());
    }

    void add_indices(int arg, const std::vector<int32_t> &v, bool passed) {
        if (!passed) return;
        indices.emplace_back(v.size() * sizeof(int32_t), sizeof(int32_t));
        if (!v.empty()) std::memcpy(indices.back().data(), v.data(), v.size() * sizeof(int32_t));
        args[arg] = memory(memory::desc({int64_t(v.size())}, memory::data_type::s32, memory::format_tag::a),
                eng, indices.back().data());
    }

    // All experts, or one that is copied.
    void pack_weights(bool perf, int64_t spare) {
        const int64_t E = p.local;
        expert_stride = weights_md.get_expert_stride();
        packed = buffer_t(
                size_t(expert_stride * (E + spare - 1)) + one_desc(E).get_size() / size_t(E), packed_align);
        pack(data.wei, stream, perf ? one_desc(1) : weights_md, packed.data());
        if (perf)
            for (int64_t e = 1; e < E + spare; e++)
                std::memcpy(packed.data() + e * expert_stride, packed.data(), one_desc(1).get_size());
        if (!p.pointers) {
            args[MXDNN_ARG_WEIGHTS] = memory(weights_md, eng, packed.data());
            return;
        }
        // Each expert in memory of its own, in no order.
        const size_t bytes = one_desc(1).get_size();
        for (int64_t e = 0; e < E; e++) {
            experts.emplace_back(bytes, 16);
            std::memcpy(experts.back().data(), packed.data() + e * expert_stride, bytes);
            pointers.push_back(uint64_t(reinterpret_cast<uintptr_t>(experts.back().data())));
        }
        args[MXDNN_ARG_WEIGHTS_PTRS] = memory(
                memory::desc({E}, memory::data_type::u64, memory::format_tag::a), eng, pointers.data());
    }

    // The packed descriptor of some experts.
    memory::desc one_desc(int64_t n) const {
        problem_t one;
        one.K = p.K;
        one.N = p.N;
        one.wei_type = p.wei_type;
        if (one.wei_type.quant.global != global_scale_kind_t::none)
            one.wei_type.quant.global = n > 1 ? global_scale_kind_t::per_expert : global_scale_kind_t::one;
        one.src_type.dt = one.dst_type.dt = mxdnn_f32;
        one.experts = one.local = n;
        one.topk = one.tokens = 1;
        const routing_t r = make_routing(one, 1);
        return make_pd(eng, one, make_descs(one, r)).weights_desc();
    }

    void poison_dst() {
        dst.poison();
        if (!p.adds_to_dst()) return;
        const tensor_t &t = dst.plain;
        std::vector<char> written(size_t(routing.dst_rows), p.scatter != scatter_t::none);
        for (const row_t &r : routing.rows)
            if (r.expert >= 0 && r.dst >= 0) written[size_t(r.dst)] = 1;
        for_each(t.dims, [&](const int64_t *idx) {
            const int64_t row = t.dims.size() == 3 ? idx[0] * t.dims[1] + idx[1] : idx[0];
            if (written[size_t(row)]) t.set_code(idx, data.old_dst.code(idx));
        });
    }

    void run(const pd_t &pd, const mxdnn::grouped_matmul &prim) {
        scratchpad.add(pd.scratchpad_desc(), eng, args);
        execute(prim, stream, args, pointers_there());
    }
    // On a device the table of experts points into a copy there.
    args_t pointers_there() {
        if (pointers.empty() || !is_device(stream.get_engine())) return {};
        experts_there = bytes_on_device(stream.get_engine(), packed.data(), packed.size());
        std::vector<uint64_t> p;
        for (size_t e = 0; e < pointers.size(); e++)
            p.push_back(uint64_t(reinterpret_cast<uintptr_t>(experts_there.get_data_handle()))
                        + e * uint64_t(expert_stride));
        const memory table(args[MXDNN_ARG_WEIGHTS_PTRS].get_desc(), eng, p.data());
        return {{MXDNN_ARG_WEIGHTS_PTRS, on_device(stream.get_engine(), table)}};
    }
    memory experts_there;
};

// mx_matmul for one expert after the other, with as many rows as it has and the same post-ops.
peer_t make_dense(
        const problem_t &p, execution_t &x, const std::vector<int64_t> &shifts, const size_t &next) {
    const std::vector<int64_t> &rows = x.routing.counts;
    mxdnn::primitive_attr attr;
    mxdnn::post_ops po;
    if (const post_op_knob_t *o = p.gated()) append(po, *o);
    attr.set_post_ops(po);
    if (p.src_type.quantised || p.dst_type.quantised) return {nullptr, "dense:not-for-quantised"};
    const auto rows_desc = [&](int64_t rows, int64_t columns, const tensor_type_t &t) {
        return memory::desc({rows, columns}, cpp(t.dt), memory::dims{columns, 1});
    };
    // One expert's bytes are those of a matrix.
    mxdnn::primitive_attr wattr;
    set_quant(wattr, MXDNN_ARG_WEIGHTS, p.wei_type, 2, 0, false);
    const memory::desc wei = mxdnn::mx_matmul::primitive_desc(x.eng, rows_desc(1, p.K, p.src_type),
            memory::desc({p.K, p.N}, cpp(p.wei_type.dt), memory::format_tag::any),
            rows_desc(1, p.N, p.dst_type), wattr)
                                     .weights_desc();
    const memory::desc bias({1, p.N}, cpp(p.bias_dt), memory::dims{p.N, 1});
    std::map<int64_t, mxdnn::mx_matmul> prims;
    for (int64_t c : rows) {
        if (c == 0 || prims.count(c)) continue;
        const auto src = rows_desc(c, p.K, p.src_type), dst = rows_desc(c, p.dst_n(), p.dst_type);
        prims.emplace(c,
                mxdnn::mx_matmul(p.bias ? mxdnn::mx_matmul::primitive_desc(x.eng, src, wei, bias, dst, attr)
                                        : mxdnn::mx_matmul::primitive_desc(x.eng, src, wei, dst, attr)));
    }
    // Rows of its own for every expert, as in the grouped problem.
    int64_t total = 0;
    for (int64_t c : rows) total += c;
    auto in = std::make_shared<tensor_t>(
            std::vector<int64_t>{total, p.K}, std::vector<int64_t>{p.K, 1}, p.src_type.dt);
    auto out = std::make_shared<tensor_t>(
            std::vector<int64_t>{total, p.dst_n()}, std::vector<int64_t>{p.dst_n(), 1}, p.dst_type.dt);
    rng_t rng(3);
    fill_random(*in, rng);
    const auto run = [&p, &x, &shifts, &next, prims, rows, in, out, wei, bias, rows_desc] {
        // Other experts than those that were just timed.
        const int64_t shift = shifts[(next + shifts.size() / 2) % shifts.size()];
        uint8_t *from = in->bytes.data(), *to = out->bytes.data();
        for (size_t e = 0; e < rows.size(); e++) {
            const int64_t c = rows[e];
            if (c == 0) continue;
            args_t a = {{MXDNN_ARG_SRC, memory(rows_desc(c, p.K, p.src_type), x.eng, from)},
                    {MXDNN_ARG_WEIGHTS,
                            memory(wei, x.eng, x.packed.data() + (int64_t(e) + shift) * x.expert_stride)},
                    {MXDNN_ARG_DST, memory(rows_desc(c, p.dst_n(), p.dst_type), x.eng, to)}};
            if (p.bias) a[MXDNN_ARG_BIAS] = memory(bias, x.eng, x.data.bias.bytes.data());
            prims.at(c).execute(x.stream, a);
            from += c * p.K * data_type_info(p.src_type.dt)->bits / 8;
            to += c * p.dst_n() * data_type_info(p.dst_type.dt)->bits / 8;
        }
    };
    return {run, "dense"};
}

// oneDNN with dense weights, one expert after the other; at most 32 of them have weights of their own.
peer_t make_onednn(const problem_t &p, const routing_t &r, int threads) {
    auto all = std::make_shared<std::vector<peer_t>>();
    for (int64_t c : r.counts) {
        if (c == 0) continue;
        all->push_back(make_onednn_matmul(1, c, p.K, p.N, p.bias, threads, 1));
        if (!all->back().run) return all->back();
        if (all->size() == 32) break;
    }
    int64_t active = 0;
    for (int64_t c : r.counts) active += c > 0;
    const std::string name = all->empty() ? "onednn:none" : all->front().name;
    return {[all, active] {
                for (int64_t i = 0; i < active; i++) (*all)[size_t(i) % all->size()].run();
            },
            name};
}

// On a device: back-to-back nodes of a graph, the same routing over a window of experts that moves.
void measure_on_device(
        const problem_t &p, const pd_t &pd, const mxdnn::grouped_matmul &prim, const mxdnn::engine &eng) {
    const bool rotate = settings.cold_weights && p.wtag == "any" && !p.pointers;
    execution_t x(p, eng, pd.weights_desc(), true, rotate ? p.local : 0);
    x.poison_dst();
    args_t there = x.pointers_there();
    for (const auto &a : x.args)
        if (!there.count(a.first)) there[a.first] = on_device(eng, a.second);
    const int64_t windows = rotate ? p.local + 1 : 1;
    memory experts;
    if (rotate) experts = bytes_on_device(eng, x.packed.data(), x.packed.size());
    std::vector<args_t> args;
    perf_t r = report_of(p, pd.impl_info_str(), flops_of(p, x.routing), bytes_of(p, x.routing));
    r.limits = &device_ceilings();
    for (int64_t i = 0; i < std::max<int64_t>(windows, graph_nodes(r)); i++) {
        args.push_back(there);
        if (rotate)
            args.back()[MXDNN_ARG_WEIGHTS] = memory(pd.weights_desc(), eng,
                    static_cast<uint8_t *>(experts.get_data_handle()) + i % windows * x.expert_stride);
    }
    nodes_t nodes;
    for (const args_t &a : args) nodes.push_back([&] { prim.execute(x.stream, a); });
    time_graphs(x.stream, nodes, {}, settings.ms_per_problem, r.times, r.peer_times);
    print(r);
}

void measure(
        const problem_t &p, const pd_t &pd, const mxdnn::grouped_matmul &prim, const mxdnn::engine &eng) {
    if (is_device(eng)) return measure_on_device(p, pd, prim, eng);
    // Cold weights: the same routing over a window of experts that moves through twice as many.
    const bool rotate = settings.cold_weights && p.wtag == "any" && !p.pointers;
    execution_t x(p, eng, pd.weights_desc(), true, rotate ? p.local : 0);
    std::vector<int64_t> shifts = {0};
    if (rotate)
        for (int64_t i = 1; i <= p.local; i++) shifts.push_back(i);
    x.poison_dst();
    size_t next = 0;
    const auto mine = [&] {
        next = (next + 1) % shifts.size();
        if (rotate)
            x.args[MXDNN_ARG_WEIGHTS] =
                    memory(pd.weights_desc(), eng, x.packed.data() + shifts[next] * x.expert_stride);
        x.run(pd, prim);
    };
    perf_t r = report_of(p, pd.impl_info_str(), flops_of(p, x.routing), bytes_of(p, x.routing));
    peer_t peer;
    if (settings.against == "onednn") {
        peer = make_onednn(p, x.routing, r.threads);
    } else if (settings.against == "dense") {
        peer = make_dense(p, x, shifts, next);
    } else if (settings.against == "ref") {
        peer = make_reference<mxdnn::grouped_matmul>(pd, x);
    }
    if (!peer.name.empty()) r.peer = peer.name;
    time_interleaved(mine, peer.run, r.threads, settings.ms_per_problem, r.times, r.peer_times);
    print(r);
}

} // namespace

void run(const problem_t &p) {
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine();
        const pd_t pd =
                create([&] { return make_pd(eng, p, make_descs(p, make_routing(p, settings.seed))); });
        std::string wrong;
        if (settings.correctness) {
            execution_t x(p, eng, pd.weights_desc(), false, 0);
            wrong = check_each<mxdnn::grouped_matmul>(
                    pd, p, names, x, [&](const problem_t &of, const arithmetic_t &a) {
                        return expected(of, x.routing, x.data, a);
                    });
        }
        if (!wrong.empty()) return wrong;
        run_and_time<mxdnn::grouped_matmul>(
                pd,
                [&](const pd_t &chosen, const mxdnn::grouped_matmul &prim) {
                    execution_t x(p, eng, chosen.weights_desc(), false, 0);
                    x.poison_dst();
                    x.run(chosen, prim);
                },
                [&](const pd_t &chosen, const mxdnn::grouped_matmul &prim) {
                    measure(p, chosen, prim, eng);
                });
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace grouped_matmul
} // namespace bench
