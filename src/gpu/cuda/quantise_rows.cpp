// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/quantise_rows.hpp"

#include "common/formats/format_list.hpp"
#include "gpu/cuda/kernel_call.hpp"
#include "gpu/cuda/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t quantise_rows_t::pd_t::init() {
    const memory_desc_t &src = problem.src, &dst = problem.dst;
    const arg_attr_t &attr = problem.attr.dst;
    if (!problem.engine->device || problem.src_engine->device != problem.engine->device)
        return no("engines of src and dst", "different ones", "one device");
    if (!has_role(src.dt, role_high_precision)) return no("src", data_type_name(src.dt), "f32, bf16 or f16");
    if (!is_strided(dst) || has_role(dst.dt, role_high_precision))
        return no("dst", to_string(dst).c_str(), "plain codes");
    quant_t q;
    int axis = 0;
    if (quant_of("dst", dst, attr, q, &axis) != mxdnn_success || !attr.is_dynamic())
        return no("scales of dst", "given ones", "computed ones");
    const quant_family_t family = quant_family(dst.dt, q);
    if (family != quant_family_t::mx && family != quant_family_t::nvfp4)
        return no("dst", "int4", "MX or NVFP4");
    if (q.global != global_scale_kind_t::none) return no("dst", "a global scale", "none");
    if (attr.packing != mxdnn_element_packing_bytes) return no("dst", "dense 6-bit codes", "one in a byte");
    const int blocked = dst.ndims - axis;
    for (const memory_desc_t *md : {&src, &dst})
        if (md->strides[blocked] != 1 && md->dims[blocked] > 1)
            return no(md == &src ? "src" : "dst", "blocks across lines", "blocks along contiguous elements");
    if (data_type_info(dst.dt)->bits == 4 && inner_dim(dst) != blocked)
        return no("dst", "codes that share bytes across lines", "along them");
    return yes();
}

status_t quantise_rows_t::pd_t::create_primitive(std::shared_ptr<primitive_impl_t> &primitive) const {
    MXDNN_CHECK(prepare_kernel(problem, kernel_id_t::quantise_rows));
    primitive = std::make_shared<quantise_rows_t>();
    return mxdnn_success;
}

status_t quantise_rows_t::execute(const exec_ctx_t &ctx) const {
    reorder_args_t a;
    make_reorder_args(ctx, a);
    return launch_kernel(ctx, kernel_id_t::quantise_rows, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
