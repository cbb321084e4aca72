// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device/kernels/sm90/many_rows_widths.cuh"
#include "gpu/cuda/device/mma/decode_f4.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace rows {

template const built_t<many_rows_args_t> *many_rows_variant<nvfp4_t>(int);

} // namespace rows
} // namespace cuda
} // namespace impl
} // namespace mxdnn
