// SPDX-License-Identifier: Apache-2.0
// Kernel arguments of the companions of grouped_matmul, all but what lies in a scratchpad.
#pragma once

#include "gpu/cuda/impl/make_tensor_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

route_args_t make_route_args(const exec_ctx_t &ctx);
permute_args_t make_permute_args(const exec_ctx_t &ctx);
permute_args_t make_unpermute_args(const exec_ctx_t &ctx);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
