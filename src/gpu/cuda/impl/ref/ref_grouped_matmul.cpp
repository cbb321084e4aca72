// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/impl/ref/ref_grouped_matmul.hpp"

#include "gpu/cuda/impl/kernel_call.hpp"
#include "gpu/cuda/impl/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

reason_t ref_grouped_matmul_t::pd_t::init() { return check_post_op_count(problem.attr); }

status_t ref_grouped_matmul_t::execute(const exec_ctx_t &ctx) const {
    grouped_args_t a{};
    make_grouped_args(ctx, a);
    return launch_kernel(ctx, kernel_id_t::ref_grouped_matmul, a);
}

} // namespace cuda
} // namespace impl
} // namespace mxdnn
