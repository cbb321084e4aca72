// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device/kernels/sm90/gemm_widths.cuh"
#include "gpu/cuda/device/mma/decode_f4.cuh"

namespace mxdnn {
namespace impl {
namespace cuda {
namespace packed {

template const built_t<gemm_args_t> *gemm_variant<mxfp4_t>(int);

} // namespace packed
} // namespace cuda
} // namespace impl
} // namespace mxdnn
