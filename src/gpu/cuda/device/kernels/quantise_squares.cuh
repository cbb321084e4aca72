// SPDX-License-Identifier: Apache-2.0
// mx_reorder along both dims of a matrix, of whole squares of bf16 whose codes and scales lie as they are
// made.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

bool is_of_squares(const both_axes_args_t &a);
cudaError_t prepare_quantise_squares(const both_axes_args_t *a); // null: for all
cudaError_t launch_quantise_squares(const launch_t &at, const both_axes_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
