// SPDX-License-Identifier: Apache-2.0
// One execution of grouped_matmul_backward_weights: what its arguments say, read in one place for every
// implementation.
#pragma once

#include "common/counted_groups.hpp"
#include "common/primitive.hpp"

namespace mxdnn {
namespace impl {

// An operand whose rows are in groups: src or diff_dst.
struct grouped_operand_t {
    const memory_desc_t *md = nullptr;
    const uint8_t *data = nullptr;
    const memory_t *scales = nullptr; // of blocks of rows; null: none
    int64_t block = 1;                // rows that share a scale

    grouped_operand_t(const exec_ctx_t &ctx, int arg, const arg_attr_t &attr);
    int64_t columns() const { return md->dims[md->ndims - 1]; }
    int64_t rows() const { return md->ndims == 3 ? md->dims[0] * md->dims[1] : md->dims[0]; }
    // Where a row begins, and how far its elements are apart, in elements. A row is counted through all
    // groups.
    int64_t row_offset(int64_t row) const {
        return md->ndims == 3 ? row / md->dims[1] * md->strides[0] + row % md->dims[1] * md->strides[1]
                              : row * md->strides[0];
    }
    int64_t column_stride() const { return md->strides[md->ndims - 1]; }
    // The same of a row of scales: number `block` of group g, whose scales begin with row `first`.
    int64_t scales_offset(int64_t g, int64_t first, int64_t block_row) const {
        const dim_t *s = scales->md.strides;
        return scales->md.ndims == 3 ? g * s[0] + block_row * s[1] : (first + block_row) * s[0];
    }
    int64_t scales_column_stride() const { return scales->md.strides[scales->md.ndims - 1]; }
};

// Blocks of rows begin anew in each group. Their scales stand one group after the other.
struct backward_weights_exec_t {
    counted_groups_t groups; // group g is expert g
    grouped_operand_t src, diff_dst;

    // The arguments of an execution, which check_backward_weights_exec() accepted.
    explicit backward_weights_exec_t(const exec_ctx_t &ctx);

    struct group_t {
        int64_t first;       // row
        int64_t rows;        // that count: others are padding
        int64_t first_block; // row of the scales of a tensor of 2 dims
    };
    // Calls body(g, group) for each group in order.
    template <typename F>
    void for_each_group(F &&body) const {
        int64_t first_block = 0;
        for (int64_t g = 0; g < groups.groups; g++) {
            const row_group_t all = groups.group(g);
            body(g, group_t{all.first, groups.rows_that_count(g, all.count), first_block});
            first_block += blocks_of(g);
        }
    }
    // Rows of scales of group g, padding included, in a tensor of 2 dims.
    int64_t blocks_of(int64_t g) const {
        return groups.blocks_of(g, src.block > diff_dst.block ? src.block : diff_dst.block);
    }
};

// Checks that the arguments fit each other and, on the host, the contents of the index tensors, before
// anything is written.
status_t check_backward_weights_exec(const problem_t &p, const exec_ctx_t &ctx);

} // namespace impl
} // namespace mxdnn
