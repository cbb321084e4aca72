// SPDX-License-Identifier: Apache-2.0
// An expert-parallel layer, forward and backward, and the time of each stage, whatever carries the rows.
// Each rank has two experts, and sends each of its tokens to two experts of any rank. An expert is one matrix
// with MXFP8 weights. Expert e moves column k of its rows to column k + e, so that results are known.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <mxdnn/mxdnn_ep.hpp>

namespace example {
using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
using bf16s = std::vector<uint16_t>;
using ep::stage;
constexpr int local_experts = 2, topk = 2, stages = 5;
constexpr bool forward = false, backward = true; // as ep::direction

struct sizes_t {
    int tokens = 256, hidden = 512, passes = 10;
};
// Reads those of a command line. Returns whether they are right.
inline bool read(sizes_t &sizes, int argc, char **argv) {
    int *const all[] = {&sizes.tokens, &sizes.hidden, &sizes.passes};
    for (int i = 1; i < argc; i++) {
        char *end = nullptr;
        const long n = std::strtol(argv[i], &end, 10);
        if (i > 3 || *end || n < 1 || n > 1 << 24)
            return std::fputs("TOKENS, HIDDEN and PASSES are whole numbers from 1 on\n", stderr), false;
        *all[i - 1] = int(n);
    }
    return true;
}

inline double value_of(uint16_t bf16) {
    const uint32_t bits = uint32_t(bf16) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
// Random numbers from 0.5 to 2, of either sign.
inline bf16s random_values(dim n, int seed) {
    std::mt19937 rng(static_cast<unsigned>(seed));
    bf16s values(static_cast<size_t>(n));
    for (uint16_t &v : values) v = uint16_t(0x3f00 | (rng() & 0x80ff));
    return values;
}
inline memory::desc matrix(dim rows, dim columns, dt type) { return {{rows, columns}, type, tag::ab}; }
// A memory of any engine with these values, and the values of one.
template <typename T>
memory put(const engine &eng, const memory::desc &md, const std::vector<T> &values) {
    const memory m(md, eng);
    void *const to = m.map_data();
    std::memcpy(to, values.data(), md.get_size());
    m.unmap_data(to);
    return m;
}
inline bf16s values_of(const memory &m) {
    auto *const from = m.map_data<uint16_t>();
    const bf16s values(from, from + m.get_desc().get_size() / 2);
    m.unmap_data(from);
    return values;
}

// The experts of a rank and their weights, in the backward pass transposed ones.
inline grouped_matmul make_experts(
        const engine &eng, stream &s, int rank, dim hidden, dt rows, bool direction, memory &weights) {
    primitive_attr attr, mxfp8;
    attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
    if (rows != dt::bf16) attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
    const grouped_matmul::primitive_desc pd(eng, matrix(MXDNN_RUNTIME_DIM_VAL, hidden, rows),
            {{local_experts, hidden, hidden}, dt::f8_e4m3, tag::any},
            matrix(MXDNN_RUNTIME_DIM_VAL, hidden, dt::bf16), attr);
    bf16s plain(size_t(local_experts * hidden * hidden));
    for (dim e = 0; e < local_experts; e++)
        for (dim k = 0; k < hidden; k++) // a one in each row
            plain[(e * hidden + k) * hidden + (k + rank * local_experts + e) % hidden] = 0x3f80;
    const tag order = direction == forward ? tag::abc : tag::acb;
    const memory from = put(eng, {{local_experts, hidden, hidden}, dt::bf16, order}, plain);
    mxfp8.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
    weights = memory(pd.weights_desc(), eng);
    mx_reorder({eng, from.get_desc(), eng, pd.weights_desc(), mxfp8}).execute(s, from, weights);
    s.wait();
    return grouped_matmul(pd);
}

// Signal to noise in dB of what experts make of rows, or of gradients.
inline double sqnr(const bf16s &from, const bf16s &to, const std::vector<int> &expert_of_row, dim hidden,
        bool direction) {
    double signal = 0, noise = 0;
    for (size_t r = 0; r < expert_of_row.size(); r++)
        for (dim k = 0; k < hidden; k++) {
            dim here = k, there = (k + expert_of_row[r]) % hidden;
            if (direction == backward) std::swap(here, there);
            const double x = value_of(from[r * hidden + here]);
            signal += x * x;
            noise += std::pow(x - value_of(to[r * hidden + there]), 2);
        }
    return 10 * std::log10(signal / noise);
}

// One precision: the time of each stage, and whether the results are right.
inline bool run(const ep::communicator &comm, const engine &eng, dt type, const sizes_t &sizes) {
    const int rank = comm.rank(), experts = local_experts * comm.size();
    const dim tokens = sizes.tokens, hidden = sizes.hidden, rows = tokens * topk;
    stream s(eng);
    ep::layer::desc desc(hidden, experts, tokens, rows);
    desc.alignment = 16;
    desc.forward_type = desc.backward_type = mxdnn_data_type_t(type);
    const ep::layer layer(comm, desc);
    const ep::step step(layer);

    // Rows are sorted by expert. A model has moe_route for it.
    std::vector<int> counts(static_cast<size_t>(experts)), token_of_row, expert_of_row;
    const bf16s x = random_values(tokens * hidden, rank), dy = random_values(rows * hidden, 1000 + rank);
    bf16s sent; // x, row by row
    for (int e = 0; e < experts; e++)
        for (int t = 0; t < tokens; t++)
            for (int j = 0; j < topk; j++) {
                if ((t * 5 + t / 7 + rank + j * 3) % experts != e) continue;
                counts[e]++;
                token_of_row.push_back(t);
                expert_of_row.push_back(e);
                sent.insert(sent.end(), x.begin() + t * hidden, x.begin() + (t + 1) * hidden);
            }

    // What each stage gets beside what the stage before has left.
    const memory::desc all_rows = matrix(rows, hidden, dt::bf16);
    const memory y(all_rows, eng), dx(all_rows, eng);
    std::unordered_map<int, memory> args[2][stages];
    args[forward][int(stage::dispatch)] = {{MXDNN_ARG_SRC, put(eng, matrix(tokens, hidden, dt::bf16), x)},
            {MXDNN_ARG_GROUP_COUNTS, put(eng, {{experts}, dt::s32, tag::a}, counts)},
            {MXDNN_ARG_GATHER_IDX, put(eng, {{rows}, dt::s32, tag::a}, token_of_row)}};
    args[forward][int(stage::combine)] = {{MXDNN_ARG_DST, y}};
    args[backward][int(stage::combine)] = {{MXDNN_ARG_SRC, put(eng, all_rows, dy)}};
    args[backward][int(stage::dispatch)] = {{MXDNN_ARG_DST, dx}};
    grouped_matmul matmul[2];
    for (const bool direction : {forward, backward}) {
        std::unordered_map<int, memory> &a = args[direction][int(stage::experts)];
        a = step.get_expert_args(ep::direction(direction));
        matmul[direction] = make_experts(eng, s, rank, hidden, type, direction, a[MXDNN_ARG_WEIGHTS]);
    }

    std::vector<double> times[2][stages];
    for (int pass = 0; pass < sizes.passes; pass++)
        for (const bool direction : {forward, backward})
            for (int i = 0; i < stages; i++) {
                const int st = direction == forward ? i : stages - 1 - i;
                comm.wait(s);
                const auto begin = std::chrono::steady_clock::now();
                if (stage(st) == stage::experts)
                    matmul[direction].execute(s, args[direction][st]);
                else
                    step.execute(stage(st), ep::direction(direction), s, args[direction][st]);
                comm.wait(s); // for the slowest rank
                const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
                times[direction][st].push_back(ms.count());
            }
    if (rank == 0)
        std::printf("%d ranks, %d tokens each in %s, %d columns, %d experts, top %d; median ms\n",
                comm.size(), sizes.tokens, type == dt::bf16 ? "bf16" : "MXFP8", sizes.hidden, experts, topk);
    const char *const names[stages] = {"dispatch", "permute", "experts", "unpermute", "combine"};
    for (int st = 0; rank == 0 && st < stages; st++) {
        for (auto &t : times) std::nth_element(t[st].begin(), t[st].begin() + sizes.passes / 2, t[st].end());
        std::printf("  %-10s forward %10.3f, backward %10.3f\n", names[st],
                times[forward][st][sizes.passes / 2], times[backward][st][sizes.passes / 2]);
    }
    const double of_y = sqnr(sent, values_of(y), expert_of_row, hidden, forward),
                 of_dx = sqnr(dy, values_of(dx), expert_of_row, hidden, backward);
    std::printf("  rank %d: SQNR %.1f dB, of gradients %.1f dB\n", rank, of_y, of_dx);
    return of_y >= 28 && of_dx >= 28;
}

} // namespace example
