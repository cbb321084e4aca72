// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels for gradients of weights from memories, on the host.
#pragma once

#include "common/primitive.hpp"
#include "gpu/cuda/interface/gradient_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

gradient_args_t make_gradient_args(const exec_ctx_t &ctx);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
