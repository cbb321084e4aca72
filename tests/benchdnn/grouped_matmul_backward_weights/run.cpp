// SPDX-License-Identifier: Apache-2.0
// Runs one grouped_matmul_backward_weights problem: every implementation within the bound of sums in f32 over
// the rows that count. All other rows are NaN.
#include <cmath>
#include <memory>

#include "benchdnn/common/matmul.hpp"
#include "benchdnn/grouped_matmul_backward_weights/problem.hpp"

namespace bench {
namespace grouped_matmul_backward_weights {

using namespace mxdnn::impl;
using pd_t = mxdnn::grouped_matmul_backward_weights::primitive_desc;
using mxdnn::memory;

namespace {

// src or diff_dst.
struct rows_t {
    const groups_t &groups;
    tensor_type_t type;
    tensor_t codes, scales;

    rows_t(const problem_t &p, const groups_t &g, const tensor_type_t &t, int64_t columns, rng_t &rng)
        : groups(g), type(t),
          codes({g.rows, columns}, strides_of({g.rows, columns}, "ab", t.dt, p.row_pad), t.dt) {
        const data_type_info_t *info = data_type_info(t.dt);
        std::normal_distribution<float> normal(0, 1);
        std::uniform_int_distribution<uint32_t> byte(0, 255), scale(122, 128);
        if (t.quantised) scales = tensor_t({g.blocks, columns}, {columns, 1}, t.quant.scale_dt);
        const uint32_t nan = t.quantised ? 0x7f : info->encode(NAN);
        for_each(codes.dims, [&](const int64_t *idx) { codes.set_code(idx, nan); });
        for (size_t e = 0; e < g.counts.size(); e++)
            for (int64_t i = 0; i < g.counts[e]; i++)
                for (int64_t c = 0; c < columns; c++) {
                    const int64_t at[2] = {g.first[e] + i, c};
                    uint32_t code = info->encode(normal(rng));
                    while (t.quantised && !std::isfinite(info->decode(code = byte(rng)))) {
                    }
                    codes.set_code(at, code);
                    const int64_t block[2] = {g.first_block[e] + i / mx_block, c};
                    if (t.quantised && i % mx_block == 0) scales.set_code(block, scale(rng));
                }
    }
    double value(size_t e, int64_t row, int64_t c) const {
        const int64_t at[2] = {groups.first[e] + row, c};
        const int64_t block[2] = {groups.first_block[e] + row / mx_block, c};
        return double(codes.value(at)) * (type.quantised ? double(scales.value(block)) : 1.);
    }
    memory::desc desc(bool runtime_rows) const {
        memory::dims dims = codes.dims;
        if (runtime_rows) dims[0] = MXDNN_RUNTIME_DIM_VAL;
        return memory::desc(dims, cpp(type.dt), codes.strides);
    }
    void describe(mxdnn::primitive_attr &attr, int arg) const {
        if (type.quantised) attr.set_scales(arg, 3, {mx_block, 1}, cpp(type.quant.scale_dt));
    }
    void add_args(int arg, const mxdnn::engine &e, args_t &args) const {
        args[arg] = codes.memory(e);
        if (type.quantised) args[MXDNN_ARG_ATTR_SCALES | arg] = scales.memory(e);
    }
};

struct data_t {
    rows_t src, diff_dst;
    tensor_t old, diff_weights, offsets, counts;

    data_t(const problem_t &p, const groups_t &g, rng_t &rng)
        : src(p, g, p.src, p.K, rng), diff_dst(p, g, p.diff_dst, p.N, rng),
          old(dims(p), strides_of(dims(p), p.tag, p.diff_weights.dt), p.diff_weights.dt),
          diff_weights(old.dims, old.strides, old.dt),
          offsets({p.experts + (p.grouping == mxdnn::row_grouping::starts)}, {1}, mxdnn_s32),
          counts({p.ranks, p.experts}, {p.experts, 1}, mxdnn_s32) {
        if (!p.post_ops.empty()) fill_random(old, rng);
        int32_t *offset = reinterpret_cast<int32_t *>(offsets.bytes.data());
        if (p.grouping == mxdnn::row_grouping::starts) *offset++ = 0;
        for (size_t e = 0; e < g.counts.size(); e++) {
            *offset++ = int32_t(g.first[e] + g.places[e]);
            for (int64_t r = 0; r < p.ranks; r++) {
                const int64_t at[2] = {r, int64_t(e)};
                counts.set_code(at, uint32_t(g.counts[e] / p.ranks + (r < g.counts[e] % p.ranks)));
            }
        }
    }
    static std::vector<int64_t> dims(const problem_t &p) { return {p.experts, p.K, p.N}; }
    void reset() const { std::copy_n(old.bytes.data(), old.bytes.size(), diff_weights.bytes.data()); }
    // All of the gradient is written.
    void poison(const problem_t &p) const {
        diff_weights.bytes.poison();
        if (!p.post_ops.empty())
            for_each(old.dims, [&](const int64_t *idx) { diff_weights.set_code(idx, old.code(idx)); });
    }
};

// A row of src and one of diff_dst are multiplied for every element: bounds as in doc/concepts/accuracy.md,
// with both operands' subnormal values.
std::vector<interval_t> expected(
        const problem_t &p, const groups_t &g, const data_t &d, const arithmetic_t &a) {
    std::vector<interval_t> want;
    std::vector<double> sum, size, flushed, y;
    const size_t N = size_t(p.N);
    y.resize(N);
    for (size_t e = 0; e < g.counts.size(); e++) {
        const size_t first = want.size();
        want.resize(first + size_t(p.K) * N);
        sum.assign(size_t(p.K) * N, 0);
        size = flushed = sum;
        for (int64_t r = 0; r < g.counts[e]; r++) {
            for (size_t n = 0; n < N; n++) y[n] = d.diff_dst.value(e, r, int64_t(n));
            for (int64_t k = 0; k < p.K; k++) {
                const double x = d.src.value(e, r, k);
                for (size_t n = 0; n < N; n++) {
                    const size_t at = size_t(k) * N + n;
                    sum[at] += x * y[n];
                    size[at] += std::fabs(x * y[n]);
                    flushed[at] += 1 + std::fabs(x) + std::fabs(y[n]);
                }
            }
        }
        const double steps = double(g.counts[e]) + 16, gamma = steps * u32 / (1 - steps * u32);
        constexpr double subnormal = 1.2e-38;
        for (size_t i = 0; i < sum.size(); i++) {
            interval_t &w = want[first + i];
            w = {sum[i], gamma * size[i] + double(g.counts[e] + 1) * tiny};
            if (a.bf16_products) w.e += subnormal * flushed[i];
            if (g.counts[e] == 0) w = {0, 0};
            const int64_t at[3] = {int64_t(e), int64_t(i / N), int64_t(i % N)};
            for (const post_op_knob_t &o : p.post_ops) w = added_to(w, o, d.old, at);
        }
    }
    return want;
}

// The same products as dense matmuls in bf16, one expert after the other.
peer_t make_dense(const problem_t &p, const groups_t &g, int threads) {
    auto all = std::make_shared<std::vector<peer_t>>();
    for (const int64_t rows : g.counts) {
        if (rows == 0) continue;
        all->push_back(make_onednn_matmul(1, p.K, rows, p.N, false, threads, 1));
        if (!all->back().run) return all->back();
    }
    if (all->empty()) return {nullptr, "onednn:none"};
    return {[all] {
                for (const peer_t &each : *all) each.run();
            },
            all->front().name};
}

// So many random values of bf16: a few thousand of them, again and again.
buffer_t random_bf16(int64_t count) {
    rng_t rng(settings.seed);
    std::normal_distribution<float> normal(0, 1);
    uint16_t values[4093];
    for (uint16_t &v : values) v = uint16_t(bf16_t::encode(normal(rng)));
    buffer_t buffer(size_t(count) * 2);
    for (int64_t i = 0; i < count; i++) std::memcpy(buffer.data() + 2 * i, &values[i % 4093], 2);
    return buffer;
}

// On a device: back-to-back nodes of a graph. The peer is one product of as many operations: all rows times
// one matrix.
void measure_on_device(const problem_t &p, const mxdnn::grouped_matmul_backward_weights &prim,
        const mxdnn::stream &stream, const args_t &args, perf_t &r) {
    r.limits = &device_ceilings();
    const args_t there = on_device(stream.get_engine(), args);
    const nodes_t nodes(size_t(graph_nodes(r)), [&] { prim.execute(stream, there); });
    device_peer_t peer;
    if (settings.against == "cublas") {
        const buffer_t src = random_bf16(p.rows * p.K), weights = random_bf16(p.N * p.K);
        peer = make_cublaslt_matmul(stream, {1, p.rows, p.K, p.N, src, weights}, 1, int(nodes.size()));
        r.peer = peer.name;
    }
    time_graphs(stream, nodes, peer.nodes, settings.ms_per_problem, r.times, r.peer_times);
}

} // namespace

void run(const problem_t &p) {
    test(p.repro, [&](std::string &names) {
        const mxdnn::engine eng = make_engine(), host = host_engine(eng);
        const mxdnn::stream stream = stream_of(eng);
        const groups_t groups = make_groups(p, settings.seed);
        rng_t rng(settings.seed);
        const data_t d(p, groups, rng);
        mxdnn::primitive_attr attr;
        d.src.describe(attr, MXDNN_ARG_SRC);
        d.diff_dst.describe(attr, MXDNN_ARG_DIFF_DST);
        attr.set_row_grouping(p.grouping);
        if (p.user_scratchpad) attr.set_scratchpad_mode(mxdnn::scratchpad_mode::user);
        mxdnn::post_ops po;
        for (const post_op_knob_t &o : p.post_ops) append(po, o);
        attr.set_post_ops(po);
        const pd_t pd = create([&] {
            return pd_t(eng, d.src.desc(p.runtime_rows), d.diff_dst.desc(p.runtime_rows),
                    d.diff_weights.desc(), attr);
        });
        args_t args = {{MXDNN_ARG_DIFF_WEIGHTS, d.diff_weights.memory(host)}};
        d.src.add_args(MXDNN_ARG_SRC, host, args);
        d.diff_dst.add_args(MXDNN_ARG_DIFF_DST, host, args);
        if (!p.padded()) args[MXDNN_ARG_GROUP_OFFSETS] = d.offsets.memory(host);
        if (p.padded() || p.align > 1)
            args[MXDNN_ARG_GROUP_COUNTS] = memory(
                    p.ranks > 1 ? d.counts.desc()
                                : memory::desc({p.experts}, memory::data_type::s32, memory::format_tag::a),
                    host, d.counts.bytes.data());
        scratchpad_t scratchpad;

        std::vector<interval_t> want[2]; // by arithmetic
        const auto compare = [&](const pd_t &each, mismatch_t &bad) {
            const arithmetic_t a = arithmetic_of(each.impl_info_str());
            std::vector<interval_t> &w = want[a.bf16_products];
            if (w.empty()) w = expected(p, groups, d, a);
            d.poison(p);
            scratchpad.add(each.scratchpad_desc(), host, args);
            execute(mxdnn::grouped_matmul_backward_weights(each), stream, args);
            if (settings.plant_fault && !w.empty()) plant_fault(d.diff_weights);
            compare_plain(d.diff_weights, w, bad);
        };
        std::string wrong;
        if (settings.correctness) wrong = check_each(pd, names, compare);
        if (!wrong.empty()) return wrong;
        run_and_time<mxdnn::grouped_matmul_backward_weights>(
                pd,
                [&](const pd_t &chosen, const mxdnn::grouped_matmul_backward_weights &prim) {
                    d.reset();
                    scratchpad.add(chosen.scratchpad_desc(), host, args);
                    execute(prim, stream, args);
                },
                [&](const pd_t &chosen, const mxdnn::grouped_matmul_backward_weights &prim) {
                    d.reset();
                    scratchpad.add(chosen.scratchpad_desc(), host, args);
                    perf_t r = report_of(p.repro, chosen.impl_info_str());
                    r.flops = 2. * double(p.rows) * double(p.K) * double(p.N);
                    r.bytes = bytes_of(double(p.rows) * double(p.K), p.src)
                              + bytes_of(double(p.rows) * double(p.N), p.diff_dst)
                              + bytes_of(double(p.experts) * double(p.K) * double(p.N), p.diff_weights);
                    r.products = p.src.dt == mxdnn_f32 || p.src.dt == mxdnn_f16 ? products_t::f32
                                                                                : products_t::bf16;
                    if (is_device(eng)) {
                        measure_on_device(p, prim, stream, args, r);
                        return print(r);
                    }
                    peer_t peer;
                    if (settings.against == "onednn") peer = make_dense(p, groups, r.threads);
                    if (!peer.name.empty()) r.peer = peer.name;
                    const auto mine = [&] { execute(prim, stream, args); };
                    time_interleaved(
                            mine, peer.run, r.threads, settings.ms_per_problem, r.times, r.peer_times);
                    print(r);
                });
        return wrong;
    });
}

bool run_driver_word(const std::string &word) {
    return take_word(word, knobs, make_problem, run, draw_descriptor);
}

} // namespace grouped_matmul_backward_weights
} // namespace bench
