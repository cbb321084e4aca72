// SPDX-License-Identifier: Apache-2.0
// Runs one mx_matmul problem: every implementation that takes it is compared, the first one timed.
#include <chrono>
#include <cstdio>

#include "benchdnn/common/compare.hpp"
#include "benchdnn/common/device.hpp"
#include "benchdnn/common/peer.hpp"
#include "benchdnn/common/perf.hpp"
#include "benchdnn/common/settings.hpp"
#include "benchdnn/mx_matmul/oracle.hpp"

namespace bench {
namespace mx_matmul {

using namespace mxdnn::impl;
using pd_t = mxdnn::mx_matmul::primitive_desc;

namespace {

// Weights of a layout that threads may read at full speed are as good as the caller's.
constexpr size_t packed_align = 64;
// Weights are cold when the copies taken in turn are beyond every cache together.
constexpr double cold_bytes = 512e6;

pd_t make_pd(const mxdnn::engine &eng, const problem_t &p, const descs_t &d) {
    return p.bias ? pd_t(eng, d.src, d.wei, d.bias, d.dst, d.attr) : pd_t(eng, d.src, d.wei, d.dst, d.attr);
}

// Everything that an execution needs, kept alive.
struct execution_t {
    mxdnn::stream stream;
    mxdnn::engine eng; // of memory: the host's
    data_t data;
    buffer_t packed, scratchpad;
    tensor_t dst;
    quantised_t dst_q;
    args_t args;

    execution_t(const problem_t &p, const mxdnn::engine &e, const mxdnn::memory::desc &weights)
        : stream(e), eng(host_engine(e)), data(make_data(p, settings.seed)) {
        args[MXDNN_ARG_SRC] = data.src_tensor().memory(eng);
        if (p.src_type.quantised) data.src_q.add_args(MXDNN_ARG_SRC, eng, args);
        if (p.wtag == "any") {
            packed = buffer_t(weights.get_size(), packed_align);
            pack(p, weights);
            args[MXDNN_ARG_WEIGHTS] = mxdnn::memory(weights, eng, packed.data());
        } else {
            args[MXDNN_ARG_WEIGHTS] = data.wei.codes.memory(eng);
            data.wei.add_args(MXDNN_ARG_WEIGHTS, eng, args);
        }
        if (p.bias) args[MXDNN_ARG_BIAS] = data.bias.memory(eng);
        for (size_t i = 0; i < p.post_ops.size(); i++)
            if (p.post_ops[i].kind == mxdnn_binary)
                args[MXDNN_ARG_ATTR_MULTIPLE_POST_OP(int(i)) | MXDNN_ARG_SRC_1] = data.binary[i].memory(eng);
        dst = tensor_t(p.dst, data.old_dst.strides, p.dst_type.dt);
        if (p.dst_type.quantised) {
            dst_q = quantised_t(std::move(dst), p.dst_type, int(p.nd()) - 1);
            dst_q.add_args(MXDNN_ARG_DST, eng, args);
            args[MXDNN_ARG_DST] = dst_q.codes.memory(eng);
        } else {
            args[MXDNN_ARG_DST] = dst.memory(eng);
        }
    }

    // Codes and scales as they are, through mx_reorder.
    void pack(const problem_t &p, const mxdnn::memory::desc &weights) {
        mxdnn::primitive_attr attr;
        const quant_t &q = p.wei_type.quant;
        const int mask = (1 << p.nd()) - 1;
        const auto cpp = [](data_type_t dt) { return static_cast<mxdnn::memory::data_type>(dt); };
        attr.set_scales(MXDNN_ARG_SRC, mask, {q.block, 1}, cpp(q.scale_dt));
        if (q.zp != zero_point_kind_t::none)
            attr.set_zero_points(MXDNN_ARG_SRC, mask, {q.block, 1}, cpp(q.zp_dt));
        if (q.global != global_scale_kind_t::none)
            attr.set_global_scale(MXDNN_ARG_SRC, mxdnn::quantization_mode::static_sazp);
        mxdnn::mx_reorder::primitive_desc pd(eng, data.wei.codes.desc(), eng, weights, attr);
        args_t a = {{MXDNN_ARG_FROM, data.wei.codes.memory(eng)},
                {MXDNN_ARG_TO, mxdnn::memory(weights, eng, packed.data())}};
        data.wei.add_args(MXDNN_ARG_SRC, eng, a);
        mxdnn::stream on_host(eng);
        mxdnn::mx_reorder(pd).execute(on_host, a);
    }

    void poison_dst(const problem_t &p) {
        const tensor_t &t = p.dst_type.quantised ? dst_q.codes : dst;
        t.bytes.poison();
        if (p.dst_type.quantised) dst_q.scales.bytes.poison();
        bool sum = false;
        for (const auto &o : p.post_ops) sum = sum || o.kind == mxdnn_sum;
        if (sum) for_each(p.dst, [&](const int64_t *idx) { dst.set_code(idx, data.old_dst.code(idx)); });
    }

    void run(const pd_t &pd, const mxdnn::mx_matmul &prim) {
        if (settings_scratchpad(pd))
            args[MXDNN_ARG_SCRATCHPAD] = mxdnn::memory(pd.scratchpad_desc(), eng, scratchpad.data());
        else
            args.erase(MXDNN_ARG_SCRATCHPAD);
        execute(prim, stream, args);
    }
    bool settings_scratchpad(const pd_t &pd) {
        const size_t bytes = pd.scratchpad_desc().get_size();
        if (bytes > scratchpad.size()) scratchpad = buffer_t(bytes, 64);
        return bytes > 0;
    }
};

bool wanted(const std::string &impl) { return impl.find(settings.impl) != std::string::npos; }

// Compares every implementation; the text of the first failure, or "".
std::string check_all(const problem_t &p, pd_t pd, const mxdnn::engine &eng, std::string &names) {
    execution_t x(p, eng, pd.weights_desc());
    std::vector<interval_t> want[2]; // by arithmetic
    do {
        const std::string name = pd.impl_info_str();
        if (!wanted(name)) continue;
        names += (names.empty() ? "" : " ") + name;
        const arithmetic_t a = arithmetic_of(name);
        std::vector<interval_t> &w = want[a.bf16_products];
        if (w.empty()) w = expected(p, x.data, a);
        x.poison_dst(p);
        x.run(pd, mxdnn::mx_matmul(pd));
        if (settings.plant_fault && p.dst.back() > 0)
            plant_fault(x.dst_q.codes.dims.empty() ? x.dst : x.dst_q.codes);
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

// The part of a report that does not depend on where it was measured.
perf_t report_of(const problem_t &p, const pd_t &pd) {
    perf_t r;
    r.engine = settings.engine;
    r.impl = pd.impl_info_str();
    r.problem = p.repro;
    r.flops = flops_of(p);
    r.bytes = bytes_of(p);
    r.bf16_products = p.src_type.dt != mxdnn_f32 && p.src_type.dt != mxdnn_f16;
    r.threads = mxdnn::get_max_concurrency();
    return r;
}

// On a device: back-to-back nodes of graphs.
void measure_on_device(const problem_t &p, const pd_t &pd, const mxdnn::engine &eng) {
    execution_t x(p, eng, pd.weights_desc());
    x.poison_dst(p);
    const mxdnn::mx_matmul prim(pd);
    if (x.settings_scratchpad(pd))
        x.args[MXDNN_ARG_SCRATCHPAD] = mxdnn::memory(pd.scratchpad_desc(), x.eng, x.scratchpad.data());
    const bool rotate = settings.cold_weights && p.wtag == "any";
    constexpr double device_cold_bytes = 512e6;
    const auto copies_of = [&](double bytes) {
        return rotate ? int(std::min(256., std::max(2., std::ceil(device_cold_bytes / std::max(bytes, 1.)))))
                      : 1;
    };
    const int copies = copies_of(double(x.packed.size())), count = std::max(copies, 20);
    std::vector<args_t> args(size_t(copies), on_device(eng, x.args));
    for (size_t i = 1; i < args.size(); i++)
        args[i][MXDNN_ARG_WEIGHTS] = on_device(eng, x.args[MXDNN_ARG_WEIGHTS]);
    nodes_t nodes;
    for (int i = 0; i < count; i++)
        nodes.push_back([&, i] { prim.execute(x.stream, args[size_t(i % copies)]); });
    device_peer_t peer;
    if (settings.against == "cublas" || settings.against == "cublaslt") {
        const int dense = copies_of(2. * double(p.K() * p.N()));
        peer = make_cublaslt_matmul(x.stream, p.batch(), p.M(), p.K(), p.N(), dense, count);
    } else if (!settings.against.empty()) {
        peer.name = settings.against + ":not-on-cuda";
    }
    perf_t r = report_of(p, pd);
    r.limits = &device_ceilings();
    r.peer = peer.name;
    time_graphs(x.stream, nodes, peer.nodes, settings.ms_per_problem, r.times, r.peer_times);
    std::printf("%s\n", perf_line(settings.perf_template, r).c_str());
    std::fflush(stdout);
}

void measure(const problem_t &p, pd_t pd, const mxdnn::engine &eng) {
    while (!wanted(pd.impl_info_str()))
        if (!pd.next_impl())
            throw usage_error_t("no implementation named *" + settings.impl + "* takes the problem");
    if (is_device(eng)) return measure_on_device(p, pd, eng);
    execution_t x(p, eng, pd.weights_desc());
    const mxdnn::mx_matmul prim(pd);
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
    x.poison_dst(p);
    size_t next = 0;
    const auto mine = [&] {
        x.args[MXDNN_ARG_WEIGHTS] = weights[next];
        next = (next + 1) % weights.size();
        x.run(pd, prim);
    };
    perf_t r = report_of(p, pd);
    peer_t peer;
    if (settings.against == "onednn") {
        const double dense_bytes = 2. * double(p.K() * p.N());
        const int dense_copies =
                settings.cold_weights ? int(std::min(64., std::max(2., cold_bytes / dense_bytes))) : 1;
        peer = make_onednn_matmul(p.batch(), p.M(), p.K(), p.N(), p.bias, r.threads, dense_copies);
    } else if (settings.against == "ref") {
        pd_t ref = make_pd(eng, p, make_descs(p));
        while (std::string(ref.impl_info_str()) != "ref:any")
            if (!ref.next_impl()) break;
        const mxdnn::mx_matmul ref_prim(ref);
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
        const descs_t d = make_descs(p);
        const pd_t pd = make_pd(eng, p, d);
        std::string names, failure;
        if (settings.init && !settings.run && !settings.correctness && !settings.performance)
            mxdnn::mx_matmul prim(pd);
        if (settings.run && !settings.correctness) {
            execution_t x(p, eng, pd.weights_desc());
            x.poison_dst(p);
            x.run(pd, mxdnn::mx_matmul(pd));
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
    if (word.compare(0, 2, "--") == 0) return false;
    for (const problem_t &p : knobs.problems(word)) run(p);
    return true;
}

} // namespace mx_matmul
} // namespace bench
