// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/ref/ref_mx_reorder.hpp"

#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t ref_mx_reorder_t::pd_t::init() {
    if (!problem.engine->device || problem.src_engine->device != problem.engine->device)
        return no("engines of src and dst", "different ones",
                "one device; copy first (equal descriptors), then reorder there");
    return yes();
}

status_t ref_mx_reorder_t::execute(const exec_ctx_t &ctx) const {
    reorder_args_t a;
    make_reorder_args(ctx, a);
    return launch_kernel(ctx, kernel_id_t::ref_mx_reorder, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
