// SPDX-License-Identifier: Apache-2.0
// One mx_reorder problem of mxdnn-bench, and the knobs that make many.
#pragma once

#include <string>
#include <vector>

#include "benchdnn/common/knobs.hpp"

namespace bench {
namespace mx_reorder {

struct side_t {
    tensor_type_t type;
    std::string tag = "ab"; // ab, ba, any (packed)
    int axis = 0;           // blocked dim where it is plain and quantised, from the front
    bool packed() const { return tag == "any"; }
};

struct problem_t {
    std::vector<int64_t> dims;
    side_t src;
    std::vector<side_t> dst; // one, or two that are written by one primitive
    mxdnn_scale_rounding_t rounding = mxdnn_scale_rounding_floor;
    bool scales_like_codes = false; // plain scales and zero points in the order of their codes, else ab
    std::string batch_strides;      // of plain sides: "outer", "inner", or "same", which a source has
    std::string runtime_dims;       // of plain sides: "none", "rows", "all"
    int64_t row_pad = 0;            // elements between rows of plain sides
    int64_t groups = 0;             // of rows, which are distributed by `routing`; 0: one matrix
    std::string routing;
    bool starts = false;
    int64_t spare = 0;  // rows after the last group
    std::string values; // "normal", or "special": NaN, Inf, subnormals, zeros, huge, any code and scale
    std::string repro;
};

extern knobs_t knobs;
// How many rows each group has.
std::vector<int64_t> group_rows(const problem_t &p, uint32_t seed);

problem_t make_problem(const std::string &descriptor, const words_t &words);
std::string draw_descriptor(draws_t &any);

void run(const problem_t &p);
bool run_driver_word(const std::string &word);

} // namespace mx_reorder
} // namespace bench
