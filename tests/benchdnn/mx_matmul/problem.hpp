// SPDX-License-Identifier: Apache-2.0
// One mx_matmul problem of mxdnn-bench: what its words mean.
#pragma once

#include <string>
#include <vector>

#include "benchdnn/common/matmul.hpp"

namespace bench {
namespace mx_matmul {

struct problem_t : matmul_problem_t {
    std::vector<int64_t> src, wei, dst; // dims; dst after a gated post-op
    std::string stag = "ab", dtag = "ab";
    int64_t row_pad = 0;        // elements between rows of src and dst
    std::string batch_strides;  // of src and dst: "outer", "inner", or "same", which a source has
    std::string bias_policy;    // as of binary post-ops
    bool runtime_batch = false; // dims of src and dst before the rows
    std::vector<int64_t> src_strides() const, dst_strides() const;
    std::vector<int64_t> dims_of(const std::string &policy, bool gated) const;

    size_t nd() const { return src.size(); }
    int64_t M() const { return src[nd() - 2]; }
    int64_t K() const { return src[nd() - 1]; }
    int64_t N() const { return wei[nd() - 1]; }
    int64_t batch() const;
    // Dims of the tensor of a binary post-op, which is the i-th, and of the bias.
    std::vector<int64_t> binary_dims(size_t i) const;
    std::vector<int64_t> bias_dims() const { return dims_of(bias_policy, false); }
};

extern knobs_t knobs;
problem_t make_problem(const std::string &descriptor, const words_t &words); // "MxK:KxN"
std::string draw_descriptor(draws_t &any);

// Descriptors and attributes of a problem.
struct descs_t {
    mxdnn::memory::desc src, wei, bias, dst;
    mxdnn::primitive_attr attr;
};
descs_t make_descs(const problem_t &p);

// Bytes that must move and operations of one execution.
double bytes_of(const problem_t &p);
double flops_of(const problem_t &p);

void run(const problem_t &p);
bool run_driver_word(const std::string &word); // options and descriptors after --mx_matmul

} // namespace mx_matmul
} // namespace bench
