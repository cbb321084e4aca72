// SPDX-License-Identifier: Apache-2.0
// mx_reorder from high precision to int4 with computed scales.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

bool is_of_int4(const tile_args_t &a);
cudaError_t prepare_quantise_int4(const tile_args_t *a); // null: for all
cudaError_t launch_quantise_int4(const launch_t &at, const tile_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
