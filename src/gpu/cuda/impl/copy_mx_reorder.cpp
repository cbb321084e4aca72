// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/copy_mx_reorder.hpp"

#include "common/formats/format_list.hpp"
#include "common/problem_reorder.hpp"
#include "gpu/cuda/impl/kernel_call.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

namespace {

constexpr int parts[] = {0, MXDNN_ARG_ATTR_SCALES, MXDNN_ARG_ATTR_ZERO_POINTS, MXDNN_ARG_ATTR_GLOBAL_SCALE};

// There are no bytes between the elements. A copy would overwrite them.
bool is_dense(const memory_desc_t &md) {
    if (is_packed(md)) return true;
    int64_t elements = 1;
    for (int i = 0; i < md.ndims; i++) elements *= md.dims[i];
    const int64_t inner = md.dims[inner_dim(md)], bits = data_type_info(md.dt)->bits;
    if (inner == 0) return true;
    return size_of(md) == elements / inner * div_up(inner * (bits == 6 ? 8 : bits), 8);
}

} // namespace

reason_t copy_mx_reorder_t::pd_t::init() {
    const memory_desc_t &src = problem.src, &dst = problem.dst;
    if (!equal(src, dst)) return no("src and dst", "different descriptors", "equal ones");
    if (has_runtime_dims(src)) return no("src and dst", "runtime dims", "known ones");
    if (!is_dense(src)) return no("strides", "gaps between rows", "dense tensors");
    if (has_role(src.dt, role_high_precision)) return yes();
    if (is_packed(src)) {
        if (problem.attr.dst.global == mxdnn_quantization_mode_static_sazp)
            return no("global scale", "one that is given", "the packed one");
        return yes();
    }
    if (problem.src_engine->device == problem.engine->device)
        return no("codes", "plain ones, whose scales may lie in any order", "packed ones, or other engines");
    if (!moves_codes(problem))
        return no("formats", "different ones or given scales", "one format, scales moved along");
    if (problem.attr.src.layout != problem.attr.dst.layout
            || problem.attr.src.packing != problem.attr.dst.packing
            || problem.attr.src.packing != mxdnn_element_packing_bytes)
        return no("orders of scales and elements", "different or dense ones", "equal ones, in bytes");
    if (src.dt != mxdnn_data_type_undef && data_type_info(src.dt)->bits < 8
            && src.dims[inner_dim(src)] * data_type_info(src.dt)->bits % 8)
        return no("rows", "an odd number of 4-bit codes", "whole bytes");
    return yes();
}

status_t copy_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    const cuda_stream_t &s = cuda_stream_of(ctx.stream);
    for (int part : parts) {
        const memory_t *from = ctx.memory(part | MXDNN_ARG_SRC), *to = ctx.memory(part | MXDNN_ARG_DST);
        if (!from || !to) continue;
        if (!equal(from->md, to->md))
            return fail(mxdnn_invalid_arguments, "%s is %s and %s is %s; a copy needs equal strides",
                    arg_name(part | MXDNN_ARG_SRC), to_string(from->md).c_str(),
                    arg_name(part | MXDNN_ARG_DST), to_string(to->md).c_str());
        const size_t bytes = size_t(size_of(from->md));
        if (bytes > 0 && ctx.record) ctx.record->add_kernel("copy");
        if (bytes > 0)
            MXDNN_CHECK(check(s.device().table->copy(s.launch(), to->handle, from->handle, bytes), "a copy"));
    }
    return mxdnn_success;
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
