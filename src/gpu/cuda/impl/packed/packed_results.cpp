// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/packed/packed_results.hpp"

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"
#include "gpu/cuda/impl/packed/packed_problem.hpp"
#include "gpu/cuda/impl/packed/packed_source.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t check_results(const problem_t &p) {
    const memory_desc_t &dst = p.dst;
    const int nd = dst.ndims;
    if (!is_strided(dst) && dst.kind != mxdnn_format_kind_grouped)
        return no("dst", "packed", "rows of neighbours at a known distance");
    if ((dst.strides[nd - 1] != 1 && dst.dims[nd - 1] != 1) || dst.strides[nd - 2] == runtime_dim)
        return no("dst", "columns apart, or rows at a distance known only at execution",
                "rows of neighbours at a known distance");
    if (data_type_info(dst.dt)->bits < 8 && inner_dim(dst) != nd - 1)
        return no("dst", "codes that share bytes along M", "along N");
    return check_post_op_count(p.attr);
}

bool makes_result_codes(const problem_t &p) { return !has_role(p.dst.dt, role_high_precision); }

bool finishes_apart(const problem_t &p) { return makes_result_codes(p) || !applies_post_ops(p); }

status_t prepare_results(const problem_t &p) {
    if (!finishes_apart(p)) return mxdnn_success;
    finish_results_args_t a{};
    a.applies = !applies_post_ops(p);
    a.to_dst = !makes_result_codes(p);
    quant_t q;
    int axis = 0;
    if (!a.to_dst) MXDNN_CHECK(quant_of("dst", p.dst, p.attr.dst, q, &axis));
    a.quick.dt = p.dst.dt;
    a.quick.block = int32_t(q.block);
    return prepare_kernel(p, kernel_id_t::quantise_results, a);
}

int64_t results_stride(const problem_t &p) {
    // Before a later gate, both halves still exist.
    return round_up(dim_from_end(applies_post_ops(p) ? p.dst : p.weights, 1), 8);
}

int64_t results_at_once(const problem_t &p) {
    return rows_with_room(p, results_stride(p) * int64_t(sizeof(float)));
}

int64_t results_bytes(const problem_t &p) {
    if (!finishes_apart(p)) return 0;
    return results_at_once(p) * results_stride(p) * int64_t(sizeof(float));
}

finisher_t::finisher_t(const exec_ctx_t &ctx, bool listed, bool applied)
    : ctx_(ctx), p_(ctx.pd.problem), codes_(makes_result_codes(p_)), quick_(quantises_quickly()),
      applied_(applied || applies_post_ops(p_)) {
    args_.grouped = p_.kind == mxdnn_primitive_kind_grouped_matmul;
    args_.listed = listed;
    args_.stride = results_stride(p_);
    args_.to_dst = !codes_;
    if (args_.grouped)
        make_grouped_args(ctx, args_.all);
    else
        make_matmul_args(ctx, args_.all.m);
}

// The destinations that quantise_results writes.
bool finisher_t::quantises_quickly() const {
    if (!codes_) return false;
    const arg_attr_t &a = p_.attr.dst;
    quant_t q;
    int axis = 0;
    quant_of("dst", p_.dst, a, q, &axis);
    const quant_family_t family = quant_family(p_.dst.dt, q);
    if ((family != quant_family_t::mx && family != quant_family_t::nvfp4) || !a.is_dynamic()
            || a.layout != mxdnn_scales_linear || a.packing == mxdnn_element_packing_dense)
        return false;
    const memory_t *global = ctx_.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
    return even_row_stride(ctx_.memory(MXDNN_ARG_DST)->md) >= 0
           && even_row_stride(ctx_.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST)->md) >= 0
           && (!global || global->md.dims[0] == 1);
}

status_t finisher_t::launch(finish_step_t step) {
    args_.step = step;
    return launch_kernel(ctx_, kernel_id_t::quantise_results, args_);
}

status_t finisher_t::finish(sweep_t sweep, void *values, int64_t first, int64_t count, bool kept) {
    if (count == 0) return mxdnn_success;
    args_.values = static_cast<float *>(values);
    args_.first = first;
    args_.rows = count;
    args_.applies = !applied_;
    args_.finds_largest = sweep == sweep_t::looks;
    if (!kept && (args_.applies || args_.finds_largest)) MXDNN_CHECK(launch(finish_step_t::apply_ops));
    if (!codes_ || sweep == sweep_t::looks) return mxdnn_success;
    return quick_ ? quantise() : launch(finish_step_t::store_codes);
}

status_t finisher_t::quantise() {
    const memory_t &dst = *ctx_.memory(MXDNN_ARG_DST),
                   &scales = *ctx_.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
    const matrix_args_t &m = args_.all.m.dst;
    packed::quantise_results_args_t &a = args_.quick;
    a.values = args_.values;
    a.stride = args_.stride;
    a.first = args_.first;
    a.rows = args_.rows;
    a.columns = args_.all.m.columns;
    a.codes = m.elements.data;
    a.row_bytes = row_byte_step(dst, storage_bits(m.elements.bits, m.elements.packing));
    a.scales = m.scales.data;
    a.scale_row_step = row_byte_step(scales, m.scales.bits);
    a.scale_col_step = m.scales.step[m.scales.ndims - 1];
    a.global = m.global;
    a.dt = p_.dst.dt;
    a.block = int32_t(m.quant.block);
    a.rounding = p_.attr.dst.rounding;
    if (args_.listed) {
        a.listed = true;
        a.groups = args_.all.groups;
    }
    return launch(finish_step_t::quantise);
}

bool applies_post_ops_before_sums(const problem_t &p) {
    const auto &ops = p.attr.post_ops.ops;
    for (size_t i = 0; i < ops.size(); i++) {
        const post_op_t &o = ops[i];
        const bool sums = o.kind == mxdnn_sum && i + 1 == ops.size() && !o.zero_point
                          && (o.dt == mxdnn_data_type_undef || o.dt == p.dst.dt);
        if (o.kind != mxdnn_eltwise && !sums) return false;
    }
    return true;
}

status_t apply_post_ops_before_sums(
        const exec_ctx_t &ctx, const grouped_exec_t &x, float *rows, int64_t stride, int64_t columns) {
    finish_results_args_t a{};
    make_grouped_args(ctx, a.all);
    a.all.groups = x.groups;
    a.all.topk = x.topk;
    a.all.topk_dt = x.topk_dt;
    a.all.has_old = false;
    a.all.m.columns = columns;
    a.grouped = a.listed = a.applies = true;
    a.values = rows;
    a.stride = stride;
    a.rows = x.groups.rows;
    return launch_kernel(ctx, kernel_id_t::quantise_results, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
