// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/ref/ref_grouped_backward_weights.hpp"

#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

status_t ref_grouped_backward_weights_t::execute(const exec_ctx_t &ctx) const {
    return launch_kernel(ctx, kernel_id_t::ref_grouped_backward_weights, make_gradient_args(ctx));
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
