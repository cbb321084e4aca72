// SPDX-License-Identifier: Apache-2.0
// The tensors that problems are about, a row each: what they are called, where a problem has the descriptor
// and the attributes, and which query gives the descriptor. What treats all of them alike goes through this
// list; a further tensor of weights, say, is a member of problem_t, one of the attributes, and a row.
#pragma once

#include "common/problem.hpp"

namespace mxdnn {
namespace impl {

struct operand_t {
    int arg;
    const char *name; // in messages
    const char *word; // in verbose lines
    memory_desc_t problem_t::*md;
    arg_attr_t attr_t::*attr; // null: no scales and no element packing
    mxdnn_query_t query;
    int query_index;
    bool is_output;
};

inline constexpr operand_t operands[] = {
        {MXDNN_ARG_SRC, "src", "src", &problem_t::src, &attr_t::src, mxdnn_query_src_md, 0, false},
        {MXDNN_ARG_WEIGHTS, "weights", "wei", &problem_t::weights, &attr_t::weights, mxdnn_query_weights_md,
                0, false},
        {MXDNN_ARG_BIAS, "bias", "bia", &problem_t::bias, nullptr, mxdnn_query_weights_md, 1, false},
        {MXDNN_ARG_DST, "dst", "dst", &problem_t::dst, &attr_t::dst, mxdnn_query_dst_md, 0, true},
        {MXDNN_ARG_DST_1, "dst_1", "dst_1", &problem_t::dst_1, &attr_t::dst_1, mxdnn_query_dst_md, 1, true},
        {MXDNN_ARG_DIFF_DST, "diff_dst", "diff_dst", &problem_t::diff_dst, &attr_t::diff_dst,
                mxdnn_query_diff_dst_md, 0, false},
        {MXDNN_ARG_DIFF_WEIGHTS, "diff_weights", "diff_wei", &problem_t::diff_weights, nullptr,
                mxdnn_query_diff_weights_md, 0, true},
};

} // namespace impl
} // namespace mxdnn
