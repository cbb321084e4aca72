// SPDX-License-Identifier: Apache-2.0
// What the kernels for gradients of weights are told at execution; plain data.
#pragma once

#include "common/counted_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// src or diff_dst: rows in groups. Steps are bytes from one group (of 3 dims), row and column to the next.
struct gradient_operand_t {
    const uint8_t *data;
    data_type_t dt;
    int64_t columns;
    int64_t group_rows; // of 3 dims; 0: there are 2, and rows are counted through all groups
    int64_t group_step, row_step, column_step;
    const uint8_t *scales; // e8m0, of `block` rows; null: none
    int64_t block;
    int64_t scales_rows; // of one group, or in 2 dims of all groups
    int64_t scales_group_step, scales_row_step, scales_column_step;
};

// The gradient, and what is added of the previous one.
struct gradient_result_t {
    uint8_t *data;
    data_type_t dt, old_dt;
    int64_t group_step, row_step, column_step; // bytes: of K rows and N columns
    bool has_old;
    float old_scale;
    int32_t old_zero_point;
};

// ref_grouped_backward_weights
struct gradient_args_t {
    counted_groups_t groups;
    gradient_operand_t src, diff_dst;
    gradient_result_t to;
};

// dequantise_groups: MXFP8 rows that count, as rows of bf16. Rows and their scales are evenly spaced, also
// from group to group. Columns are contiguous and a multiple of 8, as are steps and addresses.
struct dequantise_groups_args_t {
    counted_groups_t groups;
    gradient_operand_t from[2];
    uint16_t *to[2]; // [rows, to_stride], 16-byte aligned
    int64_t to_stride[2];
};

// The groups that sm90_gradient and dequantise_groups take: their lists are in shared memory.
constexpr int max_gradient_groups = 256;

// sm90_gradient. Products of a's columns and b's columns, summed along the rows of a group. Those of b are
// neighbours in the result.
struct sm90_gradient_args_t {
    counted_groups_t groups;
    int32_t M, N; // columns of a and of b
    uint8_t *to;  // [groups][M][N]
    data_type_t to_dt;
    int64_t to_group_stride, to_row_stride; // elements
    bool has_old;
    float old_scale;
    int32_t band; // rows of tiles that are computed side by side
    bool copies;  // results leave by tensor copies
};

struct sm90_gradient_launch_t {
    int32_t variant;
    int32_t grid;
    bool f16; // otherwise bf16
    sm90_gradient_args_t args;
    const void *a, *b;          // 16-byte aligned
    int64_t a_stride, b_stride; // elements from row to row, a multiple of 8
};

} // namespace cuda
} // namespace impl
} // namespace mxdnn
