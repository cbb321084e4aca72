// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/groups_mx_reorder.hpp"

#include "common/grouped_mx_reorder.hpp"
#include "common/two_mx_reorders.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/ref/ref_grouped_mx_reorder.hpp"
#include "gpu/cuda/interface/quantise_groups_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int64_t block = 32, row_step = 16; // columns: so that rows begin at multiples of 16 bytes
constexpr int destinations[] = {MXDNN_ARG_DST, MXDNN_ARG_DST_1};

int count_of(const problem_t &p) { return is_zero(p.dst_1) ? 1 : 2; }
const memory_desc_t &md_of(const problem_t &p, int i) { return i ? p.dst_1 : p.dst; }

reason_t check_destination(const problem_t &p, int i) {
    const memory_desc_t &md = md_of(p, i);
    const arg_attr_t &a = *p.attr.arg(destinations[i]);
    const group_scales_t scales = group_scales(md, a);
    if (!has_role(md.dt, role_mx_element) || data_type_info(md.dt)->bits == 4 || scales.block != block
            || a.scales.dt != mxdnn_e8m0)
        return no("dst", to_string(md).c_str(), "MX with codes of a byte");
    if (a.packing == mxdnn_element_packing_dense) return no("dst", "dense 6-bit codes", "codes of a byte");
    if (!a.is_dynamic()) return no("scales of dst", "given ones", "computed ones");
    return yes();
}

quantised_groups_t side_of(const exec_ctx_t &ctx, int arg) {
    const arg_attr_t &attr = *ctx.pd.problem.attr.arg(arg);
    const memory_t &m = *ctx.memory(arg), &s = *ctx.memory(MXDNN_ARG_ATTR_SCALES | arg);
    quantised_groups_t d{};
    d.codes = static_cast<uint8_t *>(m.handle);
    d.scales = static_cast<uint8_t *>(s.handle);
    d.swizzled = attr.layout == mxdnn_scales_swizzle_128x4;
    d.scale_row_step = s.md.strides[0];
    d.scale_col_step = s.md.strides[1];
    d.limit = s.md.dims[d.swizzled ? 1 : 0];
    d.rounding = attr.rounding;
    return d;
}

bool is_aligned_16(const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

} // namespace

reason_t groups_mx_reorder_t::pd_t::init() {
    if (!is_grouped_reorder(problem)) return no("rows", "of one matrix", "in groups");
    if (!problem.engine->device || problem.src_engine->device != problem.engine->device)
        return no("engines of src and dst", "different ones", "one device");
    if (problem.src.dt != mxdnn_bf16 && problem.src.dt != mxdnn_f16)
        return no("src", data_type_name(problem.src.dt), "bf16 or f16");
    if (problem.src.dims[1] % row_step)
        return no("columns", std::to_string(problem.src.dims[1]).c_str(), "a multiple of 16");
    const int count = count_of(problem);
    for (int i = 0; i < count; i++) {
        if (const reason_t r = check_destination(problem, i); !r.ok()) return r;
        const problem_t one = reorder_to(problem, i == 1);
        const reason_t r = impl_item<ref_grouped_mx_reorder_t>().create(each[i], one);
        if (!r.ok()) return r;
        primitive_kind(one.kind)->list_args(*each[i]);
    }
    if (count == 1) return yes();
    if (problem.dst.dt != problem.dst_1.dt) return no("dst_1", "another type", "dst's");
    if (group_scales(problem.dst, problem.attr.dst).of_rows
            == group_scales(problem.dst_1, problem.attr.dst_1).of_rows)
        return no("blocks of dst and dst_1", "along one dim", "along two");
    return yes();
}

status_t groups_mx_reorder_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    auto made = std::make_shared<groups_mx_reorder_t>();
    quantise_groups_args_t a{};
    a.src_dt = problem.src.dt;
    a.dst_dt = problem.dst.dt;
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::quantise_groups, a));
    for (int i = 0; i < count_of(problem); i++) MXDNN_CHECK(each[i]->create_primitive(made->each[i]));
    primitive = std::move(made);
    return mxdnn_success;
}

status_t groups_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    const pd_t &pd = static_cast<const pd_t &>(ctx.pd);
    const problem_t &p = pd.problem;
    const memory_t &src = *ctx.memory(MXDNN_ARG_SRC);
    quantise_groups_args_t a{};
    a.src_dt = p.src.dt;
    a.dst_dt = p.dst.dt;
    a.src = static_cast<const uint8_t *>(src.handle);
    a.columns = src.md.dims[1];
    a.groups = groups_of_reorder(ctx);
    bool aligned = is_aligned_16(a.src);
    for (int i = 0; i < count_of(p); i++) {
        const bool of_rows = group_scales(md_of(p, i), *p.attr.arg(destinations[i])).of_rows;
        quantised_groups_t &d = of_rows ? a.along_rows : a.along_columns;
        d = side_of(ctx, destinations[i]);
        aligned = aligned && is_aligned_16(d.codes);
    }
    if (a.columns == 0 || a.groups.rows == 0 || a.groups.groups == 0) return mxdnn_success;
    const int64_t ctas = most_group_squares(a.groups) * div_up(a.columns, int64_t(group_square));
    if (aligned && ctas <= INT32_MAX) return launch_kernel(ctx, kernel_id_t::quantise_groups, a);
    for (int i = 0; i < count_of(p); i++)
        MXDNN_CHECK(each[i]->execute(one_reorder_t(ctx, i == 1, *pd.each[i]).ctx(ctx.record)));
    return mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
