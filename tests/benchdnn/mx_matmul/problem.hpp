// SPDX-License-Identifier: Apache-2.0
// One mx_matmul problem of mxdnn-bench: what its words mean, and the lists of knobs that make many.
#pragma once

#include <string>
#include <vector>

#include "benchdnn/common/attr_words.hpp"

namespace bench {
namespace mx_matmul {

struct problem_t {
    std::vector<int64_t> src, wei, dst; // dims; dst after a gated post-op
    tensor_type_t src_type, wei_type, dst_type;
    bool bias = false;
    mxdnn::impl::data_type_t bias_dt = mxdnn_f32;
    std::string stag = "ab", wtag = "any", dtag = "ab";
    int64_t src_pad = 0, dst_pad = 0; // elements between rows
    std::vector<post_op_knob_t> post_ops;
    bool runtime_rows = false, deterministic = false, user_scratchpad = false, fpmath_bf16 = false;
    std::string
            special; // "nan": a NaN scale in one block of the weights; "ends": scales over their whole range

    std::string repro; // the words that make this problem again

    size_t nd() const { return src.size(); }
    int64_t M() const { return src[nd() - 2]; }
    int64_t K() const { return src[nd() - 1]; }
    int64_t N() const { return wei[nd() - 1]; }
    int64_t batch() const;
    const post_op_knob_t *gated() const;
};

// Knobs: each holds a list; a problem descriptor is run with every combination.
class knobs_t {
public:
    knobs_t() { reset(); }
    void reset();
    // True when the word was one of this driver's options.
    bool parse(const std::string &word);
    // Every combination of the knobs for "MxK:KxN".
    std::vector<problem_t> problems(const std::string &descriptor) const;

private:
    struct quant_words_t {
        std::string scales, zero_points, global;
    };
    std::vector<std::string> dt_, bia_dt_, post_ops_, scales_, zero_points_, global_, stag_, wtag_, dtag_,
            runtime_, strides_, special_;
    bool deterministic_ = false, user_scratchpad_ = false, fpmath_bf16_ = false;
};

// Descriptors and attributes of a problem.
struct descs_t {
    mxdnn::memory::desc src, wei, bias, dst;
    mxdnn::primitive_attr attr;
};
descs_t make_descs(const problem_t &p);

// Bytes that must move and operations of one execution.
double bytes_of(const problem_t &p);
double flops_of(const problem_t &p);

void run(const problem_t &p);                  // init, correctness, performance as the mode says; reports
bool run_driver_word(const std::string &word); // options and descriptors after --mx_matmul

} // namespace mx_matmul
} // namespace bench
