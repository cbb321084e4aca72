// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/moe_primitives.hpp"

#include "common/formats/format_list.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_moe_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

// Limits by the registers and the shared memory of the kernels.
constexpr int64_t max_experts = 512, max_topk = 32, max_counts = 4096;
// Entries of the destination whose sources are looked up together.
constexpr int64_t part_entries = 1 << 20;

bool has_contiguous_rows(const memory_desc_t &md) {
    return (md.strides[1] == 1 || md.dims[1] == 1)
           && (data_type_info(md.dt)->bits >= 8 || inner_dim(md) == 1);
}

} // namespace

reason_t moe_route_t::pd_t::init() {
    const int64_t E = problem.src.dims[1];
    if (E > max_experts) return no("experts", "more than 512", "512 at most");
    if (problem.route.topk > max_topk) return no("topk", "more than 32", "32 at most");
    scratch.book(scratch_t::positions, 4 * E * sm_count_of(problem));
    return yes();
}

status_t moe_route_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    route_args_t a{};
    a.E = problem.src.dims[1];
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::moe_route, a));
    return kernel_pd_t::create_primitive(primitive);
}

status_t moe_route_t::execute(const exec_ctx_t &ctx) const {
    route_args_t a = make_route_args(ctx);
    a.position = ctx.scratch<int32_t>(scratch_t::positions);
    return launch_kernel(ctx, kernel_id_t::moe_route, a);
}

reason_t moe_permute_t::pd_t::init() {
    if (problem.permute.source_ranks * problem.permute.local_experts > max_counts)
        return no("ranks times experts", "more than 4096", "4096 at most");
    if (!has_contiguous_rows(problem.src) || !has_contiguous_rows(problem.dst))
        return no("rows", "scattered ones", "rows in consecutive bytes");
    return yes();
}

status_t moe_permute_t::execute(const exec_ctx_t &ctx) const {
    return launch_kernel(ctx, kernel_id_t::moe_permute, make_permute_args(ctx));
}

reason_t moe_unpermute_t::pd_t::init() {
    if (!has_contiguous_rows(problem.src) || !has_contiguous_rows(problem.dst))
        return no("rows", "scattered ones", "rows in consecutive bytes");
    scratch.book(scratch_t::inverse, 4 * part_entries);
    return yes();
}

status_t moe_unpermute_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    permute_args_t a{};
    a.src.dt = problem.src.dt;
    a.dst.dt = problem.dst.dt;
    a.dst.quantised = !has_role(problem.dst.dt, role_high_precision);
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::moe_unpermute, a));
    return kernel_pd_t::create_primitive(primitive);
}

status_t moe_unpermute_t::execute(const exec_ctx_t &ctx) const {
    permute_args_t a = make_unpermute_args(ctx);
    a.inverse = ctx.scratch<int32_t>(scratch_t::inverse);
    a.part_tokens = part_entries / a.k;
    return launch_kernel(ctx, kernel_id_t::moe_unpermute, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
