// SPDX-License-Identifier: Apache-2.0
// One grouped_matmul problem of mxdnn-bench: what its words mean, and which row goes where.
#pragma once

#include <string>
#include <vector>

#include "benchdnn/common/matmul.hpp"

namespace bench {
namespace grouped_matmul {

enum class scatter_t { none, permute, reduce };
enum class params_t { none, shared, per_expert };

struct problem_t : matmul_problem_t {
    int64_t K = 0, N = 0;
    int64_t experts = 4, topk = 2, tokens = 8; // experts: of the whole model
    int64_t first = 0, local = 0;              // those that the weights hold
    std::string routing = "uniform";
    mxdnn::impl::data_type_t topk_dt = mxdnn_f32;
    mxdnn::row_grouping grouping = mxdnn::row_grouping::ends;
    bool gather = false, active = false, shuffled = false, map = false, pointers = false, alpha = false;
    scatter_t scatter = scatter_t::none;
    std::string topk_weights; // "", "output" or "input"
    params_t params = params_t::none;
    int64_t extra_rows = 0, row_pad = 0;
    bool skips = false; // some rows are gathered from nowhere, some dropped
    int64_t dst_n() const { return gated() ? N / 2 : N; }
    bool plain_rows = false;            // groups that are one after the other are described like any matrix
    bool is_grouped(bool of_src) const; // the descriptor of source or destination says what its groups are
    // For source or destination: there are gaps between rows unless it is grouped.
    std::vector<int64_t> strides(const std::vector<int64_t> &dims, bool of_src) const;
};

extern knobs_t knobs;
problem_t make_problem(const std::string &descriptor, const words_t &words); // "KxN"

std::string draw_descriptor(draws_t &any);

// A row of the groups: its expert among the weights (-1: none), the rows of source and destination that it
// connects (-1: zeros, dropped), and its weight.
struct row_t {
    int64_t expert = -1, src = -1, dst = -1, group = -1;
    float weight = 1;
};

// Rows and index tensors of a problem, made by the rules of the routing.
struct routing_t {
    std::vector<row_t> rows;
    std::vector<int64_t> counts;                                  // of each of the weights' experts
    int64_t src_rows = 0, dst_rows = 0, group_rows = 0;           // group_rows: of a padded group
    std::vector<int32_t> bounds, group_ids, map, gather, scatter; // empty: not passed

    int64_t groups() const;
    bool padded = false;
    std::vector<int64_t> swizzled_rows; // of a matrix of groups: the row of the 128x4 order that a row is
};
routing_t make_routing(const problem_t &p, uint32_t seed);

// Descriptors and attributes of a problem.
struct descs_t {
    mxdnn::memory::desc src, wei, bias, dst;
    mxdnn::primitive_attr attr;
};
descs_t make_descs(const problem_t &p, const routing_t &r);

// Bytes that must move (of the experts that have rows) and operations of one execution.
double bytes_of(const problem_t &p, const routing_t &r);
double flops_of(const problem_t &p, const routing_t &r);

void run(const problem_t &p);
bool run_driver_word(const std::string &word); // options and descriptors after --grouped_matmul

} // namespace grouped_matmul
} // namespace bench
