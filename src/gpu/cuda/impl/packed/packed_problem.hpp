// SPDX-License-Identifier: Apache-2.0
// What mx_matmul and grouped_matmul of the Hopper kernels have in common: which problems the kernels take,
// and how attributes become their arguments.
#pragma once

#include "common/primitive_desc.hpp"
#include "gpu/cuda/impl/packed/matmul_kernels.hpp"
#include "gpu/cuda/interface/packed_matmul_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Source rows are copied in pieces of so many bytes, aligned to as many.
constexpr int64_t row_copy_bytes = 16;

// none: a type that the kernels do not read or write.
packed::value_type_t value_type_of(data_type_t dt);

// What the weights (packed), source, destination rows and bias have to be. one_matrix: of weights, every
// column of the results having one of them for itself.
reason_t check_packed_problem(const problem_t &p, const matmul_kernels_t &kernels, bool one_matrix);
// Of what may be multiplied at the rate of FP8: sums, source and weights.
reason_t check_fp8_problem(const problem_t &p);
// Whether the weights are int4 that kernels take, and whether a set leaves many rows of them to another.
bool is_packed_int4(const problem_t &p);
bool leaves_int4(const matmul_kernels_t &kernels, const problem_t &p);
// Whether the kernels apply the post-ops, one activation and, of grouped_matmul, a sum as the last; else
// results are finished apart (packed_results.hpp).
bool applies_post_ops(const problem_t &p);

// The sizes, what the weights are and the post-ops; the rest is the caller's.
void set_packed_args(const problem_t &p, packed::launch_args_t &launch);

// For so many rows that fall into so many groups; 0: of one matrix, as above. fp8: the rate of FP8 is
// allowed.
packed::matmul_plan_t plan_packed(
        const problem_t &p, const matmul_kernels_t &kernels, int64_t rows, int64_t groups, bool fp8 = false);

// What the kernels take the weights for; int4_any: they look at the types of scales and zeros as they go.
packed::format_t kernel_format(const problem_t &p);

// Rows of a launch, of so many.
int64_t rows_each(const problem_t &p, const matmul_kernels_t &kernels, int64_t rows, int64_t groups);

// The kernel for them; sets variant, grid and splits of its launch.
kernel_id_t plan_packed_launch(const problem_t &p, const matmul_kernels_t &kernels, int64_t rows,
        int64_t groups, packed::launch_args_t &launch, bool fp8 = false);

// Loads what those kernels have for the problem's formats and types, whatever its rows will be. one_matrix:
// as above.
status_t prepare_packed_kernels(
        const problem_t &p, const matmul_kernels_t &kernels, bool one_matrix, bool fp8 = false);

// What the sums of CTAs of gemm that share K take of the scratchpad, at most.
int64_t parts_bytes_of(const problem_t &p);
// Runs that kernel. parts: room for those sums, where it may share K.
status_t launch_packed(
        const exec_ctx_t &ctx, kernel_id_t id, const packed::launch_args_t &launch, float *parts = nullptr);

// Of the stream's kernel before: a Hopper kernel may then start, and read its weights, while that one runs.
bool writes_no_weights(kernel_id_t id);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
