// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/ref/ref_mx_matmul.hpp"

#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/ref/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t ref_mx_matmul_t::pd_t::init() { return check_post_op_count(problem.attr); }

status_t ref_mx_matmul_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_mx_matmul));
    primitive = std::make_shared<ref_mx_matmul_t>();
    return mxdnn_success;
}

status_t ref_mx_matmul_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_desc_t &dst = ctx.memory(MXDNN_ARG_DST)->md;
    ref_matmul_args_t a {};
    a.src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    a.wei = matrix_args(ctx, MXDNN_ARG_WEIGHTS, p.weights, p.attr.weights);
    a.dst = matrix_args(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst);
    if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) a.bias = plain_args(*bias);
    a.M = dim_from_end(dst, 2);
    a.K = dim_from_end(p.weights, 2);
    a.N = dim_from_end(p.weights, 1);
    a.columns = dim_from_end(dst, 1);
    a.rows = 1;
    for (int i = 0; i < dst.ndims; i++) {
        a.dims[i] = dst.dims[i];
        if (i < dst.ndims - 1) a.rows *= dst.dims[i];
    }
    a.dynamic = p.attr.dst.is_dynamic();
    a.rounding = p.attr.dst.rounding;
    a.dynamic_global = p.attr.dst.global == mxdnn_quantization_mode_dynamic_fp;
    if (a.dynamic_global) a.globals = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST)->md.dims[0];
    a.post_ops = post_op_args(ctx, a.ops);
    if (a.rows == 0 || a.columns == 0) return mxdnn_success;
    return launch_kernel(ctx, kernel_id_t::ref_mx_matmul, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
