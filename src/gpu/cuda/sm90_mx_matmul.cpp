// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/sm90_mx_matmul.hpp"

#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/ref/ref_mx_matmul.hpp"
#include "gpu/cuda/sm90_problem.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t sm90_mx_matmul_t::pd_t::init() {
    const reason_t r = check_sm90_problem(problem);
    if (!r.ok()) return r;
    const memory_desc_t &wei = problem.weights, &bias = problem.bias;
    if (wei.ndims != 2) return no("weights", "a batch", "one matrix");
    if (bias.ndims > 1 && dim_from_end(bias, 2) != 1) return no("bias", "one of every row", "one row");
    return check_sm90_post_ops(problem, false);
}

std::string sm90_mx_matmul_t::pd_t::plan_text() const {
    std::string text;
    for (int64_t rows : {1, 16, 64, 256, 4096})
        text += (text.empty() ? "M=" : " M=") + std::to_string(rows) + ":"
                + to_string(plan_sm90(problem, rows, 1));
    return text;
}

status_t sm90_mx_matmul_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &wei = *ctx.memory(MXDNN_ARG_WEIGHTS);
    const memory_t &dst = *ctx.memory(MXDNN_ARG_DST);
    // Where a caller's rows start is known only now.
    if (reinterpret_cast<uintptr_t>(src.handle) % sm90_copy_bytes) return ref_mx_matmul_t().execute(ctx);
    sm90::launch_args_t launch;
    sm90::matmul_args_t &a = launch.matmul;
    a.weights = wei.handle;
    a.src = src.handle;
    a.src_stride = src.md.strides[0];
    a.dst = dst.handle;
    a.dst_stride = dst.md.strides[0];
    a.dst_type = sm90_value_type(dst.md.dt);
    const int64_t M = dim_from_end(dst.md, 2);
    if (M > INT32_MAX / 2) return ref_mx_matmul_t().execute(ctx);
    a.M = int32_t(M);
    set_sm90_args(p, launch);
    if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) {
        a.bias = bias->handle;
        a.bias_type = sm90_value_type(bias->md.dt);
    }
    if (a.M == 0 || a.N == 0) return mxdnn_success;
    const sm90::matmul_plan_t plan = plan_sm90(p, a.M, 1);
    a.splits = plan.splits;
    launch.variant = plan.variant;
    launch.grid = plan.grid;
    const kernel_id_t before = ctx.stream.cuda->last_kernel();
    launch.early = before == kernel_id_t::sm90_few_rows || before == kernel_id_t::sm90_many_rows;
    return launch_kernel(ctx,
            plan.kernel == sm90::kernel_t::few_rows ? kernel_id_t::sm90_few_rows
                                                    : kernel_id_t::sm90_many_rows,
            launch);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
