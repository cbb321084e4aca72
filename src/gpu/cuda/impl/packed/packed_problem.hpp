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

// none: a type that the kernels neither read nor write.
packed::value_type_t value_type_of(data_type_t dt);

// Checks the weights (packed), the source, the rows of the destination and the bias. one_matrix: every column
// of the results belongs to one column of the weights.
reason_t check_packed_problem(const problem_t &p, const matmul_kernels_t &kernels, bool one_matrix);
// Checks what may be multiplied in FP8: sums, source and weights.
reason_t check_fp8_problem(const problem_t &p);
// Whether weights are in the layout that only kernels of FP8 read, n64_f4.
bool is_for_fp8(const memory_desc_t &wei);
reason_t check_not_for_fp8(const memory_desc_t &wei);
// Whether the weights are int4 that kernels take; and whether a set leaves many rows of them to another one.
bool is_packed_int4(const problem_t &p);
bool leaves_int4(const matmul_kernels_t &kernels, const problem_t &p);
// Whether gemm of the set takes many rows of one matrix of them nevertheless, with weights that are rounded.
bool rounds_int4(const matmul_kernels_t &kernels, const problem_t &p);
// Whether the kernels apply the post-ops: one activation and, in grouped_matmul, a sum as the last one.
// Otherwise results are finished separately (packed_results.hpp).
bool applies_post_ops(const problem_t &p);

// Sets the sizes, the form of the weights and the post-ops. The caller sets the rest.
void set_packed_args(const problem_t &p, packed::launch_args_t &launch);

// The plan for so many rows in so many groups; 0: one matrix, as above. fp8: FP8 is allowed.
packed::matmul_plan_t plan_packed(
        const problem_t &p, const matmul_kernels_t &kernels, int64_t rows, int64_t groups, bool fp8 = false);

// The format for the kernels. int4_any: they read the types of scales and zeros themselves.
packed::format_t kernel_format(const problem_t &p);

// The rows of one launch, of so many.
int64_t rows_each(const problem_t &p, const matmul_kernels_t &kernels, int64_t rows, int64_t groups);

// The kernel for them. Sets variant, grid and splits of its launch.
kernel_id_t plan_packed_launch(const problem_t &p, const matmul_kernels_t &kernels, int64_t rows,
        int64_t groups, packed::launch_args_t &launch, bool fp8 = false);

// Loads the variants of these kernels for the problem's formats and types, for any number of rows.
// one_matrix: as above.
status_t prepare_packed_kernels(
        const problem_t &p, const matmul_kernels_t &kernels, bool one_matrix, bool fp8 = false);

// The largest size of the sums of gemm's parts of K in the scratchpad.
int64_t parts_bytes_of(const problem_t &p);
// Launches that kernel. parts: room for those sums, if it may share K.
status_t launch_packed(
        const exec_ctx_t &ctx, kernel_id_t id, const packed::launch_args_t &launch, float *parts = nullptr);

// Whether a Hopper kernel may start, and read its weights, while the previous kernel of the stream runs.
bool writes_no_weights(kernel_id_t id);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
