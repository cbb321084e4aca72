// SPDX-License-Identifier: Apache-2.0
// mx_reorder between high-precision types, and of one type to another order.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

bool is_of_values(const tile_args_t &a);
cudaError_t prepare_cast_tiles(const tile_args_t *a); // null: for all
cudaError_t launch_cast_tiles(const launch_t &at, const tile_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
