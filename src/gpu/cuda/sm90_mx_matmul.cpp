// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/sm90_mx_matmul.hpp"

#include <algorithm>

#include "gpu/cuda/heuristics/sm90_matmul_plan.hpp"
#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/mma_mx_matmul.hpp"
#include "gpu/cuda/ref/ref_mx_matmul.hpp"
#include "gpu/cuda/sm90_problem.hpp"
#include "gpu/cuda/sm90_source.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// As plans count: 0 where every column of the results has one of the weights for itself.
int64_t groups_of(const problem_t &p) {
    const post_op_t *gated = p.attr.gated();
    return gated && gated->gated_layout == mxdnn_gated_halves ? 1 : 0;
}

} // namespace

reason_t sm90_mx_matmul_t::pd_t::init() {
    const reason_t r = check_sm90_problem(problem, groups_of(problem) == 0);
    if (!r.ok()) return r;
    const memory_desc_t &wei = problem.weights, &bias = problem.bias;
    if (wei.ndims != 2) return no("weights", "a batch", "one matrix");
    if (bias.ndims > 1 && dim_from_end(bias, 2) != 1) return no("bias", "one of every row", "one row");
    if (sm90_makes_rows(problem)) scratchpad_bytes = sm90_rows_bytes(problem);
    return check_sm90_post_ops(problem, false);
}

status_t sm90_mx_matmul_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    if (sm90_makes_rows(problem)) MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::sm90_source_rows));
    if (sm90_takes_few_rows(problem)) MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::mma_mx_matmul));
    return kernel_pd_t::create_primitive(primitive);
}

std::string sm90_mx_matmul_t::pd_t::plan_text() const {
    std::string text;
    for (int64_t rows : {1, 16, 64, 256, 4096})
        text += (text.empty() ? "M=" : " M=") + std::to_string(rows) + ":"
                + to_string(plan_sm90(problem, rows, groups_of(problem)));
    return text;
}

status_t sm90_mx_matmul_t::execute(const exec_ctx_t &ctx) const { return multiply_sm90(ctx, ctx.scratchpad); }

status_t multiply_sm90(const exec_ctx_t &ctx, char *space, const int32_t *wanted) {
    const problem_t &p = ctx.pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC), &wei = *ctx.memory(MXDNN_ARG_WEIGHTS);
    const memory_t &dst = *ctx.memory(MXDNN_ARG_DST);
    const int64_t M = dim_from_end(dst.md, 2);
    const bool makes_rows = sm90_makes_rows(p);
    // Where a caller's rows start is known only now.
    if ((!makes_rows && reinterpret_cast<uintptr_t>(src.handle) % sm90_copy_bytes) || M > INT32_MAX / 2)
        return ref_mx_matmul_t().execute(ctx);
    if (sm90_takes_few_rows(p) && M > sm90::dense_rows_most) return mma_mx_matmul_t().execute(ctx);
    sm90::launch_args_t launch;
    sm90::matmul_args_t &a = launch.matmul;
    a.weights = wei.handle;
    a.dst = dst.handle;
    a.dst_stride = dst.md.strides[0];
    a.dst_type = sm90_value_type(dst.md.dt);
    set_sm90_args(p, launch);
    if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) {
        a.bias = bias->handle;
        a.bias_type = sm90_value_type(bias->md.dt);
    }
    if (M == 0 || a.N == 0) return mxdnn_success;
    a.src = src.handle;
    a.src_stride = src.md.strides[0];
    const int64_t each = makes_rows ? sm90_rows_each(p, M) : M;
    for (int64_t first = 0; first < M; first += each) {
        a.row_begin = int32_t(first);
        a.M = int32_t(std::min(each, M - first));
        const kernel_id_t kernel = plan_sm90_launch(p, a.M, groups_of(p), launch);
        a.wanted = kernel == kernel_id_t::sm90_many_rows ? wanted : nullptr;
        if (makes_rows) MXDNN_CHECK(make_sm90_rows(ctx, {first, a.M}, space, a));
        launch.early = sm90_writes_no_weights(ctx.stream.cuda->last_kernel());
        MXDNN_CHECK(launch_kernel(ctx, kernel, launch));
    }
    return mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
