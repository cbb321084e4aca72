// SPDX-License-Identifier: Apache-2.0
// mx_reorder of bf16 to codes of four bits, where the lines of both sides run across the blocks.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/interface/tile_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

bool is_of_lines(const tile_args_t &a);
bool may_be_of_lines(const tile_args_t &a);               // as far as types and formats decide
cudaError_t prepare_quantise_lines(const tile_args_t *a); // null: for all
cudaError_t launch_quantise_lines(const launch_t &at, const tile_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
