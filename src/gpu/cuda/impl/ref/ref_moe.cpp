// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/ref/ref_moe.hpp"

#include <algorithm>

#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_moe_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Choices that are kept, or entries of the destination whose sources are looked up, together.
constexpr int64_t part_entries = 1 << 16;

} // namespace

reason_t ref_moe_route_t::pd_t::init() {
    const int64_t E = problem.src.dims[1];
    slices = std::min<int64_t>(std::max<int64_t>((8 << 20) / (8 * E), 32), 4096);
    part = std::max<int64_t>(part_entries / problem.route.topk, 1);
    scratchpad_bytes = round_up(4 * (E * (2 * slices + 1) + 2 * part * problem.route.topk), 256);
    return yes();
}

status_t ref_moe_route_t::execute(const exec_ctx_t &ctx) const {
    route_args_t a = make_route_args(ctx);
    a.slices = static_cast<const pd_t &>(ctx.pd).slices;
    a.score = reinterpret_cast<float *>(ctx.scratchpad);
    a.key = reinterpret_cast<int32_t *>(a.score + a.E * a.slices);
    a.position = a.key + a.E * a.slices;
    a.part = static_cast<const pd_t &>(ctx.pd).part;
    a.part_ids = a.position + a.E;
    a.part_weights = reinterpret_cast<float *>(a.part_ids + a.part * a.topk);
    return launch_kernel(ctx, kernel_id_t::ref_moe_route, a);
}

reason_t ref_moe_permute_t::pd_t::init() {
    const permute_desc_t &d = problem.permute;
    scratchpad_bytes = round_up(4 * (d.source_ranks * d.local_experts + d.local_experts + 1), 256);
    return yes();
}

status_t ref_moe_permute_t::execute(const exec_ctx_t &ctx) const {
    permute_args_t a = make_permute_args(ctx);
    a.from = reinterpret_cast<int32_t *>(ctx.scratchpad);
    a.start = a.from + a.ranks * a.experts;
    return launch_kernel(ctx, kernel_id_t::ref_moe_permute, a);
}

reason_t ref_moe_unpermute_t::pd_t::init() {
    scratchpad_bytes = 4 * part_entries;
    return yes();
}

status_t ref_moe_unpermute_t::execute(const exec_ctx_t &ctx) const {
    permute_args_t a = make_unpermute_args(ctx);
    a.inverse = reinterpret_cast<int32_t *>(ctx.scratchpad);
    a.part_tokens = part_entries / a.k;
    return launch_kernel(ctx, kernel_id_t::ref_moe_unpermute, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
