// SPDX-License-Identifier: Apache-2.0
// The matrices of a batched mx_matmul as launches of the Hopper kernels, which take one matrix of rows and
// one of weights, or groups of rows that have one each. Pure functions of dims.
#pragma once

#include "common/memory_desc.hpp"
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// The work of one launch: rows of src and dst, counted through all their matrices, and some matrices of
// weights.
struct batch_part_t {
    int64_t src_row, dst_row, rows;
    int64_t src_matrix, weights; // number of the first one of each
    int64_t bias;                // position of its first row, in elements
    int64_t groups;              // groups of equally many rows, with a matrix of weights each; 0: one matrix
};

// One part if all rows are multiplied by one matrix of weights. Groups if every matrix has its own and
// with_groups is set. Otherwise one part for each matrix of dst. one_factor: no factor of src differs between
// matrices. bias: null if there is none.
class batch_parts_t {
public:
    batch_parts_t(const memory_desc_t &src, const memory_desc_t &weights, const memory_desc_t *bias,
            const memory_desc_t &dst, bool with_groups, bool one_factor);
    int64_t parts() const { return div_up(matrices_, each_); }
    batch_part_t part(int64_t i) const;

private:
    const memory_desc_t &src_, &weights_, *bias_, &dst_;
    int64_t matrices_, each_; // number of matrices of dst, and of a part
    bool groups_ = false;
};

// The groups of such a part.
row_groups_t equal_groups(int64_t groups, int64_t rows);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
