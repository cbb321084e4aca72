// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/sm90_grouped_backward_weights.hpp"

#include "common/formats/format_list.hpp"
#include "gpu/cuda/heuristics/gradient_plan.hpp"
#include "gpu/cuda/impl/make_gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int64_t alignment = 8, copy_bytes = 16; // elements of 16 bits, of a tensor copy
constexpr int64_t most_rows = 1 << 30, most_columns = 1 << 20;

// Whether rows of all groups are evenly spaced, and the columns of a row are neighbours.
bool has_even_rows(const memory_desc_t &md) {
    const int nd = md.ndims;
    const dim_t *s = md.strides;
    if (s[nd - 1] != 1 || s[nd - 2] < md.dims[nd - 1] || s[nd - 2] % alignment) return false;
    return nd == 2 || md.dims[0] <= 1 || s[0] == md.dims[1] * s[1];
}

int64_t rows_of(const memory_desc_t &md) {
    if (md.dims[0] == runtime_dim || md.dims[1] == runtime_dim) return runtime_dim;
    return md.ndims == 3 ? md.dims[0] * md.dims[1] : md.dims[0];
}

bool is_at(const void *p, int64_t bytes) { return reinterpret_cast<uintptr_t>(p) % uintptr_t(bytes) == 0; }

// Scales stand one group after the other, those of neighbouring columns side by side.
bool has_even_scales(const gradient_operand_t &o) {
    return o.scales_column_step == 1 && o.scales_row_step % alignment == 0 && is_at(o.scales, alignment)
           && (o.group_rows == 0 || o.scales_group_step == o.scales_rows * o.scales_row_step);
}

int64_t elements(int64_t bytes, data_type_t dt) { return bytes / (data_type_info(dt)->bits / 8); }

} // namespace

reason_t sm90_grouped_backward_weights_t::pd_t::init() {
    const problem_t &p = problem;
    const engine_t &engine = exec_engine(p);
    if (&arch_of(engine) != &sm90) return no("the device", arch_of(engine).name(), sm90.name());
    const device_t *device = device_of(engine);
    if (device && !device->table->has_kernels_of(sm90.capability))
        return no("kernels of sm_90", "none in this build", "some");
    if (p.src.dt == mxdnn_f32) return no("src", "f32", "bf16, f16 or MXFP8");
    const dim_t *dims = p.diff_weights.dims;
    if (dims[0] > max_gradient_groups) return no("groups", "more than 256", "256 at most");
    if (dims[1] > most_columns || dims[2] > most_columns)
        return no("columns", "more than 2^20", "2^20 at most");
    for (const memory_desc_t *md : {&p.src, &p.diff_dst})
        if (!has_even_rows(*md))
            return no("rows of src and diff_dst", "others", "contiguous columns, at multiples of 8 columns");
    const dim_t *strides = p.diff_weights.strides;
    if (strides[1] != 1 && strides[2] != 1)
        return no("K and N of diff_weights", "both strided", "one contiguous");
    for (const post_op_t &o : p.attr.post_ops.ops)
        if (o.zero_point != 0 || (o.dt != mxdnn_data_type_undef && o.dt != p.diff_weights.dt))
            return no("sum", "of another type or with a zero point", "of the type of diff_weights");
    if (!has_scales()) return yes();
    if (dims[1] % alignment || dims[2] % alignment) return no("columns of MXFP8", "others", "multiples of 8");
    most_rows = p.attr.max_rows_hint;
    for (const memory_desc_t *md : {&p.src, &p.diff_dst})
        if (rows_of(*md) != runtime_dim) most_rows = rows_of(*md);
    if (most_rows <= 0) return no("rows of MXFP8", "an unknown number", "a number, or max_rows_hint");
    if (most_rows > cuda::most_rows) return no("rows", "more than 2^30", "2^30 at most");
    scratch.book(scratch_t::source_rows, most_rows * dims[1] * 2);
    scratch.book(scratch_t::rows, most_rows * dims[2] * 2);
    return yes();
}

status_t sm90_grouped_backward_weights_t::pd_t::create_primitive(
        std::shared_ptr<primitive_impl_t> &primitive) const {
    for (int v = 0; v < gradient_variant_count; v++) {
        sm90_gradient_launch_t a{};
        a.variant = v;
        a.f16 = problem.src.dt == mxdnn_f16;
        MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::sm90_gradient, a));
    }
    if (has_scales()) MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::dequantise_groups));
    return kernel_pd_t::create_primitive(primitive);
}

status_t sm90_grouped_backward_weights_t::execute(const exec_ctx_t &ctx) const {
    const pd_t &pd = static_cast<const pd_t &>(ctx.pd);
    const problem_t &p = pd.problem;
    const gradient_args_t all = make_gradient_args(ctx);
    const gradient_operand_t *operands[2] = {&all.src, &all.diff_dst};
    const int64_t rows = all.groups.rows, K = p.diff_weights.dims[1], N = p.diff_weights.dims[2];
    if (p.diff_weights.dims[0] * K * N == 0) return mxdnn_success;
    bool takes = rows <= (pd.has_scales() ? pd.most_rows : cuda::most_rows);
    for (int i = 0; i < 2; i++) {
        const gradient_operand_t &o = *operands[i];
        takes = takes && is_at(o.data, pd.has_scales() ? alignment : 2 * alignment)
                && o.row_step % (pd.has_scales() ? alignment : 2 * alignment) == 0
                && (!o.scales || has_even_scales(o));
    }
    if (!takes) return launch_kernel(ctx, kernel_id_t::ref_grouped_backward_weights, all);

    struct rows_t {
        const void *data;
        int64_t stride;
    } from[2];
    for (int i = 0; i < 2; i++) from[i] = {operands[i]->data, elements(operands[i]->row_step, p.src.dt)};
    if (pd.has_scales()) {
        dequantise_groups_args_t d{};
        d.groups = all.groups;
        for (int i = 0; i < 2; i++) {
            d.from[i] = *operands[i];
            if (d.from[i].group_rows) d.from[i].scales_rows *= all.groups.groups;
            d.to[i] = ctx.scratch<uint16_t>(i == 0 ? scratch_t::source_rows : scratch_t::rows);
            d.to_stride[i] = operands[i]->columns;
            from[i] = {d.to[i], d.to_stride[i]};
        }
        MXDNN_CHECK(launch_kernel(ctx, kernel_id_t::dequantise_groups, d));
    }

    // The contiguous dim of the gradient is that of b.
    const bool swaps = p.diff_weights.strides[2] != 1;
    const int a = swaps ? 1 : 0, b = 1 - a;
    const gradient_plan_t plan =
            plan_gradient(swaps ? N : K, swaps ? K : N, p.diff_weights.dims[0], rows, sm_count_of(p));
    const int64_t bytes = data_type_info(p.diff_weights.dt)->bits / 8;
    sm90_gradient_launch_t l{};
    l.variant = plan.variant;
    l.grid = plan.grid;
    l.f16 = p.src.dt == mxdnn_f16;
    l.a = from[a].data, l.a_stride = from[a].stride;
    l.b = from[b].data, l.b_stride = from[b].stride;
    sm90_gradient_args_t &g = l.args;
    g.groups = all.groups;
    g.M = int32_t(operands[a]->columns);
    g.N = int32_t(operands[b]->columns);
    g.to = all.to.data;
    g.to_dt = all.to.dt;
    g.to_group_stride = all.to.group_step / bytes;
    g.to_row_stride = (swaps ? all.to.column_step : all.to.row_step) / bytes;
    g.has_old = all.to.has_old;
    g.old_scale = all.to.old_scale;
    g.band = plan.band;
    g.copies = !g.has_old && g.to_group_stride * bytes % copy_bytes == 0
               && g.to_row_stride * bytes % copy_bytes == 0 && is_at(g.to, copy_bytes);
    return launch_kernel(ctx, kernel_id_t::sm90_gradient, l);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
