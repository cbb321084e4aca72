// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/ref/ref_moe.hpp"

#include <algorithm>

#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_moe_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// The number of choices that are stored, or of entries of the destination whose sources are looked up,
// together.
constexpr int64_t part_entries = 1 << 16;

} // namespace

reason_t ref_moe_route_t::pd_t::init() {
    const int64_t E = problem.src.dims[1];
    slices = std::min<int64_t>(std::max<int64_t>((8 << 20) / (8 * E), 32), 4096);
    part = std::max<int64_t>(part_entries / problem.route.topk, 1);
    for (const scratch_t of_slices : {scratch_t::scores, scratch_t::keys})
        scratch.book(of_slices, 4 * E * slices);
    scratch.book(scratch_t::positions, 4 * E);
    for (const scratch_t of_choices : {scratch_t::ids, scratch_t::row_weights})
        scratch.book(of_choices, 4 * part * problem.route.topk);
    return yes();
}

status_t ref_moe_route_t::execute(const exec_ctx_t &ctx) const {
    route_args_t a = make_route_args(ctx);
    a.slices = static_cast<const pd_t &>(ctx.pd).slices;
    a.score = ctx.scratch<float>(scratch_t::scores);
    a.key = ctx.scratch<int32_t>(scratch_t::keys);
    a.position = ctx.scratch<int32_t>(scratch_t::positions);
    a.part = static_cast<const pd_t &>(ctx.pd).part;
    a.part_ids = ctx.scratch<int32_t>(scratch_t::ids);
    a.part_weights = ctx.scratch<float>(scratch_t::row_weights);
    return launch_kernel(ctx, kernel_id_t::ref_moe_route, a);
}

reason_t ref_moe_permute_t::pd_t::init() {
    const permute_desc_t &d = problem.permute;
    scratch.book(scratch_t::first_rows, 4 * d.source_ranks * d.local_experts);
    scratch.book(scratch_t::group_starts, 4 * (d.local_experts + 1));
    return yes();
}

status_t ref_moe_permute_t::execute(const exec_ctx_t &ctx) const {
    permute_args_t a = make_permute_args(ctx);
    a.from = ctx.scratch<int32_t>(scratch_t::first_rows);
    a.start = ctx.scratch<int32_t>(scratch_t::group_starts);
    return launch_kernel(ctx, kernel_id_t::ref_moe_permute, a);
}

reason_t ref_moe_unpermute_t::pd_t::init() {
    scratch.book(scratch_t::inverse, 4 * part_entries);
    return yes();
}

status_t ref_moe_unpermute_t::execute(const exec_ctx_t &ctx) const {
    permute_args_t a = make_unpermute_args(ctx);
    a.inverse = ctx.scratch<int32_t>(scratch_t::inverse);
    a.part_tokens = part_entries / a.k;
    return launch_kernel(ctx, kernel_id_t::ref_moe_unpermute, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
