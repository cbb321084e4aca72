// SPDX-License-Identifier: Apache-2.0
// The steps that results take before quantise_results, or instead of it; one entry of the kernel table has
// all.
#pragma once

#include "gpu/cuda/device/kernels.hpp"
#include "gpu/cuda/interface/finish_results_args.hpp"

namespace mxdnn {
namespace impl {
namespace cuda {

// Reads the members applies and to_dst; null: for all.
cudaError_t prepare_finish_results(const finish_results_args_t *a);
// All steps but quantise.
cudaError_t launch_finish_results(const launch_t &at, const finish_results_args_t &a);

} // namespace cuda
} // namespace impl
} // namespace mxdnn
