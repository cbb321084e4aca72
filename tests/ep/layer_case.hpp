// SPDX-License-Identifier: Apache-2.0
// A whole layer over any number of ranks, next to plain loops in each of them: every rank can make the tokens
// and the choices of all ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mxdnn/mxdnn_ep.hpp"

namespace ep_test {

using namespace mxdnn;
using dt = memory::data_type;
using tag = memory::format_tag;
using dim = memory::dim;
using rows_t = std::vector<uint16_t>; // bf16, row by row

inline float from_bf16(uint16_t h) {
    const uint32_t u = uint32_t(h) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}
inline uint16_t to_bf16(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// The call throws, and the sentence has these words.
template <typename F>
void expect_refused(F &&call, const std::string &sentence) {
    try {
        call();
        ADD_FAILURE() << "not refused, but should be: " << sentence;
    } catch (const mxdnn::error &e) {
        EXPECT_NE(std::string(e.what()).find(sentence), std::string::npos) << e.what();
    }
}

// What experts do: a factor that is exact in bf16, so that rows which are only moved keep their bits.
inline float factor_of(dim expert) { return std::ldexp(expert % 2 ? -1.f : 1.f, int(expert % 5) - 2); }

// Signal to noise of y for x, in dB; infinite if they are equal.
inline double sqnr(const rows_t &x, const rows_t &y) {
    double signal = 0, noise = 0;
    for (size_t i = 0; i < x.size(); i++) {
        const double a = from_bf16(x[i]), b = from_bf16(y[i]);
        signal += a * a;
        noise += (a - b) * (a - b);
    }
    return noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
}

enum class routing_t { random, same_expert_twice, none_on_a_rank, one_expert, none };

struct case_t {
    routing_t routing;
    dim hidden, local_experts, topk, alignment;
    dt forward, backward;
    bool gather; // the library gathers the rows of each expert from the tokens
    unsigned seed;
    dim chunks = 1;
};

// Tokens of one rank, and the rows that it sends, by expert.
struct rank_data_t {
    dim tokens;
    rows_t x;                      // [tokens, hidden]
    std::vector<int32_t> counts;   // by global expert
    std::vector<int32_t> token_of; // of each row
    std::vector<int32_t> expert_of;
    rows_t dy; // gradients of the rows

    rows_t rows(dim hidden) const {
        rows_t r;
        for (const int32_t t : token_of)
            r.insert(r.end(), x.begin() + t * hidden, x.begin() + (t + 1) * hidden);
        return r;
    }
};

constexpr dim most_tokens = 24;

inline rank_data_t make_rank(const case_t &c, int rank, int ranks) {
    std::mt19937 rng(c.seed * 1000 + unsigned(rank));
    std::normal_distribution<float> normal;
    rank_data_t d;
    const dim experts = c.local_experts * ranks;
    d.tokens = dim(rng() % most_tokens) + 1;
    if (c.routing == routing_t::none || (c.routing == routing_t::none_on_a_rank && rank == ranks - 1))
        d.tokens = 0;
    const auto fill = [&](rows_t &v, dim rows) {
        v.resize(size_t(rows * c.hidden));
        for (uint16_t &h : v) h = to_bf16(normal(rng));
    };
    fill(d.x, d.tokens);
    std::vector<std::vector<int32_t>> tokens_of;
    tokens_of.resize(size_t(experts));
    for (dim t = 0; t < d.tokens; t++) {
        const dim first = dim(rng() % unsigned(experts));
        for (dim j = 0; j < c.topk; j++) {
            dim e = (first + j) % experts;
            if (c.routing == routing_t::same_expert_twice) e = first;
            if (c.routing == routing_t::one_expert) e = experts - 1;
            tokens_of[size_t(e)].push_back(int32_t(t));
        }
    }
    for (dim e = 0; e < experts; e++) {
        const auto &list = tokens_of[size_t(e)];
        d.counts.push_back(int32_t(list.size()));
        d.token_of.insert(d.token_of.end(), list.begin(), list.end());
        d.expert_of.insert(d.expert_of.end(), list.size(), int32_t(e));
    }
    fill(d.dy, dim(d.token_of.size()));
    return d;
}

// Rows of all ranks for the local experts of one, in the order of the ranks.
struct groups_t {
    std::vector<rows_t> x, dy;
};
inline groups_t make_groups(const case_t &c, const std::vector<rank_data_t> &all, int rank) {
    groups_t g;
    g.x.resize(size_t(c.local_experts));
    g.dy.resize(size_t(c.local_experts));
    for (const rank_data_t &d : all) {
        const rows_t x = d.rows(c.hidden);
        for (size_t i = 0; i < d.expert_of.size(); i++) {
            const dim local = d.expert_of[i] - rank * c.local_experts;
            if (local < 0 || local >= c.local_experts) continue;
            const auto add = [&](rows_t &to, const rows_t &from) {
                to.insert(to.end(), from.begin() + dim(i) * c.hidden, from.begin() + dim(i + 1) * c.hidden);
            };
            add(g.x[size_t(local)], x);
            add(g.dy[size_t(local)], d.dy);
        }
    }
    return g;
}

inline ep::layer::desc describe(const case_t &c, int ranks) {
    ep::layer::desc d(c.hidden, c.local_experts * ranks, most_tokens * c.topk, most_tokens * c.topk);
    d.alignment = c.alignment;
    d.chunks = c.chunks;
    d.forward_type = mxdnn_data_type_t(c.forward);
    d.backward_type = mxdnn_data_type_t(c.backward);
    return d;
}

// A pass whose stages are executed chunk by chunk: the experts of one before those of the next, but after all
// rows have been sent. `first` and `last` are
// the arguments of the first and the last stage.
using memories_by_arg_t = std::unordered_map<int, memory>;
inline void execute_chunks(const ep::step &step, const case_t &c, ep::direction direction, const stream &s,
        const memories_by_arg_t &first, const memories_by_arg_t &last) {
    const bool forward = direction == ep::direction::forward;
    const ep::stage order[] = {ep::stage::dispatch, ep::stage::permute, ep::stage::experts,
            ep::stage::unpermute, ep::stage::combine};
    for (dim k = 0; k < c.chunks; k++) step.execute_chunk(order[forward ? 0 : 4], direction, k, s, first);
    for (dim k = 0; k < c.chunks; k++) {
        for (int i = 1; i < 4; i++) step.execute_chunk(order[forward ? i : 4 - i], direction, k, s);
        step.execute_chunk(order[forward ? 4 : 0], direction, k, s, last);
    }
}

// Rows times the factors of their experts.
inline rows_t scaled(const rows_t &rows, const std::vector<int32_t> &expert_of, dim hidden) {
    rows_t r = rows;
    for (size_t i = 0; i < r.size(); i++)
        r[i] = to_bf16(from_bf16(r[i]) * factor_of(expert_of[i / size_t(hidden)]));
    return r;
}

template <typename T>
memory wrap(const engine &eng, const memory::dims &dims, dt type, std::vector<T> &values) {
    // An empty vector may have no buffer.
    static T none[1];
    return memory(memory::desc(dims, type, dims.size() == 1 ? tag::a : tag::ab), eng,
            values.empty() ? none : values.data());
}

// bf16 values of rows with or without scales, through mx_reorder.
inline rows_t read_rows(const engine &eng, mxdnn_memory_t rows_memory, mxdnn_memory_t scales_memory) {
    const memory rows(rows_memory, true);
    const memory::desc md = rows.get_desc();
    const dim n = md.get_dims()[0], hidden = md.get_dims()[1];
    rows_t r(size_t(n * hidden));
    if (!scales_memory) {
        std::memcpy(r.data(), rows.get_data_handle(), r.size() * 2);
        return r;
    }
    const memory scales(scales_memory, true);
    memory values = wrap(eng, {n, hidden}, dt::bf16, r);
    primitive_attr attr;
    attr.set_scales(MXDNN_ARG_SRC, 3, {1, 32}, dt::e8m0);
    stream s(eng);
    mx_reorder(mx_reorder::primitive_desc(eng, md, eng, values.get_desc(), attr))
            .execute(s, {{MXDNN_ARG_FROM, rows}, {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_FROM, scales},
                                {MXDNN_ARG_TO, values}});
    return r;
}

// bf16 rows after a way through the format: what a receiver of quantised rows has.
inline rows_t through(const engine &eng, dt format, rows_t rows, dim hidden) {
    if (format == dt::bf16 || rows.empty()) return rows;
    const dim n = dim(rows.size()) / hidden;
    primitive_attr attr;
    attr.set_scales(MXDNN_ARG_DST, 3, {1, 32}, dt::e8m0, false, quantization_mode::dynamic_mx);
    attr.set_scale_rounding(MXDNN_ARG_DST, scale_rounding::rceil);
    const memory plain = wrap(eng, {n, hidden}, dt::bf16, rows);
    const memory codes(memory::desc({n, hidden}, format, tag::ab), eng);
    const memory scales(memory::desc({n, hidden / 32}, dt::e8m0, tag::ab), eng);
    stream s(eng);
    mx_reorder(mx_reorder::primitive_desc(eng, plain.get_desc(), eng, codes.get_desc(), attr))
            .execute(s, {{MXDNN_ARG_FROM, plain}, {MXDNN_ARG_TO, codes},
                                {MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_TO, scales}});
    return read_rows(eng, codes.get(), scales.get());
}

// What the callback of one rank reads, on the host.
struct expert_rows_t {
    rows_t rows;
    std::vector<uint8_t> scales;               // none of bf16 rows
    std::vector<int32_t> ends, starts, counts; // `starts` of the chunk
};

// Every row of every group, its padding, and where it ends. False: what follows makes no sense.
inline bool expect_groups(const engine &eng, const case_t &c, const expert_rows_t &found,
        const std::vector<rows_t> &expected, dt format) {
    dim row = 0;
    for (dim e = 0; e < c.local_experts; e++) {
        const rows_t x = through(eng, format, expected[size_t(e)], c.hidden);
        const dim count = dim(x.size()) / c.hidden;
        const dim size = (std::max(count, c.alignment) + c.alignment - 1) / c.alignment * c.alignment;
        EXPECT_EQ(found.ends[size_t(e)], row + size);
        if (found.ends[size_t(e)] != row + size) return false;
        const auto begin = found.rows.begin() + row * c.hidden;
        EXPECT_EQ(rows_t(begin, begin + dim(x.size())), x) << "expert " << e;
        EXPECT_EQ(rows_t(begin + dim(x.size()), begin + size * c.hidden),
                rows_t(size_t((size - count) * c.hidden), 0))
                << "padding of expert " << e;
        EXPECT_EQ(found.scales.empty(), format == dt::bf16);
        for (dim i = (row + count) * c.hidden / 32; i < (row + size) * c.hidden / 32 && !found.scales.empty();
                i++)
            EXPECT_EQ(found.scales[size_t(i)], 0);
        row += size;
    }
    return true;
}

// The results of a chunk: its rows times the factors of their experts. [begin, end) are the values that were
// computed; those of the last chunk end with the memory.
struct results_t {
    rows_t values;
    size_t begin, end;
};
inline results_t compute_experts(const case_t &c, const expert_rows_t &found,
        const mxdnn_ep_expert_args_t &args, const std::vector<rank_data_t> &all, int rank) {
    for (size_t r = 0; r < all.size(); r++)
        for (dim e = 0; e < c.local_experts; e++)
            EXPECT_EQ(found.counts[r * size_t(c.local_experts) + size_t(e)],
                    all[r].counts[size_t(rank * c.local_experts + e)]);
    EXPECT_EQ(args.experts, c.local_experts / c.chunks);
    EXPECT_EQ(found.starts.size(), size_t(args.experts + 1));
    EXPECT_EQ(found.starts[0], args.first_expert == 0 ? 0 : found.ends[size_t(args.first_expert - 1)]);
    results_t y{rows_t(found.rows.size(), 0x7fc0), 0, 0};
    y.begin = size_t(found.starts[0]) * size_t(c.hidden);
    size_t i = y.begin;
    for (dim e = args.first_expert; e < args.first_expert + args.experts; e++) {
        EXPECT_EQ(found.starts[size_t(e - args.first_expert + 1)], found.ends[size_t(e)]);
        for (; i < size_t(found.ends[size_t(e)]) * size_t(c.hidden) && i < y.values.size(); i++)
            y.values[i] = to_bf16(from_bf16(found.rows[i]) * factor_of(rank * c.local_experts + e));
    }
    y.end = args.first_expert + args.experts == c.local_experts ? y.values.size() : i;
    return y;
}

} // namespace ep_test
