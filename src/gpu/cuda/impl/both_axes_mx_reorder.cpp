// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/both_axes_mx_reorder.hpp"

#include "common/formats/format_list.hpp"
#include "common/grouped_mx_reorder.hpp"
#include "common/problem_reorder.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/tiles_mx_reorder.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t both_axes_mx_reorder_t::pd_t::init() {
    if (!problem.engine->device || problem.src_engine->device != problem.engine->device)
        return no("engines of src and dst", "different ones", "one device");
    if (is_grouped_reorder(problem)) return no("rows", "in groups", "of one matrix");
    if (!has_role(problem.src.dt, role_high_precision))
        return no("src", data_type_name(problem.src.dt), "f32, bf16 or f16");
    if (problem.dst.dt != problem.dst_1.dt) return no("dst_1", "another type", "dst's");
    const reason_t each_alone = two_mx_reorders_t<false>::pd_t::init();
    if (!each_alone.ok()) return each_alone;
    int axes[2]; // in the dims of src
    for (int i = 0; i < 2; i++) {
        const problem_t &p = each[i]->problem;
        quant_t q;
        if (quant_of("dst", p.dst, p.attr.dst, q, &axes[i]) != mxdnn_success
                || quant_family(p.dst.dt, q) != quant_family_t::mx || data_type_info(p.dst.dt)->bits == 4)
            return no("dst", to_string(p.dst).c_str(), "MX with codes of a byte");
        if (i == 0 ? is_turned(problem.dst, problem.attr.dst) : is_turned(problem.dst_1, problem.attr.dst_1))
            axes[i] = 3 - axes[i];
        if (std::string(each[i]->name()) != tiles_mx_reorder_t::impl_name)
            return no("dst", each[i]->name(), tiles_mx_reorder_t::impl_name);
    }
    if (axes[0] == axes[1]) return no("blocks of dst and dst_1", "along one dim", "along two");
    return yes();
}

status_t both_axes_mx_reorder_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    both_axes_args_t a{};
    a.first.src.dt = problem.src.dt;
    a.first.dst.dt = problem.dst.dt;
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::quantise_both_axes, a));
    primitive = std::make_shared<both_axes_mx_reorder_t>();
    return mxdnn_success;
}

status_t both_axes_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    const pd_t &pd = static_cast<const pd_t &>(ctx.pd);
    both_axes_args_t a;
    for (int i = 0; i < 2; i++)
        MXDNN_CHECK(reorder_tile_args(
                one_reorder_t(ctx, i == 1, *pd.each[i]).ctx(ctx.record), i == 0 ? a.first : a.second));
    if (a.first.K * a.first.N * a.first.batch == 0) return mxdnn_success;
    return launch_kernel(ctx, kernel_id_t::quantise_both_axes, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
