// SPDX-License-Identifier: Apache-2.0
// Rows with an id each become the rows of groups: what sm90_scatter_link does first where rows have ids.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/group_rows_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

cudaError_t prepare_group_rows();
cudaError_t launch_group_rows(const launch_t &at, const group_rows_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
