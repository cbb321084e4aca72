// SPDX-License-Identifier: Apache-2.0
// Runs one mx_matmul problem: every implementation that takes it is compared, the first one timed.
#include <numeric>

#include "benchdnn/mx_matmul/oracle.hpp"

namespace bench {
namespace mx_matmul {

using pd_t = mxdnn::mx_matmul::primitive_desc;

namespace {

pd_t make_pd(const problem_t &p, const descs_t &d, const mxdnn::engine &eng) {
    return p.bias ? pd_t(eng, d.src, d.wei, d.bias, d.dst, d.attr) : pd_t(eng, d.src, d.wei, d.dst, d.attr);
}

// Weights are cold when the copies taken in turn are beyond every cache together.
constexpr double cold_bytes = 512e6;

// Everything that an execution needs, kept alive.
struct execution_t {
    const problem_t &p;
    mxdnn::stream stream;
    mxdnn::engine eng; // of memory: the host's
    data_t data;
    buffer_t packed;
    scratchpad_t scratchpad;
    operand_t dst;
    args_t args;

    execution_t(const problem_t &problem, const mxdnn::engine &e, const mxdnn::memory::desc &weights)
        : p(problem), stream(stream_of(e)), eng(host_engine(e)), data(make_data(p, settings.seed)) {
        data.src.add_args(MXDNN_ARG_SRC, eng, args);
        if (p.wtag == "any") {
            packed = buffer_t(weights.get_size(), packed_align);
            pack(data.wei, stream, weights, packed.data());
            args[MXDNN_ARG_WEIGHTS] = mxdnn::memory(weights, eng, packed.data());
        } else {
            args[MXDNN_ARG_WEIGHTS] = data.wei.codes.memory(eng);
            data.wei.add_args(MXDNN_ARG_WEIGHTS, eng, args);
        }
        if (p.bias) args[MXDNN_ARG_BIAS] = data.bias.memory(eng);
        for (size_t i = 0; i < p.post_ops.size(); i++)
            if (p.post_ops[i].kind == mxdnn_binary)
                args[MXDNN_ARG_ATTR_MULTIPLE_POST_OP(int(i)) | MXDNN_ARG_SRC_1] = data.binary[i].memory(eng);
        dst = operand_t(tensor_t(p.dst, data.old_dst.strides, p.dst_type.dt, p.dst_type.dense), p.dst_type,
                int(p.nd()) - 1, p.scales_tag);
        rng_t rng(settings.seed);
        dst.fill_given(rng);
        dst.add_args(MXDNN_ARG_DST, eng, args);
    }

    void poison_dst() {
        dst.poison();
        if (p.adds_to_dst())
            for_each(p.dst, [&](const int64_t *idx) { dst.plain.set_code(idx, data.old_dst.code(idx)); });
    }

    void run(const pd_t &pd, const mxdnn::mx_matmul &prim) {
        scratchpad.add(pd.scratchpad_desc(), eng, args);
        execute(prim, stream, args);
    }
};

// cuBLASLt on the same numbers as bf16.
device_peer_t make_dense_peer(const problem_t &p, const execution_t &x, int copies, int nodes) {
    const auto matrices = [](const std::vector<int64_t> &dims) {
        return std::accumulate(dims.begin(), dims.end() - 2, int64_t(1), std::multiplies<int64_t>());
    };
    for (const auto *dims : {&p.src, &p.wei})
        if (matrices(*dims) != 1 && matrices(*dims) != p.batch()) return {{}, "cublaslt:broadcast"};
    const buffer_t src = as_bf16(x.data.src, x.eng), weights = as_bf16(x.data.wei, x.stream, "ba");
    return make_cublaslt_matmul(x.stream, {p.batch(), p.M(), p.K(), p.N(), src, weights}, copies, nodes);
}

// On a device: back-to-back nodes of graphs.
void measure_on_device(
        const problem_t &p, const pd_t &pd, const mxdnn::mx_matmul &prim, const mxdnn::engine &eng) {
    execution_t x(p, eng, pd.weights_desc());
    x.poison_dst();
    x.scratchpad.add(pd.scratchpad_desc(), x.eng, x.args);
    const bool rotate = settings.cold_weights && p.wtag == "any";
    const auto copies_of = [&](double bytes) {
        return rotate ? int(std::min(256., std::max(2., std::ceil(cold_bytes / std::max(bytes, 1.))))) : 1;
    };
    perf_t r = report_of(p, pd.impl_info_str(), flops_of(p), bytes_of(p));
    r.limits = &device_ceilings();
    const int copies = copies_of(double(x.packed.size())), count = std::max(copies, graph_nodes(r));
    std::vector<args_t> args(size_t(copies), on_device(eng, x.args));
    for (size_t i = 1; i < args.size(); i++)
        args[i][MXDNN_ARG_WEIGHTS] = on_device(eng, x.args[MXDNN_ARG_WEIGHTS]);
    nodes_t nodes;
    for (int i = 0; i < count; i++)
        nodes.push_back([&, i] { prim.execute(x.stream, args[size_t(i % copies)]); });
    device_peer_t peer;
    if (settings.against == "cublas")
        peer = make_dense_peer(p, x, copies_of(2. * double(p.K() * p.N())), count);
    if (!peer.name.empty()) r.peer = peer.name;
    time_graphs(x.stream, nodes, peer.nodes, settings.ms_per_problem, r.times, r.peer_times);
    print(r);
}

void measure(const problem_t &p, const pd_t &pd, const mxdnn::mx_matmul &prim, const mxdnn::engine &eng) {
    if (is_device(eng)) return measure_on_device(p, pd, prim, eng);
    execution_t x(p, eng, pd.weights_desc());
    // Copies of the packed bytes, taken in turn.
    std::vector<buffer_t> copies;
    std::vector<mxdnn::memory> weights = {x.args[MXDNN_ARG_WEIGHTS]};
    const double weight_bytes = double(x.packed.size());
    int n_copies = 1;
    if (settings.cold_weights && p.wtag == "any") {
        n_copies = int(std::min(4096., std::max(2., cold_bytes / std::max(weight_bytes, 1.))));
        for (int i = 1; i < n_copies; i++) {
            copies.emplace_back(x.packed.size(), packed_align);
            std::memcpy(copies.back().data(), x.packed.data(), x.packed.size());
            weights.emplace_back(pd.weights_desc(), eng, copies.back().data());
        }
    }
    x.poison_dst();
    size_t next = 0;
    const auto mine = [&] {
        x.args[MXDNN_ARG_WEIGHTS] = weights[next];
        next = (next + 1) % weights.size();
        x.run(pd, prim);
    };
    perf_t r = report_of(p, pd.impl_info_str(), flops_of(p), bytes_of(p));
    peer_t peer;
    if (settings.against == "onednn") {
        const double dense_bytes = 2. * double(p.K() * p.N());
        const int dense_copies =
                settings.cold_weights ? int(std::min(64., std::max(2., cold_bytes / dense_bytes))) : 1;
        peer = make_onednn_matmul(p.batch(), p.M(), p.K(), p.N(), p.bias, r.threads, dense_copies);
    } else if (settings.against == "ref") {
        peer = make_reference<mxdnn::mx_matmul>(pd, x);
    }
    if (!peer.name.empty()) r.peer = peer.name;
    time_interleaved(mine, peer.run, r.threads, settings.ms_per_problem, r.times, r.peer_times);
    const descs_t d = make_descs(p);
    std::vector<mxdnn::mx_matmul> made; // nothing is destroyed meanwhile
    time_creation([&] { made.emplace_back(make_pd(p, d, eng)); }, r);
    print(r);
}

} // namespace

void run(const problem_t &p) {
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine();
        const pd_t pd = create([&] { return make_pd(p, make_descs(p), eng); });
        std::string wrong;
        if (settings.correctness) {
            execution_t x(p, eng, pd.weights_desc());
            wrong = check_each<mxdnn::mx_matmul>(pd, p, names, x,
                    [&](const problem_t &of, const arithmetic_t &a) { return expected(of, x.data, a); });
        }
        if (!wrong.empty()) return wrong;
        run_and_time<mxdnn::mx_matmul>(
                pd,
                [&](const pd_t &chosen, const mxdnn::mx_matmul &prim) {
                    execution_t x(p, eng, chosen.weights_desc());
                    x.poison_dst();
                    x.run(chosen, prim);
                },
                [&](const pd_t &chosen, const mxdnn::mx_matmul &prim) { measure(p, chosen, prim, eng); });
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace mx_matmul
} // namespace bench
