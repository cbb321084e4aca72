// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/make_moe_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

permute_args_t make_rows_args(const exec_ctx_t &ctx) {
    const problem_t &p = ctx.pd.problem;
    permute_args_t a{};
    a.src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    a.dst = matrix_args(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst);
    a.src_rows = ctx.memory(MXDNN_ARG_SRC)->md.dims[0];
    a.dst_rows = ctx.memory(MXDNN_ARG_DST)->md.dims[0];
    a.columns = ctx.memory(MXDNN_ARG_DST)->md.dims[1];
    a.idx = ctx.data<int32_t>(MXDNN_ARG_PERMUTED_IDX);
    return a;
}

} // namespace

route_args_t make_route_args(const exec_ctx_t &ctx) {
    const problem_t &p = ctx.pd.problem;
    const memory_t &logits = *ctx.memory(MXDNN_ARG_SRC);
    route_args_t a{};
    a.logits = plain_args(logits);
    a.T = logits.md.dims[0];
    a.E = logits.md.dims[1];
    a.topk = p.route.topk;
    a.expert_groups = p.route.expert_groups;
    a.topk_groups = p.route.topk_groups;
    a.scoring = p.route.scoring;
    a.renormalizes = p.route.renormalizes();
    a.group_max = p.route.flags & mxdnn_route_group_max;
    a.starts = p.attr.row_grouping == mxdnn_row_grouping_starts;
    a.bias = ctx.data<const float>(MXDNN_ARG_ROUTE_BIAS);
    a.factor = p.attr.post_ops.ops.empty() ? 1.f : p.attr.post_ops.ops[0].alpha;
    a.ids = ctx.data<int32_t>(MXDNN_ARG_TOPK_IDS);
    a.weights = ctx.data<float>(MXDNN_ARG_TOPK_WEIGHTS);
    a.counts = ctx.data<int32_t>(MXDNN_ARG_GROUP_COUNTS);
    a.offsets = ctx.data<int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    a.order = ctx.data<int32_t>(MXDNN_ARG_ROW_ORDER);
    a.tokens = ctx.data<int32_t>(MXDNN_ARG_GATHER_IDX);
    a.row_weights = ctx.data<float>(MXDNN_ARG_ROW_WEIGHTS);
    return a;
}

permute_args_t make_permute_args(const exec_ctx_t &ctx) {
    const problem_t &p = ctx.pd.problem;
    permute_args_t a = make_rows_args(ctx);
    a.ranks = p.permute.source_ranks;
    a.experts = p.permute.local_experts;
    a.alignment = p.permute.alignment;
    a.counts = ctx.data<const int32_t>(MXDNN_ARG_GROUP_COUNTS);
    a.offsets = ctx.data<int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    a.starts = p.attr.row_grouping == mxdnn_row_grouping_starts;
    return a;
}

permute_args_t make_unpermute_args(const exec_ctx_t &ctx) {
    permute_args_t a = make_rows_args(ctx);
    a.k = 1;
    if (const memory_t *weights = ctx.memory(MXDNN_ARG_TOPK_WEIGHTS)) {
        a.k = weights->md.dims[1];
        a.weights = weights->handle;
        a.weights_dt = weights->md.dt;
    }
    return a;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
