// SPDX-License-Identifier: Apache-2.0
// Runs one grouped_matmul problem: every implementation that takes it is compared, the first one timed.
#include <chrono>
#include <cstdio>

#include "benchdnn/common/compare.hpp"
#include "benchdnn/common/device.hpp"
#include "benchdnn/common/peer.hpp"
#include "benchdnn/common/perf.hpp"
#include "benchdnn/common/settings.hpp"
#include "benchdnn/grouped_matmul/oracle.hpp"

namespace bench {
namespace grouped_matmul {

using namespace mxdnn::impl;
using pd_t = mxdnn::grouped_matmul::primitive_desc;
using mxdnn::memory;

namespace {

constexpr size_t packed_align = 64;

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
    buffer_t packed, scratchpad;
    std::vector<buffer_t> indices, experts;
    std::vector<uint64_t> pointers;
    tensor_t dst;
    quantised_t dst_q;
    args_t args;
    memory::desc weights_md;
    int64_t expert_stride = 0;

    // `spare`: copies of that many more experts behind the weights.
    execution_t(const problem_t &problem, const mxdnn::engine &e, const memory::desc &weights, bool perf,
            int64_t spare)
        : p(problem), routing(make_routing(problem, settings.seed)), stream(e), eng(host_engine(e)),
          data(make_data(problem, routing, settings.seed, perf)), weights_md(weights) {
        problem_t fixed = p;
        fixed.runtime_rows = false;
        const descs_t d = make_descs(fixed, routing);
        args[MXDNN_ARG_SRC] = memory(d.src, eng, data.src_tensor().bytes.data());
        if (p.src_type.quantised) data.src_q.add_args(MXDNN_ARG_SRC, eng, args);
        if (p.wtag == "any") {
            pack(perf, spare);
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
        dst = tensor_t(data.old_dst.dims, data.old_dst.strides, p.dst_type.dt);
        uint8_t *bytes = dst.bytes.data();
        if (p.dst_type.quantised) {
            dst_q = quantised_t(std::move(dst), p.dst_type, int(data.old_dst.dims.size()) - 1);
            dst_q.add_args(MXDNN_ARG_DST, eng, args);
            bytes = dst_q.codes.bytes.data();
        }
        args[MXDNN_ARG_DST] = memory(d.dst, eng, bytes);
    }

    void add_indices(int arg, const std::vector<int32_t> &v, bool passed) {
        if (!passed) return;
        indices.emplace_back(v.size() * sizeof(int32_t), sizeof(int32_t));
        if (!v.empty()) std::memcpy(indices.back().data(), v.data(), v.size() * sizeof(int32_t));
        args[arg] = memory(memory::desc({int64_t(v.size())}, memory::data_type::s32, memory::format_tag::a),
                eng, indices.back().data());
    }

    // Codes and scales as they are, through mx_reorder: of all experts, or of one that is copied.
    void pack(bool perf, int64_t spare) {
        const int64_t E = p.local;
        expert_stride = weights_md.get_expert_stride();
        const quant_t &q = p.wei_type.quant;
        mxdnn::primitive_attr attr;
        attr.set_scales(MXDNN_ARG_SRC, 7, {q.block, 1}, cpp(q.scale_dt));
        if (q.zp != zero_point_kind_t::none)
            attr.set_zero_points(MXDNN_ARG_SRC, 7, {q.block, 1}, cpp(q.zp_dt));
        if (q.global != global_scale_kind_t::none)
            attr.set_global_scale(MXDNN_ARG_SRC, mxdnn::quantization_mode::static_sazp);
        memory::desc md = weights_md;
        packed = buffer_t(
                size_t(expert_stride * (E + spare - 1)) + one_desc(E).get_size() / size_t(E), packed_align);
        if (perf) md = one_desc(1);
        mxdnn::mx_reorder::primitive_desc pd(eng, data.wei.codes.desc(), eng, md, attr);
        args_t a = {
                {MXDNN_ARG_FROM, data.wei.codes.memory(eng)}, {MXDNN_ARG_TO, memory(md, eng, packed.data())}};
        data.wei.add_args(MXDNN_ARG_SRC, eng, a);
        mxdnn::stream on_host(eng);
        mxdnn::mx_reorder(pd).execute(on_host, a);
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
        const tensor_t &t = p.dst_type.quantised ? dst_q.codes : dst;
        t.bytes.poison();
        if (p.dst_type.quantised) dst_q.scales.bytes.poison();
        bool sum = false;
        for (const auto &o : p.post_ops) sum = sum || o.kind == mxdnn_sum;
        if (!sum) return;
        std::vector<char> written(size_t(routing.dst_rows), p.scatter != scatter_t::none);
        for (const row_t &r : routing.rows)
            if (r.expert >= 0 && r.dst >= 0) written[size_t(r.dst)] = 1;
        for_each(t.dims, [&](const int64_t *idx) {
            const int64_t row = t.dims.size() == 3 ? idx[0] * t.dims[1] + idx[1] : idx[0];
            if (written[size_t(row)]) dst.set_code(idx, data.old_dst.code(idx));
        });
    }

    void run(const pd_t &pd, const mxdnn::grouped_matmul &prim) {
        const size_t bytes = pd.scratchpad_desc().get_size();
        if (bytes > scratchpad.size()) scratchpad = buffer_t(bytes, 64);
        if (bytes > 0)
            args[MXDNN_ARG_SCRATCHPAD] = memory(pd.scratchpad_desc(), eng, scratchpad.data());
        else
            args.erase(MXDNN_ARG_SCRATCHPAD);
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

bool wanted(const std::string &impl) { return impl.find(settings.impl) != std::string::npos; }

// Compares every implementation; the text of the first failure, or "".
std::string check_all(const problem_t &p, pd_t pd, const mxdnn::engine &eng, std::string &names) {
    execution_t x(p, eng, pd.weights_desc(), false, 0);
    std::vector<interval_t> want[2]; // by arithmetic
    do {
        const std::string name = pd.impl_info_str();
        if (!wanted(name)) continue;
        names += (names.empty() ? "" : " ") + name;
        const arithmetic_t a = arithmetic_of(name);
        std::vector<interval_t> &w = want[a.bf16_products];
        if (w.empty()) w = expected(p, x.routing, x.data, a);
        x.poison_dst();
        x.run(pd, mxdnn::grouped_matmul(pd));
        const tensor_t &t = p.dst_type.quantised ? x.dst_q.codes : x.dst;
        if (settings.plant_fault && !w.empty()) plant_fault(t);
        mismatch_t bad;
        if (p.dst_type.quantised)
            compare_quantised(x.dst_q, w, bad);
        else
            compare_plain(x.dst, w, bad);
        if (bad.count)
            return name + ": " + std::to_string(bad.count) + " of " + std::to_string(w.size())
                   + " wrong, seed " + std::to_string(settings.seed) + "\n" + bad.text;
    } while (!settings.best_only && pd.next_impl());
    return "";
}

// mx_matmul for one expert after the other, with as many rows as it has and the same post-ops.
peer_t make_dense(
        const problem_t &p, execution_t &x, const std::vector<int64_t> &shifts, const size_t &next) {
    const std::vector<int64_t> &rows = x.routing.counts;
    mxdnn::primitive_attr attr;
    mxdnn::post_ops po;
    if (const post_op_knob_t *o = p.gated())
        po.append_gated(static_cast<mxdnn::algorithm>(o->alg), float(o->alpha), float(o->beta),
                o->halves ? mxdnn::gated_layout::halves : mxdnn::gated_layout::interleaved);
    attr.set_post_ops(po);
    if (p.src_type.quantised || p.dst_type.quantised) return {nullptr, "dense:not-for-quantised"};
    const auto rows_desc = [&](int64_t rows, int64_t columns, const tensor_type_t &t) {
        return memory::desc({rows, columns}, cpp(t.dt), memory::dims{columns, 1});
    };
    // One expert's bytes are those of a matrix.
    mxdnn::primitive_attr wattr;
    set_quant(wattr, MXDNN_ARG_WEIGHTS, p.wei_type, 2, false);
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

perf_t report_of(const problem_t &p, const pd_t &pd, const routing_t &routing) {
    perf_t r;
    r.engine = settings.engine;
    r.impl = pd.impl_info_str();
    r.problem = p.repro;
    r.flops = flops_of(p, routing);
    r.bytes = bytes_of(p, routing);
    r.bf16_products = p.src_type.dt != mxdnn_f32 && p.src_type.dt != mxdnn_f16;
    r.threads = mxdnn::get_max_concurrency();
    return r;
}

// On a device: back-to-back nodes of a graph, the same routing over a window of experts that moves.
void measure_on_device(const problem_t &p, const pd_t &pd, const mxdnn::engine &eng) {
    const bool rotate = settings.cold_weights && p.wtag == "any" && !p.pointers;
    execution_t x(p, eng, pd.weights_desc(), true, rotate ? p.local : 0);
    x.poison_dst();
    const mxdnn::grouped_matmul prim(pd);
    args_t there = x.pointers_there();
    for (const auto &a : x.args)
        if (!there.count(a.first)) there[a.first] = on_device(eng, a.second);
    const int64_t windows = rotate ? p.local + 1 : 1;
    memory experts;
    if (rotate) experts = bytes_on_device(eng, x.packed.data(), x.packed.size());
    std::vector<args_t> args;
    for (int64_t i = 0; i < std::max<int64_t>(windows, 20); i++) {
        args.push_back(there);
        if (rotate)
            args.back()[MXDNN_ARG_WEIGHTS] = memory(pd.weights_desc(), eng,
                    static_cast<uint8_t *>(experts.get_data_handle()) + i % windows * x.expert_stride);
    }
    nodes_t nodes;
    for (const args_t &a : args) nodes.push_back([&] { prim.execute(x.stream, a); });
    perf_t r = report_of(p, pd, x.routing);
    r.limits = &device_ceilings();
    if (!settings.against.empty()) r.peer = settings.against + ":not-on-cuda";
    time_graphs(x.stream, nodes, {}, settings.ms_per_problem, r.times, r.peer_times);
    std::printf("%s\n", perf_line(settings.perf_template, r).c_str());
    std::fflush(stdout);
}

void measure(const problem_t &p, pd_t pd, const mxdnn::engine &eng) {
    while (!wanted(pd.impl_info_str()))
        if (!pd.next_impl())
            throw usage_error_t("no implementation named *" + settings.impl + "* takes the problem");
    if (is_device(eng)) return measure_on_device(p, pd, eng);
    // Cold weights: the same routing over a window of experts that moves through twice as many.
    const bool rotate = settings.cold_weights && p.wtag == "any" && !p.pointers;
    execution_t x(p, eng, pd.weights_desc(), true, rotate ? p.local : 0);
    const mxdnn::grouped_matmul prim(pd);
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
    perf_t r = report_of(p, pd, x.routing);
    peer_t peer;
    if (settings.against == "onednn") {
        peer = make_onednn(p, x.routing, r.threads);
    } else if (settings.against == "dense") {
        peer = make_dense(p, x, shifts, next);
    } else if (settings.against == "ref") {
        pd_t ref = make_pd(eng, p, make_descs(p, x.routing));
        while (std::string(ref.impl_info_str()) != "ref:any")
            if (!ref.next_impl()) break;
        const mxdnn::grouped_matmul ref_prim(ref);
        peer = {[&x, ref, ref_prim] { x.run(ref, ref_prim); }, "ref"};
    } else if (!settings.against.empty()) {
        peer.name = settings.against + ":not-on-cpu";
    }
    r.peer = peer.name;
    time_interleaved(mine, peer.run, settings.ms_per_problem, r.times, r.peer_times);
    std::printf("%s\n", perf_line(settings.perf_template, r).c_str());
    std::fflush(stdout);
}

double now_ms() {
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(clock::now().time_since_epoch()).count();
}

} // namespace

void run(const problem_t &p) {
    if (settings.list) return report(outcome_t::listed, p.repro, "", 0);
    const double start = now_ms();
    try {
        const mxdnn::engine eng = make_engine();
        const descs_t d = make_descs(p, make_routing(p, settings.seed));
        const pd_t pd = make_pd(eng, p, d);
        std::string names, failure;
        if (settings.init && !settings.run && !settings.correctness && !settings.performance)
            mxdnn::grouped_matmul prim(pd);
        if (settings.run && !settings.correctness) {
            execution_t x(p, eng, pd.weights_desc(), false, 0);
            x.poison_dst();
            x.run(pd, mxdnn::grouped_matmul(pd));
        }
        if (settings.correctness) failure = check_all(p, pd, eng, names);
        if (!failure.empty()) return report(outcome_t::failed, p.repro, failure, now_ms() - start);
        if (settings.performance) measure(p, pd, eng);
        report(outcome_t::passed, p.repro, names, now_ms() - start);
    } catch (const mxdnn::error &e) {
        const bool skip = e.status == mxdnn_unimplemented || e.status == mxdnn_device_unavailable;
        report(skip ? outcome_t::skipped : outcome_t::failed, p.repro, e.what(), now_ms() - start);
    }
}

namespace {
knobs_t knobs;
}

bool run_driver_word(const std::string &word) {
    if (knobs.parse(word)) return true;
    std::string count;
    if (option(word, "fuzz", count)) {
        for (const problem_t &p : random_problems(to_int(count, "--fuzz"), settings.seed)) run(p);
        return true;
    }
    if (word.compare(0, 2, "--") == 0) return false;
    for (const problem_t &p : knobs.problems(word)) run(p);
    return true;
}

} // namespace grouped_matmul
} // namespace bench
