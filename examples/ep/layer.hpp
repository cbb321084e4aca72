// SPDX-License-Identifier: Apache-2.0
// Five stages of an expert-parallel layer, forward and backward, in bf16 and in MXFP8, and their times: the
// part that does not depend on what carries the rows.
//
// An expert is one matrix with MXFP8 weights. Each rank has two of them, and sends each of its tokens to two
// experts of any rank. Results and gradients are held against plain loops.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include <mxdnn/mxdnn_ep.hpp>

namespace example {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
constexpr dim local_experts = 2, topk = 2, alignment = 16;

inline uint16_t to_bf16(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float from_bf16(uint16_t h) {
    const uint32_t u = uint32_t(h) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}
inline std::vector<uint16_t> random_bf16(dim n, float size, unsigned seed) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, size);
    std::vector<uint16_t> v(static_cast<size_t>(n));
    for (uint16_t &x : v) x = to_bf16(normal(rng));
    return v;
}

inline memory::desc matrix(dim rows, dim columns, dt type) { return {{rows, columns}, type, tag::ab}; }

// The ranks of a program: what it has beside the communicator of the library.
struct ranks_t {
    virtual ~ranks_t() = default;
    // A memory of the engine with these values, and its values on the host.
    virtual memory put(const memory::desc &md, const void *values) = 0;
    virtual void get(const memory &m, void *values) = 0;
    virtual void meet() = 0;              // waits for all ranks
    virtual double most(double mine) = 0; // of all ranks

    template <typename T>
    memory put(const memory::desc &md, const std::vector<T> &values) {
        return put(md, static_cast<const void *>(values.data()));
    }
};

// The matrix of an expert. Every rank can make it, so that every rank can check its own rows.
inline std::vector<uint16_t> weights_of(dim expert, dim hidden) {
    return random_bf16(hidden * hidden, 1.f / std::sqrt(float(hidden)), 1000 + unsigned(expert));
}

// Rows times matrices: of the forward pass, or of the backward pass with the matrices transposed.
struct experts_t {
    grouped_matmul matmul;
    memory weights;
    bool quantised;

    experts_t(ranks_t &ranks, const engine &eng, const stream &s, const std::vector<uint16_t> &plain,
            dim hidden, dt src, bool transposed) {
        quantised = src != dt::bf16;
        primitive_attr attr;
        attr.set_scales(MXDNN_ARG_WEIGHTS, 7, {32, 1}, dt::e8m0);
        if (quantised) attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
        const grouped_matmul::primitive_desc pd(eng, matrix(MXDNN_RUNTIME_DIM_VAL, hidden, src),
                memory::desc({local_experts, hidden, hidden}, dt::f8_e4m3, tag::any),
                matrix(MXDNN_RUNTIME_DIM_VAL, hidden, dt::bf16), attr);
        matmul = grouped_matmul(pd);
        weights = memory(pd.weights_desc(), eng);
        const memory from = ranks.put(
                {{local_experts, hidden, hidden}, dt::bf16, transposed ? tag::acb : tag::abc}, plain);
        primitive_attr rceil;
        rceil.set_scales(MXDNN_ARG_DST, 7, {32, 1}, dt::e8m0, false, quantization_mode::dynamic_mx);
        rceil.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
        mx_reorder(mx_reorder::primitive_desc(eng, from.get_desc(), eng, pd.weights_desc(), rceil))
                .execute(s, from, weights);
        stream(s).wait();
    }

    mxdnn_status_t execute(mxdnn_stream_t s, mxdnn_memory_t src, mxdnn_memory_t scales, mxdnn_memory_t ends,
            mxdnn_memory_t dst) const {
        const mxdnn_exec_arg_t args[] = {{MXDNN_ARG_SRC, src}, {MXDNN_ARG_WEIGHTS, weights.get()},
                {MXDNN_ARG_GROUP_OFFSETS, ends}, {MXDNN_ARG_DST, dst},
                {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_SRC, scales}};
        return mxdnn_primitive_execute(matmul.get(), s, quantised ? 5 : 4, args);
    }
};
struct both_t {
    experts_t forward, backward;
};
// Signal to noise in dB of rows that are `x` times the matrices of their experts, or the transposed ones.
inline double sqnr(const std::vector<uint16_t> &x, const std::vector<uint16_t> &y,
        const std::vector<int32_t> &expert_of_row, dim hidden, bool transposed) {
    double signal = 0, noise = 1e-30;
    int32_t expert = -1;
    std::vector<uint16_t> w;
    for (size_t r = 0; r < expert_of_row.size(); r += 7) { // some rows are enough
        if (expert_of_row[r] != expert) w = weights_of(expert = expert_of_row[r], hidden);
        for (dim n = 0; n < hidden; n += 5) {
            double sum = 0;
            for (dim k = 0; k < hidden; k++)
                sum += double(from_bf16(x[r * size_t(hidden) + size_t(k)]))
                       * from_bf16(w[size_t(transposed ? n * hidden + k : k * hidden + n)]);
            const double error = sum - from_bf16(y[r * size_t(hidden) + size_t(n)]);
            signal += sum * sum;
            noise += error * error;
        }
    }
    return 10 * std::log10(signal / noise);
}

// Which token goes where: rows are sorted by expert. A model has moe_route for it.
struct routes_t {
    std::vector<int32_t> counts, token_of_row, expert_of_row;

    routes_t(int rank, dim tokens, dim experts) {
        std::mt19937 rng(7 + unsigned(rank));
        std::vector<std::vector<int32_t>> tokens_of(static_cast<size_t>(experts));
        for (dim t = 0; t < tokens; t++)
            for (dim j = 0, first = dim(rng() % unsigned(experts)); j < topk; j++)
                tokens_of[size_t((first + j * 3) % experts)].push_back(int32_t(t));
        for (dim e = 0; e < experts; e++) {
            const std::vector<int32_t> &list = tokens_of[size_t(e)];
            counts.push_back(int32_t(list.size()));
            token_of_row.insert(token_of_row.end(), list.begin(), list.end());
            expert_of_row.insert(expert_of_row.end(), list.size(), int32_t(e));
        }
    }
};

// One precision: the median of what the slowest rank took for each stage, and the errors.
inline bool run(ranks_t &ranks, const ep::communicator &comm, const engine &eng, stream &s, dt type,
        dim tokens, dim hidden, int passes) {
    const int rank = comm.rank();
    const dim experts = local_experts * comm.size(), rows = tokens * topk;

    const routes_t routes(rank, tokens, experts);
    const std::vector<int32_t> &expert_of_row = routes.expert_of_row;
    std::vector<uint16_t> plain;
    for (dim e = 0; e < local_experts; e++) {
        const std::vector<uint16_t> w = weights_of(rank * local_experts + e, hidden);
        plain.insert(plain.end(), w.begin(), w.end());
    }
    both_t both = {experts_t(ranks, eng, s, plain, hidden, type, false),
            experts_t(ranks, eng, s, plain, hidden, type, true)};

    ep::layer::desc desc(hidden, experts, tokens, rows);
    desc.alignment = alignment;
    desc.forward_type = desc.backward_type = mxdnn_data_type_t(type);
    desc.user = &both;
    desc.experts_forward = [](void *user, mxdnn_stream_t st, const mxdnn_ep_expert_args_t *a) {
        return static_cast<both_t *>(user)->forward.execute(
                st, a->src, a->src_scales, a->group_offsets, a->dst);
    };
    desc.experts_backward = [](void *user, mxdnn_stream_t st, const mxdnn_ep_expert_args_t *a) {
        return static_cast<both_t *>(user)->backward.execute(
                st, a->diff_dst, a->diff_dst_scales, a->group_offsets, a->diff_src);
    };
    const ep::layer layer(comm, desc);
    const ep::step step(layer);

    const std::vector<uint16_t> x = random_bf16(tokens * hidden, 1.f, 100 + unsigned(rank)),
                                dy = random_bf16(rows * hidden, 1.f, 200 + unsigned(rank));
    std::vector<uint16_t> y(dy.size()), dx(dy.size()), sent; // x, row by row as it was sent
    const memory::desc all_rows = matrix(rows, hidden, dt::bf16);
    const memory results(all_rows, eng), gradients(all_rows, eng);
    const struct {
        const char *name;
        ep::stage stage;
        ep::direction direction;
        std::unordered_map<int, memory> args;
    } stages[] = {
            {"dispatch", ep::stage::dispatch, ep::direction::forward,
                    {{MXDNN_ARG_SRC, ranks.put(matrix(tokens, hidden, dt::bf16), x)},
                            {MXDNN_ARG_GROUP_COUNTS, ranks.put({{experts}, dt::s32, tag::a}, routes.counts)},
                            {MXDNN_ARG_GATHER_IDX,
                                    ranks.put({{rows}, dt::s32, tag::a}, routes.token_of_row)}}},
            {"permute", ep::stage::permute, ep::direction::forward, {}},
            {"experts", ep::stage::experts, ep::direction::forward, {}},
            {"unpermute", ep::stage::unpermute, ep::direction::forward, {}},
            {"combine", ep::stage::combine, ep::direction::forward, {{MXDNN_ARG_DST, results}}},
            {"combine, backward", ep::stage::combine, ep::direction::backward,
                    {{MXDNN_ARG_SRC, ranks.put(all_rows, dy)}}},
            {"unpermute, backward", ep::stage::unpermute, ep::direction::backward, {}},
            {"experts, backward", ep::stage::experts, ep::direction::backward, {}},
            {"permute, backward", ep::stage::permute, ep::direction::backward, {}},
            {"dispatch, backward", ep::stage::dispatch, ep::direction::backward,
                    {{MXDNN_ARG_DST, gradients}}},
    };

    dim leave = 0; // rows for other ranks
    for (const int32_t e : expert_of_row) leave += e / local_experts != rank;
    const long long row_bytes = type == dt::bf16 ? 2 * hidden : hidden + hidden / 32;
    if (rank == 0)
        std::printf("%s: %lld bytes leave rank 0 in dispatch, %lld in combine\n",
                type == dt::bf16 ? "bf16" : "MXFP8", leave * row_bytes, leave * (2LL * hidden));
    std::vector<std::vector<double>> times(std::size(stages));
    for (int pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < std::size(stages); i++) {
            ranks.meet();
            const auto begin = std::chrono::steady_clock::now();
            step.execute(stages[i].stage, stages[i].direction, s, stages[i].args);
            s.wait();
            const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - begin;
            times[i].push_back(ranks.most(mine.count()));
        }
    if (rank == 0) std::printf("  %-20s %12s %12s\n", "", "median ms", "least ms");
    for (size_t i = 0; rank == 0 && i < std::size(stages); i++) {
        std::sort(times[i].begin(), times[i].end());
        std::printf("  %-20s %12.3f %12.3f\n", stages[i].name, 1e3 * times[i][size_t(passes / 2)],
                1e3 * times[i][0]);
    }

    for (const int32_t t : routes.token_of_row)
        sent.insert(sent.end(), x.begin() + t * hidden, x.begin() + (t + 1) * hidden);
    comm.wait(s);
    ranks.get(results, y.data());
    ranks.get(gradients, dx.data());
    const double all[2] = {-ranks.most(-sqnr(sent, y, expert_of_row, hidden, false)),
            -ranks.most(-sqnr(dy, dx, expert_of_row, hidden, true))};
    if (rank == 0) std::printf("  SQNR %.1f dB, of gradients %.1f dB\n", all[0], all[1]);
    return all[0] >= 23 && all[1] >= 23; // MXFP8 rows times MXFP8 weights have about 28 dB
}

// TOKENS, HIDDEN and PASSES of a command line, in both precisions.
struct sizes_t {
    dim tokens = 256, hidden = 512, passes = 10;
};
// Of the words [TOKENS [HIDDEN [PASSES]]]. What is something else is said on standard error.
inline std::optional<sizes_t> sizes_of(int argc, char **argv) {
    sizes_t s;
    dim *const all[] = {&s.tokens, &s.hidden, &s.passes};
    for (int i = 1; i < argc; i++) {
        char *end = nullptr;
        const dim n = std::strtoll(argv[i], &end, 10);
        if (i > 3 || *end || n < 1 || n > 1 << 24) {
            std::fprintf(stderr, "usage: %s [TOKENS [HIDDEN [PASSES]]], whole numbers from 1 on\n", argv[0]);
            return std::nullopt;
        }
        *all[i - 1] = n;
    }
    return s;
}

inline int run_all(
        ranks_t &ranks, const ep::communicator &comm, const engine &eng, stream &s, const sizes_t &sizes) {
    int status = 0;
    if (comm.rank() == 0)
        std::printf("%d ranks, %lld tokens each, %lld columns, %lld experts, top %lld\n", comm.size(),
                static_cast<long long>(sizes.tokens), static_cast<long long>(sizes.hidden),
                static_cast<long long>(local_experts) * comm.size(), static_cast<long long>(topk));
    for (const dt type : {dt::bf16, dt::f8_e4m3})
        if (!run(ranks, comm, eng, s, type, sizes.tokens, sizes.hidden, int(sizes.passes))) status = 1;
    if (comm.rank() == 0) std::puts(status ? "wrong results" : "the results are those of plain loops");
    return status;
}

} // namespace example
