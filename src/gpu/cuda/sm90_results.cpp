// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/sm90_results.hpp"

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/make_tensor_args.hpp"
#include "gpu/cuda/quantise_rows_args.hpp"
#include "gpu/cuda/sm90_problem.hpp"
#include "gpu/cuda/sm90_source.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t check_sm90_results(const problem_t &p) {
    const memory_desc_t &dst = p.dst;
    const int nd = dst.ndims;
    if (!is_strided(dst) && dst.kind != mxdnn_format_kind_grouped)
        return no("dst", "packed", "rows of neighbours at a known distance");
    if ((dst.strides[nd - 1] != 1 && dst.dims[nd - 1] != 1) || dst.strides[nd - 2] == runtime_dim)
        return no("dst", "columns apart, or rows at a distance known only at execution",
                "rows of neighbours at a known distance");
    if (!sm90_makes_codes(p)) return yes();
    const arg_attr_t &a = p.attr.dst;
    quant_t q;
    int axis = 0;
    quant_of("dst", dst, a, q, &axis);
    const quant_family_t family = quant_family(dst.dt, q);
    if (family != quant_family_t::mx && family != quant_family_t::nvfp4)
        return no("dst", data_type_name(dst.dt), "f32, bf16, f16, MX or NVFP4");
    if (!a.is_dynamic()) return no("scales of dst", "given ones", "computed ones");
    if (a.global == mxdnn_quantization_mode_dynamic_fp)
        return no("global scale of dst", "a computed one", "a given one");
    if (a.layout != mxdnn_scales_linear) return no("scales of dst", "in tiles of 128x4", "in order");
    if (a.packing == mxdnn_element_packing_dense) return no("dst", "dense 6-bit codes", "a byte for each");
    if (data_type_info(dst.dt)->bits < 8 && inner_dim(dst) != nd - 1)
        return no("dst", "codes that share bytes along M", "along N");
    for (const post_op_t &o : p.attr.post_ops.ops)
        if (o.kind == mxdnn_sum) return no("post-ops", "a sum onto codes", "none");
    return yes();
}

bool sm90_makes_codes(const problem_t &p) { return !has_role(p.dst.dt, role_high_precision); }

bool sm90_takes_results(const exec_ctx_t &ctx) {
    const memory_t *scales = ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST),
                   *global = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
    return sm90_row_stride(ctx.memory(MXDNN_ARG_DST)->md) >= 0
           && (!scales || sm90_row_stride(scales->md) >= 0) && (!global || global->md.dims[0] == 1);
}

int64_t sm90_results_stride(const problem_t &p) { return round_up(dim_from_end(p.dst, 1), 8); }

int64_t sm90_results_at_once(const problem_t &p) {
    return sm90_rows_with_room(p, sm90_results_stride(p) * int64_t(sizeof(float)));
}

int64_t sm90_results_bytes(const problem_t &p) {
    if (!sm90_makes_codes(p)) return 0;
    return sm90_results_at_once(p) * sm90_results_stride(p) * int64_t(sizeof(float));
}

status_t quantise_sm90_rows(
        const exec_ctx_t &ctx, const void *values, int64_t first, int64_t count, const row_groups_t *groups) {
    const problem_t &p = ctx.pd.problem;
    const memory_t &dst = *ctx.memory(MXDNN_ARG_DST),
                   &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
    const matrix_args_t m = matrix_args(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst);
    sm90::quantise_rows_args_t a;
    a.values = static_cast<const float *>(values);
    a.stride = sm90_results_stride(p);
    a.first = first;
    a.rows = count;
    a.columns = dim_from_end(dst.md, 1);
    a.codes = m.elements.data;
    a.row_bytes = sm90_row_step(dst, storage_bits(m.elements.bits, m.elements.packing));
    a.scales = m.scales.data;
    a.scale_row_step = sm90_row_step(scales, m.scales.bits);
    a.scale_col_step = m.scales.step[m.scales.ndims - 1];
    a.global = m.global;
    a.dt = p.dst.dt;
    a.block = int32_t(m.quant.block);
    a.rounding = p.attr.dst.rounding;
    if (groups) {
        a.listed = true;
        a.groups = *groups;
    }
    return count ? launch_kernel(ctx, kernel_id_t::sm90_quantise_rows, a) : mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
