// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/make_gradient_args.hpp"

#include "common/backward_weights_exec.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

gradient_operand_t operand_args(const grouped_operand_t &o) {
    const memory_desc_t &md = *o.md;
    const int nd = md.ndims;
    const int64_t bytes = data_type_info(md.dt)->bits / 8;
    gradient_operand_t a{};
    a.data = o.data;
    a.dt = md.dt;
    a.columns = o.columns();
    a.group_rows = nd == 3 ? md.dims[1] : 0;
    a.group_step = nd == 3 ? md.strides[0] * bytes : 0;
    a.row_step = md.strides[nd - 2] * bytes;
    a.column_step = md.strides[nd - 1] * bytes;
    a.block = o.block;
    if (!o.scales) return a;
    const memory_desc_t &s = o.scales->md;
    a.scales = static_cast<const uint8_t *>(o.scales->handle);
    a.scales_rows = s.dims[s.ndims - 2];
    a.scales_group_step = s.ndims == 3 ? s.strides[0] : 0;
    a.scales_row_step = s.strides[s.ndims - 2];
    a.scales_column_step = s.strides[s.ndims - 1];
    return a;
}

} // namespace

gradient_args_t make_gradient_args(const exec_ctx_t &ctx) {
    const problem_t &p = ctx.pd.problem;
    const backward_weights_exec_t x(ctx);
    const memory_t &to = *ctx.memory(MXDNN_ARG_DIFF_WEIGHTS);
    const int64_t bytes = data_type_info(to.md.dt)->bits / 8;
    gradient_args_t a{};
    a.groups = x.groups;
    a.src = operand_args(x.src);
    a.diff_dst = operand_args(x.diff_dst);
    a.to.data = static_cast<uint8_t *>(to.handle);
    a.to.dt = a.to.old_dt = to.md.dt;
    a.to.group_step = to.md.strides[0] * bytes;
    a.to.row_step = to.md.strides[1] * bytes;
    a.to.column_step = to.md.strides[2] * bytes;
    if (p.attr.post_ops.ops.empty()) return a;
    const post_op_t &sum = p.attr.post_ops.ops[0];
    a.to.has_old = true;
    a.to.old_scale = sum.scale;
    a.to.old_zero_point = sum.zero_point;
    if (sum.dt != mxdnn_data_type_undef) a.to.old_dt = sum.dt;
    return a;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
