// SPDX-License-Identifier: Apache-2.0
// One execution of grouped_matmul: what its arguments say, read in one place for every implementation.
#pragma once

#include "common/primitive.hpp"
#include "common/row_groups.hpp"

namespace mxdnn {
namespace impl {

// The parameters of a gated activation for one expert.
struct activation_params_t {
    float alpha, beta, limit;
};

struct grouped_exec_t {
    // Rows are counted as the groups divide them. Padded groups are counted through: [group][row in it].
    row_groups_t groups;
    int64_t src_rows = 0, dst_rows = 0;                  // rows of the tensors
    const int32_t *gather = nullptr, *scatter = nullptr; // [rows]; null: row r is row r of the tensor
    const void *topk = nullptr;                          // [rows] f32 or bf16; null: all are 1
    data_type_t topk_dt = mxdnn_data_type_undef;
    const float *expert_alpha = nullptr;      // [experts]; null: all are 1
    const float *activation_params = nullptr; // null: the parameters of the post-op
    int64_t activation_stride = 0;            // from the parameters of one expert to those of the next
    const uint64_t *weights_ptrs = nullptr;   // [experts], packed; null: all are in WEIGHTS

    // The arguments of an execution, which check_grouped_exec() accepted.
    explicit grouped_exec_t(const exec_ctx_t &ctx);

    // -1: for the source a row of zeros, for the destination a row that is dropped.
    int64_t src_row(int64_t row) const { return gather ? gather[row] : row; }
    int64_t dst_row(int64_t row) const { return scatter ? scatter[row] : row; }
    float topk_weight(int64_t row) const;
    float alpha(int expert) const { return expert_alpha ? expert_alpha[expert] : 1.f; }
    activation_params_t params(int expert, const post_op_t &gated) const;
};

// Checks that the arguments fit each other, and on the host also the contents of the index tensors, before
// anything is written. Called in every execution, because the length of index tensors is known only then.
status_t check_grouped_exec(const problem_t &p, const exec_ctx_t &ctx);

// Whether each group begins on a new tile of the 128x4 scales of the source (or the destination). This is so
// if its rows are in the order of the groups.
bool swizzled_by_group(const grouped_exec_t &x, bool of_src);

} // namespace impl
} // namespace mxdnn
