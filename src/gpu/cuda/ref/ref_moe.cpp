// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/ref/ref_moe.hpp"

#include <algorithm>

#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Entries of the destination whose sources are looked up together.
constexpr int64_t part_entries = 1 << 16;

void make_rows_args(const exec_ctx_t &ctx, rows_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    a.src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    a.dst = matrix_args(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst);
    a.src_rows = ctx.memory(MXDNN_ARG_SRC)->md.dims[0];
    a.dst_rows = ctx.memory(MXDNN_ARG_DST)->md.dims[0];
    a.columns = ctx.memory(MXDNN_ARG_DST)->md.dims[1];
    a.idx = ctx.data<int32_t>(MXDNN_ARG_PERMUTED_IDX);
}

} // namespace

reason_t ref_moe_route_t::pd_t::init() {
    const int64_t E = problem.src.dims[1];
    slices = std::min<int64_t>(std::max<int64_t>((8 << 20) / (8 * E), 32), 4096);
    scratchpad_bytes = round_up(4 * E * (2 * slices + 1), 256);
    return yes();
}

status_t ref_moe_route_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_moe_route));
    primitive = std::make_shared<ref_moe_route_t>();
    return mxdnn_success;
}

status_t ref_moe_route_t::execute(const exec_ctx_t &ctx) const {
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
    a.slices = static_cast<const pd_t &>(ctx.pd).slices;
    a.score = reinterpret_cast<float *>(ctx.scratchpad);
    a.key = reinterpret_cast<int32_t *>(a.score + a.E * a.slices);
    a.position = a.key + a.E * a.slices;
    return launch_kernel(ctx, kernel_id_t::ref_moe_route, a);
}

reason_t ref_moe_permute_t::pd_t::init() {
    const permute_desc_t &d = problem.permute;
    scratchpad_bytes = round_up(4 * (d.source_ranks * d.local_experts + d.local_experts + 1), 256);
    return yes();
}

status_t ref_moe_permute_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_moe_permute));
    primitive = std::make_shared<ref_moe_permute_t>();
    return mxdnn_success;
}

status_t ref_moe_permute_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    rows_args_t a{};
    make_rows_args(ctx, a);
    a.ranks = p.permute.source_ranks;
    a.experts = p.permute.local_experts;
    a.alignment = p.permute.alignment;
    a.counts = ctx.data<const int32_t>(MXDNN_ARG_GROUP_COUNTS);
    a.offsets = ctx.data<int32_t>(MXDNN_ARG_GROUP_OFFSETS);
    a.starts = p.attr.row_grouping == mxdnn_row_grouping_starts;
    a.from = reinterpret_cast<int32_t *>(ctx.scratchpad);
    a.start = a.from + a.ranks * a.experts;
    return launch_kernel(ctx, kernel_id_t::ref_moe_permute, a);
}

reason_t ref_moe_unpermute_t::pd_t::init() {
    scratchpad_bytes = 4 * part_entries;
    return yes();
}

status_t ref_moe_unpermute_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_moe_unpermute));
    primitive = std::make_shared<ref_moe_unpermute_t>();
    return mxdnn_success;
}

status_t ref_moe_unpermute_t::execute(const exec_ctx_t &ctx) const {
    rows_args_t a{};
    make_rows_args(ctx, a);
    a.k = 1;
    if (const memory_t *weights = ctx.memory(MXDNN_ARG_TOPK_WEIGHTS)) {
        a.k = weights->md.dims[1];
        a.weights = weights->handle;
        a.weights_dt = weights->md.dt;
    }
    a.inverse = reinterpret_cast<int32_t *>(ctx.scratchpad);
    a.part_tokens = part_entries / a.k;
    return launch_kernel(ctx, kernel_id_t::ref_moe_unpermute, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
