// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/ref/ref_grouped_mx_reorder.hpp"

#include "common/grouped_mx_reorder.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"
#include "gpu/cuda/impl/ref/ref_mx_reorder.hpp"
#include "gpu/cuda/interface/quantise_groups_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t ref_grouped_mx_reorder_t::pd_t::init() {
    if (!is_grouped_reorder(problem)) return no("rows", "of one matrix", "in groups");
    return impl_item<ref_mx_reorder_t>().create(one, reorder_of_group(problem));
}

status_t ref_grouped_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    grouped_reorder_args_t a{};
    memory_t rows[2];
    mxdnn_exec_arg_t args[4];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        const int arg = i ? MXDNN_ARG_DST : MXDNN_ARG_SRC;
        const memory_t &m = *ctx.memory(arg);
        (void)init_strided(rows[i].md, 2, m.md.dims, m.md.dt, nullptr);
        rows[i].engine = m.engine;
        rows[i].handle = m.handle;
        args[n++] = {arg, &rows[i]};
        a.scales[i] = group_scales(m.md, *p.attr.arg(arg));
        const memory_t *scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | arg);
        if (!scales) continue;
        args[n++] = {MXDNN_ARG_ATTR_SCALES | arg, const_cast<memory_t *>(scales)};
        a.limits[i] = scales->md.dims[a.scales[i].swizzled ? 1 : 0];
    }
    a.groups = groups_of_reorder(ctx);
    exec_ctx_t of_one = ctx.nested(*static_cast<const pd_t &>(ctx.pd).one);
    of_one.args = args;
    of_one.nargs = n;
    make_reorder_args(of_one, a.all);
    if (a.all.rows * a.all.cols == 0 || a.groups.groups == 0) return mxdnn_success;
    return launch_kernel(ctx, kernel_id_t::ref_grouped_mx_reorder, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
