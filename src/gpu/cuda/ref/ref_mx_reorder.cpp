// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/ref/ref_mx_reorder.hpp"

#include "cpu/ref/ref_mx_reorder.hpp"
#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t ref_mx_reorder_t::pd_t::init() {
    if (!problem.engine->device || problem.src_engine->device != problem.engine->device)
        return no("engines of src and dst", "different ones",
                "one device; copy first (equal descriptors), then reorder there");
    return yes();
}

status_t ref_mx_reorder_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::ref_mx_reorder));
    primitive = std::make_shared<ref_mx_reorder_t>();
    return mxdnn_success;
}

status_t ref_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    const problem_t &p = ctx.pd.problem;
    const memory_t &dst = *ctx.memory(MXDNN_ARG_DST);
    reorder_args_t a{};
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
    // Padding is zero: what is not an element of a packed or swizzled destination is defined, too.
    if (is_packed(p.dst)) {
        a.clear[0] = static_cast<uint8_t *>(dst.handle);
        a.clear_bytes[0] = size_of(p.dst);
    }
    if (p.attr.dst.layout == mxdnn_scales_swizzle_128x4 && p.attr.dst.is_dynamic()) {
        const memory_t &scales = *ctx.memory(MXDNN_ARG_ATTR_SCALES | MXDNN_ARG_DST);
        a.clear[1] = static_cast<uint8_t *>(scales.handle);
        a.clear_bytes[1] = size_of(scales.md);
    }
    return launch_kernel(ctx, kernel_id_t::ref_mx_reorder, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
