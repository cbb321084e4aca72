// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/make_tensor_args.hpp"

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"
#include "common/grouped_exec.hpp"
#include "common/problem_reorder.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

plain_args_t plain_args(const memory_t &m, mxdnn_element_packing_t packing) {
    plain_args_t a{};
    const int bits = storage_bits(data_type_info(m.md.dt)->bits, packing);
    a.data = static_cast<uint8_t *>(m.handle);
    a.ndims = m.md.ndims;
    a.inner = bits % 8 ? inner_dim(m.md) : -1;
    a.bits = data_type_info(m.md.dt)->bits;
    a.dt = m.md.dt;
    a.packing = packing;
    for (int i = 0; i < a.ndims; i++)
        a.step[i] = i == a.inner || m.md.dims[i] == 1 ? 0 : stride_bytes(m.md, i, bits);
    return a;
}

matrix_args_t matrix_args(
        const exec_ctx_t &ctx, int arg, const memory_desc_t &pd_md, const arg_attr_t &attr) {
    const memory_t *given = ctx.memory(arg); // packed weights may be given by pointers instead
    const memory_desc_t &md = given ? given->md : pd_md;
    matrix_args_t a{};
    a.dt = pd_md.dt;
    a.ndims = md.ndims;
    a.axis_from_end = 1;
    int64_t step = 1;
    for (int i = a.ndims - 3; i >= 0; i--) {
        a.batch_step[i] = md.dims[i] == 1 ? 0 : step;
        step *= md.dims[i];
    }
    if (is_packed(pd_md)) {
        a.quantised = a.packed = true;
        a.quant = pd_md.packed.quant;
        a.axis_from_end = 2;
        a.layout_id = pd_md.packed.layout_id;
        a.shape = shape_of(pd_md);
        a.packed_data = given ? static_cast<uint8_t *>(given->handle) : nullptr;
        a.packed_stride = pd_md.packed.stride;
        return a;
    }
    a.elements = plain_args(*given, attr.packing);
    if (!attr.scales.set || has_role(pd_md.dt, role_high_precision)) return a; // codes are made in execute
    a.quantised = true;
    quant_of("", md, attr, a.quant, &a.axis_from_end); // accepted when the descriptor was created
    a.scales = plain_args(*ctx.memory(MXDNN_ARG_ATTR_SCALES | arg));
    a.swizzled = attr.layout == mxdnn_scales_swizzle_128x4;
    a.swizzle_cols = div_up(dim_from_end(md, a.axis_from_end), a.quant.block);
    if (a.quant.zp != zero_point_kind_t::none)
        a.zero_points = plain_args(*ctx.memory(MXDNN_ARG_ATTR_ZERO_POINTS | arg));
    if (a.quant.global != global_scale_kind_t::none) {
        const memory_t &g = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg);
        a.global = static_cast<float *>(g.handle);
        a.one_global = g.md.dims[0] == 1;
    }
    return a;
}

namespace {

// Writes the post-ops with their operands. Returns how many.
int post_op_args(const exec_ctx_t &ctx, post_op_args_t *ops) {
    int n = 0;
    for (const post_op_t &o : ctx.pd.problem.attr.post_ops.ops) {
        post_op_args_t a{};
        a.kind = o.kind;
        a.alg = o.alg;
        a.alpha = o.alpha;
        a.beta = o.beta;
        a.scale = o.scale;
        a.zero_point = o.zero_point;
        a.dt = o.dt == mxdnn_data_type_undef ? ctx.pd.problem.dst.dt : o.dt;
        a.halves = o.gated_layout == mxdnn_gated_halves;
        if (o.kind == mxdnn_binary)
            a.src1 = plain_args(*ctx.memory(MXDNN_ARG_ATTR_MULTIPLE_POST_OP(n) | MXDNN_ARG_SRC_1));
        ops[n++] = a;
    }
    return n;
}

} // namespace

void make_matmul_args(const exec_ctx_t &ctx, matmul_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    const memory_desc_t &dst = ctx.memory(MXDNN_ARG_DST)->md;
    a = {};
    a.src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    a.wei = matrix_args(ctx, MXDNN_ARG_WEIGHTS, p.weights, p.attr.weights);
    a.dst = matrix_args(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst);
    if (const memory_t *bias = ctx.memory(MXDNN_ARG_BIAS)) a.bias = plain_args(*bias);
    a.M = dim_from_end(dst, 2);
    a.K = dim_from_end(p.weights, 2);
    a.N = dim_from_end(p.weights, 1);
    a.columns = dim_from_end(dst, 1);
    a.rows = 1;
    for (int i = 0; i < dst.ndims; i++) {
        a.dims[i] = dst.dims[i];
        if (i < dst.ndims - 1) a.rows *= dst.dims[i];
    }
    a.recipe = source_recipe(p);
    a.dynamic = p.attr.dst.is_dynamic();
    a.rounding = p.attr.dst.rounding;
    a.dynamic_global = p.attr.dst.global == mxdnn_quantization_mode_dynamic_fp;
    if (a.dynamic_global) a.globals = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST)->md.dims[0];
    a.post_ops = post_op_args(ctx, a.ops);
}

void make_grouped_args(const exec_ctx_t &ctx, grouped_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    make_matmul_args(ctx, a.m);
    const grouped_exec_t x(ctx);
    const memory_desc_t &src = ctx.memory(MXDNN_ARG_SRC)->md, &dst = ctx.memory(MXDNN_ARG_DST)->md;
    a.groups = x.groups;
    a.src_rows = x.src_rows;
    a.dst_rows = x.dst_rows;
    a.src_group_rows = src.ndims == 3 ? src.dims[1] : 0;
    a.dst_group_rows = dst.ndims == 3 ? dst.dims[1] : 0;
    a.gather = x.gather;
    a.scatter = x.scatter;
    a.topk = x.topk;
    a.topk_dt = x.topk_dt;
    a.topk_on_input = p.attr.topk_weights_placement == mxdnn_topk_weights_on_input;
    a.expert_alpha = x.expert_alpha;
    a.activation_params = x.activation_params;
    a.activation_stride = x.activation_stride;
    a.weights_ptrs = x.weights_ptrs;
    a.src_swizzled_by_group = a.m.src.swizzled && src.ndims == 2 && swizzled_by_group(x, true);
    a.dst_swizzled_by_group = a.m.dst.swizzled && dst.ndims == 2 && swizzled_by_group(x, false);
    // A sum is the last post-op. It is applied to the sums of rows.
    a.has_old = a.m.post_ops > 0 && a.m.ops[a.m.post_ops - 1].kind == mxdnn_sum;
    if (!a.has_old) return;
    const post_op_args_t &o = a.m.ops[--a.m.post_ops];
    a.old_scale = o.scale;
    a.old_zero_point = o.zero_point;
    a.old_dt = o.dt;
}

void make_reorder_args(const exec_ctx_t &ctx, reorder_args_t &a) {
    const problem_t &p = ctx.pd.problem;
    const memory_t &dst = *ctx.memory(MXDNN_ARG_DST);
    a = {};
    a.src = matrix_args(ctx, MXDNN_ARG_SRC, p.src, p.attr.src);
    a.dst = matrix_args(ctx, MXDNN_ARG_DST, p.dst, p.attr.dst);
    a.rows = dim_from_end(dst.md, 2);
    a.cols = dim_from_end(dst.md, 1);
    a.batch = batch_of(dst.md);
    for (int i = 0; i < dst.md.ndims; i++) a.dims[i] = dst.md.dims[i];
    a.moves = moves_codes(p);
    a.dynamic = p.attr.dst.is_dynamic();
    a.rounding = p.attr.dst.rounding;
    if (p.attr.dst.global == mxdnn_quantization_mode_static_sazp) {
        const memory_t *given = ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | MXDNN_ARG_DST);
        a.given = given ? static_cast<const float *>(given->handle) : nullptr;
        a.one_given = given && given->md.dims[0] == 1;
    }
    // Padding of a packed or swizzled destination is zero, so that its bytes are defined.
    if (is_packed(p.dst)) {
        a.clear[0] = static_cast<uint8_t *>(dst.handle);
        a.clear_bytes[0] = size_of(p.dst);
    }
    if (p.attr.dst.layout == mxdnn_scales_swizzle_128x4 && p.attr.dst.is_dynamic()) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        a.clear[1] = static_cast<uint8_t *>(scales.handle);
        a.clear_bytes[1] = size_of(scales.md);
    }
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
