// SPDX-License-Identifier: Apache-2.0
// A whole layer over any number of ranks, next to plain loops in each of them: every rank can make the tokens
// and the choices of all ranks.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

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

} // namespace ep_test
