// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/ref/make_tensor_args.hpp"

#include "common/formats/format_list.hpp"
#include "common/formats/plain_bits.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

plain_args_t plain_args(const memory_t &m, mxdnn_element_packing_t packing) {
    plain_args_t a {};
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

matrix_args_t matrix_args(const exec_ctx_t &ctx, int arg, const memory_desc_t &pd_md, const arg_attr_t &attr) {
    const memory_t &m = *ctx.memory(arg);
    matrix_args_t a {};
    a.dt = pd_md.dt;
    a.ndims = m.md.ndims;
    a.axis_from_end = 1;
    int64_t step = 1;
    for (int i = a.ndims - 3; i >= 0; i--) {
        a.batch_step[i] = m.md.dims[i] == 1 ? 0 : step;
        step *= m.md.dims[i];
    }
    if (is_packed(pd_md)) {
        a.quantised = a.packed = true;
        a.quant = pd_md.packed.quant;
        a.axis_from_end = 2;
        a.layout_id = pd_md.packed.layout_id;
        a.shape = shape_of(pd_md);
        a.packed_data = static_cast<uint8_t *>(m.handle);
        a.packed_stride = pd_md.packed.stride;
        return a;
    }
    a.elements = plain_args(m, attr.packing);
    if (!attr.scales.set) return a;
    a.quantised = true;
    quant_of("", m.md, attr, a.quant, &a.axis_from_end); // accepted when the descriptor was created
    a.scales = plain_args(*ctx.memory(MXDNN_ARG_ATTR_SCALES | arg));
    a.swizzled = attr.layout == mxdnn_scales_swizzle_128x4;
    a.swizzle_cols = div_up(dim_from_end(m.md, a.axis_from_end), a.quant.block);
    if (a.quant.zp != zero_point_kind_t::none) a.zero_points = plain_args(*ctx.memory(MXDNN_ARG_ATTR_ZERO_POINTS | arg));
    if (a.quant.global != global_scale_kind_t::none) {
        const memory_t &g = *ctx.memory(MXDNN_ARG_ATTR_GLOBAL_SCALE | arg);
        a.global = static_cast<float *>(g.handle);
        a.one_global = g.md.dims[0] == 1;
    }
    return a;
}

int post_op_args(const exec_ctx_t &ctx, post_op_args_t *ops) {
    int n = 0;
    for (const post_op_t &o : ctx.pd.problem.attr.post_ops.ops) {
        post_op_args_t a {};
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

} // namespace cuda
} // namespace impl
} // namespace mxdnn
